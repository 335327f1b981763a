// SPDX-License-Identifier: GPL-2.0-only
/*
 * user_policy.bpf.c - the scheduler, or the dry run, with a user policy in it (policy/steering/policies.h). Compiled on the
 * user's machine: UNSPIN_USER_POLICY is his file, UNSPIN_USER_NAME the policy's name, UNSPIN_USER_SOURCES the hash of all else.
 */
#ifdef UNSPIN_USER_DRY_RUN
#include "dry.bpf.c"
#define FOR_DRY_RUN 1
#else
#include "main.bpf.c"
#define FOR_DRY_RUN 0
#endif

const struct unspin_user_policy user_policy SEC(".rodata.user") = {UNSPIN_POLICY_CONTRACT, FOR_DRY_RUN,
								   UNSPIN_USER_SOURCES, UNSPIN_USER_NAME};
