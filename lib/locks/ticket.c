/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ticket.c - unspin_ticket of unspin/locks.h. */
#include "../../locks/ticket.h"

#define LIBRARY_NAME ticket
#define LIBRARY_LOCK ticket
#include "../functions.h"
