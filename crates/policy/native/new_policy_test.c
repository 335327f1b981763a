/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * NAME_test.c - the test of NAME.c: `unspin policy test ./NAME.c` compiles both for this machine and runs this.
 * CHECK() prints a condition that does not hold; little_is_known() and seen() make facts (<unspin/policy/user_test.h>).
 */
#include <unspin/policy/user_test.h>

static unsigned yield(struct unspin_facts facts, struct unspin_policy_state *state)
{
	return NAME_on_yield(&facts, state).action;
}

/* The state of a vCPU for which KVM has proposed TWO candidates in its slice. */
static const struct unspin_policy_state patient = {{TWO, 0}};

static void it_runs_the_vcpu_that_kvm_proposes(void)
{
	struct unspin_policy_state state = patient;
	struct unspin_facts facts = little_is_known();

	CHECK(yield(facts, &state) == UNSPIN_DIRECT);
	facts.candidate.descheduled = seen(0);
	CHECK(yield(facts, &state) == UNSPIN_REFUSE);
	facts.candidate.descheduled = UNSPIN_UNKNOWN_FACT;
	CHECK(yield(facts, &state) == UNSPIN_REFUSE);
}

static void but_not_one_that_has_just_yielded(void)
{
	struct unspin_policy_state state = patient;
	struct unspin_facts facts = little_is_known();

	facts.candidate.yielded = (struct unspin_fact){1, A_MOMENT_NS - 1};
	CHECK(yield(facts, &state) == UNSPIN_REFUSE);
	facts.candidate.yielded = (struct unspin_fact){1, A_MOMENT_NS};
	CHECK(yield(facts, &state) == UNSPIN_DIRECT);
}

static void and_not_at_once(void)
{
	struct unspin_policy_state state = {{0, 0}};
	struct unspin_facts facts = little_is_known();

	for (int slice = 0; slice < 2; slice++) {
		for (int i = 0; i < TWO; i++)
			CHECK(yield(facts, &state) == UNSPIN_REFUSE);
		CHECK(yield(facts, &state) == UNSPIN_DIRECT);
		NAME_on_slice_start(&facts, &state);
	}
}

int main(void)
{
	it_runs_the_vcpu_that_kvm_proposes();
	but_not_one_that_has_just_yielded();
	and_not_at_once();
	return failed_checks != 0;
}
