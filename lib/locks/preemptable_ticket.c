/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* preemptable_ticket.c - unspin_preemptable_ticket of unspin/locks.h. */
#include "../../locks/preemptable_ticket.h"

#define LIBRARY_NAME preemptable_ticket
#define LIBRARY_LOCK preemptable_ticket
#include "../functions.h"
