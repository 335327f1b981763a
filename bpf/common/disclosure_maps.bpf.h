/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * disclosure_maps.bpf.h - which guests are told how much, where that differs from everyone; filled before the programs run
 * (Disclosures::fill()). The numbers are the program's own: the scheduler's enum unspin_disclosure, and whether guests are told of
 * spin thresholds at all (1) or not (0).
 */
#ifndef UNSPIN_BPF_COMMON_DISCLOSURE_MAPS_H
#define UNSPIN_BPF_COMMON_DISCLOSURE_MAPS_H

/* By process; before what its cgroup says. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} disclosure_processes SEC(".maps");

/* By a cgroup's inode number, with those in all below it; the deepest one holds. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} disclosure_cgroups SEC(".maps");

#endif
