/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* paravirtual_qspinlock.c - unspin_paravirtual_qspinlock of unspin/locks.h. */

#define PROCESS_PARKS
#include "../../locks/paravirtual_qspinlock.h"

#define LIBRARY_NAME paravirtual_qspinlock
#define LIBRARY_LOCK paravirtual_qspinlock
#include "../functions.h"
