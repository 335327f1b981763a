/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * erring.c - a policy with a fault, for tests: when it is switched on the scheduler ends with an error at the next slice of a vCPU.
 */
#include <unspin/policy/contract.h>

void scx_bpf_error_bstr(char *format, unsigned long long *data, unsigned data_bytes) __ksym;

UNSPIN_PURE struct unspin_decision erring_on_yield(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	return unspin_decide(UNSPIN_PASS, 0);
}

UNSPIN_PURE struct unspin_decision erring_on_slice_end(const struct unspin_facts *facts,
						       struct unspin_policy_state *state)
{
	return unspin_decide(UNSPIN_PASS, 0);
}

UNSPIN_PURE struct unspin_decision erring_on_poll(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	return unspin_decide(UNSPIN_PASS, 0);
}

UNSPIN_PURE void erring_on_slice_start(const struct unspin_facts *facts, struct unspin_policy_state *state)
{
	static char says[] = "a fault that a test has put into a policy";
	unsigned long long nothing = 0;

	scx_bpf_error_bstr(says, &nothing, 0);
}
