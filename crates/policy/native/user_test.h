/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * user_test.h - included by the test of a user policy: the contract, the policy itself, CHECK() and facts to start
 * from.
 */
#ifndef UNSPIN_USER_TEST_H
#define UNSPIN_USER_TEST_H

#include <stdio.h>

#include "steering/policies.h"

static int failed_checks;

/* Prints file and line of a condition that does not hold, and continues. */
#define CHECK(that)                                                                                                    \
	do {                                                                                                           \
		if (!(that)) {                                                                                         \
			printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #that);                               \
			failed_checks++;                                                                               \
		}                                                                                                      \
	} while (0)

/* A fact that is 5 us old. */
static inline struct unspin_fact seen(unspin_u32 value)
{
	return (struct unspin_fact){value, 5000};
}

/* A fact that is not known. */
static inline struct unspin_vcpu_facts an_unknown_vcpu(void)
{
	union {
		struct unspin_vcpu_facts vcpu;
		struct unspin_fact facts[sizeof(struct unspin_vcpu_facts) / sizeof(struct unspin_fact)];
	} nothing;

	for (unsigned i = 0; i < sizeof(nothing.facts) / sizeof(nothing.facts[0]); i++)
		nothing.facts[i] = UNSPIN_UNKNOWN_FACT;
	return nothing.vcpu;
}

/* self runs, the candidate is off its CPU, half a slice is left; all other facts are unknown. */
static inline struct unspin_facts little_is_known(void)
{
	struct unspin_facts facts = {.slice_ns = 2800000, .slice_left_ns = 1400000};

	facts.self = an_unknown_vcpu();
	facts.self.descheduled = seen(0);
	facts.self.spun = seen(1);
	facts.self.borrows = seen(0);
	facts.candidate = an_unknown_vcpu();
	facts.candidate.descheduled = seen(1);
	return facts;
}

#endif
