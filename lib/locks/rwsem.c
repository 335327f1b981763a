/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* rwsem.c - unspin_rwsem of unspin/locks.h. Who sleeps spins on no node: nodes may share cache lines. */

#define PROCESS_PARKS
#define PLATFORM_NODE_ALIGNMENT 16
#include "../../locks/rwsem.h"

#define LIBRARY_NAME rwsem
#define LIBRARY_LOCK rwsem
#define LIBRARY_SHARES
#include "../functions.h"
