/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* rwlock.c - unspin_rwlock of unspin/locks.h. */
#include "../../locks/rwlock.h"

#define LIBRARY_NAME rwlock
#define LIBRARY_LOCK rwlock
#define LIBRARY_SHARES
#include "../functions.h"
