/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* qspinlock.c - unspin_qspinlock of unspin/locks.h. */
#include "../../locks/qspinlock.h"

#define LIBRARY_NAME qspinlock
#define LIBRARY_LOCK qspinlock
#include "../functions.h"
