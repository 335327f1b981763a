/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* rivals.c - the table of the rivals' drivers. */
#include "rivals.h"

#define DECLARE(number, name) extern const struct driver driver_##name;
#define ENTRY(number, name) [number] = &driver_##name,
#define NAME(number, name) [number] = #name,

RIVALS(DECLARE)
#ifdef UNSPIN_HAS_CK
RIVALS_OF_CK(DECLARE)
const struct driver *const rival_table[RIVAL_COUNT] = {RIVALS(ENTRY) RIVALS_OF_CK(ENTRY)};
#else
const struct driver *const rival_table[RIVAL_COUNT] = {RIVALS(ENTRY)};
#endif

const char *const rival_names[RIVAL_COUNT] = {RIVALS(NAME) RIVALS_OF_CK(NAME)};
