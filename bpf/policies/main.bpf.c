// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.bpf.c - makes decisions as the scheduler's programs do, on facts that user space has put into a map: the check that clang's BPF
 * backend, the verifier and the JIT make of `policy/` what the native build makes of it. Loaded by that check only.
 */
#include "../common/kernel_types.h"

#include <bpf/bpf_helpers.h>

#include "../../policy/steering/candidate.h"
#include "../../policy/steering/policies.h"

#define RECORDS 1024

char program_license[] SEC("license") = "GPL";

/* Facts, memories and events; `after`, decision and verdict are set here. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RECORDS);
	__type(key, __u32);
	__type(value, struct unspin_decision_record);
} records SEC(".maps");

static long decide_one(__u32 index, void *unused)
{
	struct unspin_decision_record *record = bpf_map_lookup_elem(&records, &index);

	if (!record)
		return 1;
	record->after = record->before;
	record->decision = policies_decide(record->event, record->policies, &record->facts, &record->after);
	record->verdict = 0;
	if (record->event == UNSPIN_ON_SPIN)
		record->verdict = unspin_candidate_verdict(&record->spinner, &record->seen);
	return 0;
}

SEC("syscall")
int decide_all(void *context)
{
	bpf_loop(RECORDS, decide_one, NULL, 0);
	return 0;
}
