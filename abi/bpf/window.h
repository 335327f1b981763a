/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * window.h - what bpf/window/main.bpf.c and crates/agent share: options set before the load, an epoch of a VM, as it ends, and
 * sums that need no epoch to end.
 *
 * Windows are in the hardware's unit: PAUSEs (AMD), TSC cycles (Intel); thresholds in spins of waiting loops.
 */
#ifndef UNSPIN_ABI_BPF_WINDOW_H
#define UNSPIN_ABI_BPF_WINDOW_H

#include "../types.h"

/* Constant while the programs are loaded. */
struct unspin_window_options {
	unspin_u32 control; /* enum unspin_window_control of policy/model/ple_window.h: fixed, kvm or apple */
	unspin_u32 base;    /* struct unspin_window_rule */
	unspin_u32 grow;
	unspin_u32 shrink;
	unspin_u32 max;
	unspin_u32 initial; /* struct unspin_apple_rule */
	unspin_u32 lower;
	unspin_u32 upper;
	unspin_u32 delta;
	unspin_u32 everyone; /* 1: every VM; 0: those of the processes named */
	unspin_u32 bound;    /* enum unspin_spin_bound of policy/model/spin_threshold.h */
	unspin_u32
		notifies; /* bound by threshold: 1: guests are told, but for processes of which something else is said */
	unspin_u64 cycle_ps; /* Intel: time of a TSC cycle; 0: a unit's time is measured */
};
UNSPIN_ASSERT_SIZE(struct unspin_window_options, 56);

/*
 * 1,000 pause-loop exits of a VM (rulings 17 to 19). Where the guests' thresholds are set instead of windows these are the exits
 * that policy/model/spin_threshold.h counts, and a window is a threshold, in spins.
 */
struct unspin_window_epoch {
	unspin_u32 vm;	    /* number in order of appearance */
	unspin_u32 process; /* of its VMM */
	unspin_u64 begin_ns, end_ns;
	unspin_u64 exits;
	unspin_u64 window_units; /* sum of the windows in force at the exits */
	unspin_u64 mean_units;	 /* sum, over the exits, of the mean window of the VM's vCPUs: ruling 19's window */
	unspin_u64 handling_ns;
	unspin_u64 cpu_ns;
	unspin_u64 unit_ps;	     /* time of one unit, as known by then, or UNSPIN_UNKNOWN */
	unspin_u64 inefficiency_ppm; /* or UNSPIN_UNKNOWN */
	unspin_u32 window;	     /* that the VM was to have; the control kvm: 0, each vCPU has its own */
	unspin_u32 vcpus;	     /* seen so far */
};
UNSPIN_ASSERT_SIZE(struct unspin_window_epoch, 88);

/* One VM since it was seen first. */
struct unspin_window_sums {
	unspin_u64 exits;	 /* pause-loop exits */
	unspin_u64 window_units; /* sum of the windows in force at them */
	unspin_u64 mean_units;	 /* as in struct unspin_window_epoch */
	unspin_u64 handling_ns;
	unspin_u64 cpu_ns;
	unspin_u64 spun_ns; /* of the window spun through quickest: the guest's time, and that window */
	unspin_u64 spun_units;
};
UNSPIN_ASSERT_SIZE(struct unspin_window_sums, 56);

struct unspin_window_globals {
	unspin_u64 vms;		  /* numbers given so far */
	unspin_u64 destroyed;	  /* VMs that are gone */
	unspin_u64 exits;	  /* pause-loop exits of these VMs */
	unspin_u64 changes;	  /* windows that were changed */
	unspin_u64 refusals;	  /* windows that the module would not change */
	unspin_u64 lost_epochs;	  /* no room in the ring */
	unspin_u64 left_alone;	  /* exits of vCPUs for which there was no memory */
	unspin_u64 pv_page;	  /* vCPUs whose guests have a page to be told in */
	unspin_u64 lost_pv_pages; /* pages that could not be read or written, or lacked the magic */
};
UNSPIN_ASSERT_SIZE(struct unspin_window_globals, 72);

#endif
