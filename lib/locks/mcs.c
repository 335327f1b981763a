/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mcs.c - unspin_mcs of unspin/locks.h. */
#include "../../locks/mcs.h"

#define LIBRARY_NAME mcs
#define LIBRARY_LOCK mcs
#define LIBRARY_OWNED
#include "../functions.h"
