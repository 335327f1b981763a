/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* all.h - every header of abi/, for the generator of the Rust bindings. */
#include "counts.h"
#include "events.h"
#include "guest.h"
#include "pv_page.h"
#include "pv_page_map.h"
#include "lock_kinds.h"
#include "observe.h"
#include "steer.h"
#include "steer_dry.h"
#include "thread_run_state.h"
#include "window.h"

/* The names of lock_kinds.h in order of their numbers; defined in names.c. */
extern const char *const unspin_lock_names[UNSPIN_LOCK_KIND_COUNT];

/* Bits of enum unspin_lock_trait in the same order; defined in names.c. */
extern const unspin_u32 unspin_lock_traits[UNSPIN_LOCK_KIND_COUNT];

/* Names and meanings of the counters of steer.h in order; defined in names.c. */
extern const char *const unspin_steer_counter_names[UNSPIN_STEER_COUNTER_COUNT];
extern const char *const unspin_steer_counter_meanings[UNSPIN_STEER_COUNTER_COUNT];
