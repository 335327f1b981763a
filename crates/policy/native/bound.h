/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bound.h - the types and functions of policy/ that Rust uses. The functions are static inline; bindgen writes a
 * wrapper for each (crates/headers), which Rust calls by the function's own name.
 */
#ifndef UNSPIN_POLICY_BOUND_H
#define UNSPIN_POLICY_BOUND_H

#include <stdbool.h>

#include "../../../policy/all.h"
#include "../../../policy/steering/policies.h"

/* The name of the policy with bit `bit`, 0 to UNSPIN_POLICY_COUNT - 1: a constant string. */
static inline const char *unspin_policy_name(unspin_u32 bit)
{
	static const char *const names[UNSPIN_POLICY_COUNT] = {
#define UNSPIN_POLICY_NAME(bit, prefix, name, ...) [bit] = name,
		UNSPIN_POLICIES(UNSPIN_POLICY_NAME)
#undef UNSPIN_POLICY_NAME
	};

	return names[bit];
}

/* The bit of the policy that is called in position `place`, 0 to UNSPIN_POLICY_COUNT - 1. */
static inline unspin_u32 unspin_policy_at(unspin_u32 place)
{
	static const unspin_u32 bits[UNSPIN_POLICY_COUNT] = {
#define UNSPIN_POLICY_PLACE(bit, ...) bit,
		UNSPIN_POLICIES(UNSPIN_POLICY_PLACE)
#undef UNSPIN_POLICY_PLACE
	};

	return bits[place];
}

/* The macros of these names (policy/steering/policies.h): bits of policies that read facts which the host may leave out. */
static inline unspin_u32 unspin_policies_of_candidate(void)
{
	return UNSPIN_POLICIES_OF_CANDIDATE;
}

static inline unspin_u32 unspin_policies_of_yielder(void)
{
	return UNSPIN_POLICIES_OF_YIELDER;
}

static inline unspin_u32 unspin_policies_of_order(void)
{
	return UNSPIN_POLICIES_OF_ORDER;
}

#endif
