/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* names.c - the words of lock_kinds.h and abi/bpf/scheduler.h as strings, so that Rust repeats none of them. */
#include "all.h"

#define NAME(number, name) [number] = #name,
const char *const unspin_lock_names[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCK_KINDS(NAME)};
#undef NAME

#define TRAITS(name, traits) [UNSPIN_LOCK_##name] = (traits),
const unspin_u32 unspin_lock_traits[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCK_TRAITS(TRAITS)};
#undef TRAITS

#define NAME(name, says) #name,
const char *const unspin_steer_counter_names[UNSPIN_STEER_COUNTER_COUNT] = {UNSPIN_STEER_COUNTERS(NAME)};
#undef NAME
#define MEANING(name, says) says,
const char *const unspin_steer_counter_meanings[UNSPIN_STEER_COUNTER_COUNT] = {UNSPIN_STEER_COUNTERS(MEANING)};
#undef MEANING
