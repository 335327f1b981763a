/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* own_test.h - what the test of a user's own policy includes: the contract, the policy itself, and CHECK(). */
#ifndef UNSPIN_OWN_TEST_H
#define UNSPIN_OWN_TEST_H

#include <stdio.h>

#include "steering.h"

static int failed_checks;

/* Says file and line of what does not hold, and goes on. */
#define CHECK(that)                                                                                                    \
	do {                                                                                                           \
		if (!(that)) {                                                                                         \
			printf("%s:%d: does not hold: %s\n", __FILE__, __LINE__, #that);                               \
			failed_checks++;                                                                               \
		}                                                                                                      \
	} while (0)

/* A fact that was seen 5 us ago. */
static inline struct unspin_fact seen(unspin_u32 value)
{
	return (struct unspin_fact){value, 5000};
}

/* self runs, the candidate is off its CPU, half a slice is left, and nobody knows more. */
static inline struct unspin_facts little_is_known(void)
{
	struct unspin_vcpu_facts nothing = {UNSPIN_UNKNOWN_FACT, UNSPIN_UNKNOWN_FACT, UNSPIN_UNKNOWN_FACT,
					    UNSPIN_UNKNOWN_FACT, UNSPIN_UNKNOWN_FACT, UNSPIN_UNKNOWN_FACT};
	struct unspin_facts facts = {.slice_ns = 2800000, .slice_left_ns = 1400000};

	facts.self = nothing;
	facts.self.descheduled = seen(0);
	facts.self.spun = seen(1);
	facts.self.owes = seen(0);
	facts.candidate = nothing;
	facts.candidate.descheduled = seen(1);
	return facts;
}

#endif
