/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * core_relocation.h - libbpf's own computation of CO-RE relocations, against types of a kernel that does not run. libbpf
 * declares it in relo_core.h, which is private; core_relocation.c includes that of the libbpf that is linked.
 *
 * Callable from any thread; nothing is kept between calls.
 */
#ifndef UNSPIN_AGENT_CORE_RELOCATION_H
#define UNSPIN_AGENT_CORE_RELOCATION_H

struct btf;
struct bpf_core_relo;

/* A type of the kernel or of a module that a relocation may mean; `btf` lives as long as the call. */
struct unspin_core_candidate {
	const struct btf *btf;
	unsigned int id;
};

enum unspin_core_outcome {
	UNSPIN_CORE_VALUE = 1,	 /* one number */
	UNSPIN_CORE_NOTHING = 2, /* no candidate has what is asked for: libbpf makes the instruction invalid */
	UNSPIN_CORE_REFUSED = 3, /* candidates that differ, or a relocation that is none */
};

/*
 * Computes one relocation of an object whose types are `local`: enum unspin_core_outcome. `candidates`: its list, of which libbpf
 * may change the order. `value` is written for UNSPIN_CORE_VALUE. `sought`: at most `bytes` bytes with what was looked for, as
 * bpf_core_format_spec() writes it, ended by 0; empty for a relocation that is none. Numbers of types are checked by libbpf.
 */
unsigned int unspin_core_resolve(const struct bpf_core_relo *relocation, const struct btf *local,
				 struct unspin_core_candidate *candidates, int count, unsigned long long *value,
				 char *sought, unsigned long bytes);

/* Whether two types, mostly prototypes of functions, agree as libbpf has it for kernel functions: above 0 if so, else 0 or -errno. */
int unspin_core_types_are_compatible(const struct btf *local, unsigned int local_id, const struct btf *target,
				     unsigned int target_id);

#endif
