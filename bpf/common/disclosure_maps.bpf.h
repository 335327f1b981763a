/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * disclosure_maps.bpf.h - exceptions from the disclosure that holds for all guests, by process and by cgroup. User
 * space fills the maps before the programs run (Disclosures::fill()). Values: in the scheduler enum unspin_disclosure;
 * in window/ 1 if the guest's spin threshold is set, else 0.
 */
#ifndef UNSPIN_BPF_COMMON_DISCLOSURE_MAPS_H
#define UNSPIN_BPF_COMMON_DISCLOSURE_MAPS_H

/* By process id. Takes precedence over disclosure_cgroups. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u32);
} disclosure_processes SEC(".maps");

/* By a cgroup's inode number; holds for the cgroups below it too, of which the deepest one listed decides. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u32);
} disclosure_cgroups SEC(".maps");

#endif
