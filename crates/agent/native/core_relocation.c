// SPDX-License-Identifier: MIT OR Apache-2.0
#include <stdbool.h>
#include <stddef.h>

#include "relo_core.h" /* libbpf's sources, src/ */

#include "core_relocation.h"

/* bpf_core_calc_relo_insn() has these three: what was looked for, a candidate, what was found (relo_core.c, libbpf 1.7). */
#define SPECS 3

_Static_assert(sizeof(struct unspin_core_candidate) == sizeof(struct bpf_core_cand) &&
		       offsetof(struct unspin_core_candidate, btf) == offsetof(struct bpf_core_cand, btf) &&
		       offsetof(struct unspin_core_candidate, id) == offsetof(struct bpf_core_cand, id),
	       "candidates are libbpf's");

unsigned int unspin_core_resolve(const struct bpf_core_relo *relocation, const struct btf *local,
				 struct unspin_core_candidate *candidates, int count, unsigned long long *value,
				 char *sought, unsigned long bytes)
{
	struct bpf_core_cand_list list = {.cands = (struct bpf_core_cand *)candidates, .len = count};
	struct bpf_core_spec specs[SPECS] = {};
	struct bpf_core_relo_res result = {};
	int error = bpf_core_calc_relo_insn("core_compat", relocation, 0, local, &list, specs, &result);

	sought[0] = 0;
	if (specs[0].btf)
		bpf_core_format_spec(sought, bytes, &specs[0]);
	*value = result.new_val;
	if (error)
		return UNSPIN_CORE_REFUSED;
	return result.poison ? UNSPIN_CORE_NOTHING : UNSPIN_CORE_VALUE;
}

int unspin_core_types_are_compatible(const struct btf *local, unsigned int local_id, const struct btf *target,
				     unsigned int target_id)
{
	return bpf_core_types_are_compat(local, local_id, target, target_id);
}
