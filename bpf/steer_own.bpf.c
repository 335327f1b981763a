// SPDX-License-Identifier: GPL-2.0-only
/*
 * steer_own.bpf.c - the scheduler, or the dry run, with a policy of a user's own in it (policy/steering.h). Compiled on the
 * user's machine: UNSPIN_OWN_POLICY is his file, UNSPIN_OWN_NAME the policy's name, UNSPIN_OWN_SOURCES the hash of all else.
 */
#ifdef UNSPIN_OWN_DRY_RUN
#include "steer_dry.bpf.c"
#define FOR_DRY_RUN 1
#else
#include "steer.bpf.c"
#define FOR_DRY_RUN 0
#endif

const struct unspin_own_policy own_policy SEC(".rodata.own") = {UNSPIN_POLICY_CONTRACT, FOR_DRY_RUN, UNSPIN_OWN_SOURCES,
								UNSPIN_OWN_NAME};
