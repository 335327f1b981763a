/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * all.h - every header of policy/, for those that compile them together.
 *
 * policy/ decides and nothing else: pure functions of facts that may be unknown, in integers, without allocation, loops
 * over candidates or signed division. They compile for the host and for BPF; the world (crates/analysis, later the lab and
 * bpf/) gathers the facts.
 */
#ifndef UNSPIN_POLICY_ALL_H
#define UNSPIN_POLICY_ALL_H

#include "apple.h"
#include "candidate.h"
#include "candidate_walk.h"
#include "guest_audit.h"
#include "counts.h"
#include "critical_functions.h"
#include "deboost.h"
#include "ecs.h"
#include "ecs_class.h"
#include "inefficiency.h"
#include "lag_credit.h"
#include "pause_loop.h"
#include "ple_functions.h"
#include "ple_outcome.h"
#include "ple_reason.h"
#include "ple_run.h"
#include "ple_window.h"
#include "spin_threshold.h"
#include "wakeup.h"

#endif
