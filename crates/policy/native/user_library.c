/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * user_library.c - the policies together with a user policy, as a shared library without dependencies, which the lab
 * loads. Exports the two functions of policies.h that the lab calls, under their own names.
 */
#include "steering/policies.h"

#define EXPORTED __attribute__((visibility("default")))

EXPORTED struct unspin_decision user_library_decide(unspin_u32 event, unspin_u32 policies,
						    const struct unspin_facts *facts,
						    struct unspin_policy_memory *memory)
{
	return policies_decide(event, policies, facts, memory);
}

EXPORTED void user_library_on_slice_start(unspin_u32 policies, const struct unspin_facts *facts,
					  struct unspin_policy_memory *memory)
{
	policies_on_slice_start(policies, facts, memory);
}

/* The compiler may call these for structs, and no C library is linked. */
void *memcpy(void *to, const void *from, unsigned long bytes)
{
	unsigned char *out = to;
	const unsigned char *in = from;

	while (bytes--)
		*out++ = *in++;
	return to;
}

void *memset(void *to, int value, unsigned long bytes)
{
	unsigned char *out = to;

	while (bytes--)
		*out++ = (unsigned char)value;
	return to;
}
