/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * all.h - every header of policy/, for bindings that compile them together.
 *
 * policy/ has decisions only: pure functions of facts that may be unknown, in integers, without allocation, loops
 * over candidates or signed division. They compile for the host and for BPF; the callers (bpf/, crates/lab, crates/analysis)
 * gather the facts.
 */
#ifndef UNSPIN_POLICY_ALL_H
#define UNSPIN_POLICY_ALL_H

#include "auto/controller.h"
#include "auto/levers.h"
#include "auto/trial.h"
#include "auto/useful_time.h"
#include "model/apple.h"
#include "steering/candidate.h"
#include "steering/candidate_walk.h"
#include "classify/guest_audit.h"
#include "steering/counts.h"
#include "classify/critical_functions.h"
#include "model/deboost.h"
#include "steering/ecs.h"
#include "classify/ecs_class.h"
#include "model/inefficiency.h"
#include "model/lag_credit.h"
#include "mechanics/bandwidth.h"
#include "mechanics/buddy.h"
#include "mechanics/crowd.h"
#include "mechanics/domains.h"
#include "mechanics/gang.h"
#include "mechanics/order.h"
#include "mechanics/slice.h"
#include "mechanics/starvation_bound.h"
#include "mechanics/virtual_time.h"
#include "mechanics/wakeup.h"
#include "mechanics/weights.h"
#include "model/pause_loop.h"
#include "classify/ple_functions.h"
#include "classify/ple_outcome.h"
#include "classify/ple_reason.h"
#include "classify/ple_run.h"
#include "model/ple_window.h"
#include "model/spin_threshold.h"
#include "classify/spin_places.h"
#include "classify/spin_samples.h"
#include "classify/wakeup.h"

#endif
