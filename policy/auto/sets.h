/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * sets.h - the sets of policies that `auto` chooses among (docs/decisions/auto.md#choice). Ours. Callable from anywhere.
 */
#ifndef UNSPIN_POLICY_AUTO_SETS_H
#define UNSPIN_POLICY_AUTO_SETS_H

#include "../steering/policies.h"

/* What is chosen among: the name, and policies as bits. Every VM begins with the first. */
#define UNSPIN_AUTO_SETS(X)                                                                                            \
	X(strict, unspin_policy_kernel_exit | UNSPIN_POLICY_CANDIDATES)                                                \
	X(loan, UNSPIN_AUTO_LOAN)                                                                                      \
	X(loan_strict, UNSPIN_AUTO_LOAN | UNSPIN_POLICY_CANDIDATES)                                                    \
	X(directed_yield, unspin_policy_directed_yield)
#define UNSPIN_AUTO_LOAN                                                                                               \
	(unspin_policy_loan | unspin_policy_loan_cpl | unspin_policy_kernel_exit | UNSPIN_POLICY_SPIN_SAMPLES)
#define UNSPIN_AUTO_FIRST UNSPIN_AUTO_strict

enum unspin_auto_set {
#define UNSPIN_AUTO_SET(name, policies) UNSPIN_AUTO_##name,
	UNSPIN_AUTO_SETS(UNSPIN_AUTO_SET)
#undef UNSPIN_AUTO_SET
		UNSPIN_AUTO_SET_COUNT
};

/* The policies of a set; the rule of candidates that goes with UNSPIN_POLICY_CANDIDATES is UNSPIN_CANDIDATES_STRICT. */
static inline unspin_u32 unspin_auto_policies(unspin_u32 set)
{
	static const unspin_u32 policies[UNSPIN_AUTO_SET_COUNT] = {
#define UNSPIN_AUTO_POLICIES(name, bits) bits,
		UNSPIN_AUTO_SETS(UNSPIN_AUTO_POLICIES)
#undef UNSPIN_AUTO_POLICIES
	};

	return set < UNSPIN_AUTO_SET_COUNT ? policies[set] : 0;
}

#endif
