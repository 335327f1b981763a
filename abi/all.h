/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/* all.h - every header of abi/, for the generator of the Rust bindings. */
#include "guest/counts.h"
#include "bpf/events.h"
#include "guest/memory.h"
#include "guest/pv_page.h"
#include "bpf/pv_page_map.h"
#include "guest/lock_kinds.h"
#include "bpf/observe.h"
#include "bpf/scheduler.h"
#include "bpf/dry.h"
#include "bpf/thread_run_state.h"
#include "bpf/window.h"
#include "bpf/watch.h"
#include "preload/report.h"

/* The names of lock_kinds.h in order of their numbers; defined in names.c. */
extern const char *const unspin_lock_names[UNSPIN_LOCK_KIND_COUNT];

/* Bits of enum unspin_lock_trait in the same order; defined in names.c. */
extern const unspin_u32 unspin_lock_traits[UNSPIN_LOCK_KIND_COUNT];

/* Names and meanings of the counters of abi/bpf/scheduler.h in order; defined in names.c. */
extern const char *const unspin_steer_counter_names[UNSPIN_STEER_COUNTER_COUNT];
extern const char *const unspin_steer_counter_meanings[UNSPIN_STEER_COUNTER_COUNT];
