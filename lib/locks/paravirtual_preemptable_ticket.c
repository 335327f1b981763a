/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* paravirtual_preemptable_ticket.c - unspin_paravirtual_preemptable_ticket of unspin/locks.h. */

#define PROCESS_PARKS
#include "../../locks/paravirtual_preemptable_ticket.h"

#define LIBRARY_NAME paravirtual_preemptable_ticket
#define LIBRARY_LOCK paravirtual_preemptable_ticket
#include "../functions.h"
