/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* paravirtual_ticket.c - unspin_paravirtual_ticket of unspin/locks.h. */

#define PROCESS_PARKS
#include "../../locks/paravirtual_ticket.h"

#define LIBRARY_NAME paravirtual_ticket
#define LIBRARY_LOCK paravirtual_ticket
#include "../functions.h"
