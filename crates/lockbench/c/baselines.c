/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* baselines.c - the table of the baselines' drivers. */
#include "baselines.h"

#define DECLARE(number, name) extern const struct driver driver_##name;
#define ENTRY(number, name) [number] = &driver_##name,
#define NAME(number, name) [number] = #name,

BASELINES(DECLARE)
#ifdef UNSPIN_HAS_CK
BASELINES_OF_CK(DECLARE)
const struct driver *const baseline_table[BASELINE_COUNT] = {BASELINES(ENTRY) BASELINES_OF_CK(ENTRY)};
#else
const struct driver *const baseline_table[BASELINE_COUNT] = {BASELINES(ENTRY)};
#endif

const char *const baseline_names[BASELINE_COUNT] = {BASELINES(NAME) BASELINES_OF_CK(NAME)};
