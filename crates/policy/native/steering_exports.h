/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* steering_exports.h - the functions of policy/steering/policies.h as calls; what each means stands there. Pointers are valid and apart. */
#ifndef UNSPIN_STEERING_EXPORTS_H
#define UNSPIN_STEERING_EXPORTS_H

#include "../../../policy/classify/guest_audit.h"
#include "../../../policy/steering/policies.h"

struct unspin_decision steering_decide(unspin_u32 event, unspin_u32 policies, const struct unspin_facts *facts,
				       struct unspin_policy_memory *memory);
void steering_on_slice_start(unspin_u32 policies, const struct unspin_facts *facts,
			     struct unspin_policy_memory *memory);
_Bool steering_yield_buddy_is_followed(unspin_u64 candidate_vtime, unspin_u64 first_vtime, unspin_u32 threshold_ns);
_Bool steering_replay(const struct unspin_decision_record *record, struct unspin_policy_memory *memory,
		      struct unspin_decision *decision);

unspin_u32 steering_audit_guest(const struct unspin_guest_audit *counts);
_Bool steering_gang_cuts(unspin_u64 ran_ns);

/* By bit: the policies' names. */
extern const char *const steering_names[UNSPIN_POLICY_COUNT];
/* Bits in the order in which policies are asked. */
extern const unspin_u32 steering_order[UNSPIN_POLICY_COUNT];

#endif
