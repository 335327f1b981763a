/* SPDX-License-Identifier: GPL-2.0-only */
/* reads.bpf.h - reads of kernel memory that give 0 where they fail, by a load where the kernel allows it, else by a call. */
#ifndef UNSPIN_BPF_COMMON_READS_H
#define UNSPIN_BPF_COMMON_READS_H

#include "kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* Reads `bytes` (at most 8) of kernel memory; 0 if that fails. */
static __always_inline u64 read_by_call(const void *address, u32 bytes)
{
	u64 value = 0;

	bpf_probe_read_kernel(&value, bytes, address);
	return value;
}

/*
 * Reads a field of a kernel struct at any address, its offset found by CO-RE; 0 if it cannot be read. Either by a load
 * that the kernel guards with its exception table (since Linux 6.17, some 10 instructions), or by a helper call (some
 * 90). `direct`: the loader's
 * constant that selects one of the two; callers keep it in a variable, so that it is loaded once.
 */
#define READ(direct, pointer, field)                                                                                   \
	((direct) ? *(typeof((pointer)->field) *)(bpf_rdonly_cast(pointer, 0) +                                        \
						  bpf_core_field_offset(typeof(*(pointer)), field))                    \
		  : (typeof((pointer)->field))read_by_call((void *)(pointer) +                                         \
								   bpf_core_field_offset(typeof(*(pointer)), field),   \
							   sizeof((pointer)->field)))

/* The same of a number that lies at that address. */
static __always_inline u32 read_u32(bool direct, const void *address)
{
	return direct ? *(const u32 *)bpf_rdonly_cast(address, 0) : (u32)read_by_call(address, sizeof(u32));
}

#endif
