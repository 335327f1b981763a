/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* helping.c - unspin_helping of unspin/locks.h. */
#include "../../locks/helping.h"

#define LIBRARY_NAME helping
#define LIBRARY_LOCK helping
#include "../functions.h"
