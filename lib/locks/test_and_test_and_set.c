/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* test_and_test_and_set.c - unspin_test_and_test_and_set of unspin/locks.h. */
#include "../../locks/test_and_test_and_set.h"

#define LIBRARY_NAME test_and_test_and_set
#define LIBRARY_LOCK test_and_test_and_set
#include "../functions.h"
