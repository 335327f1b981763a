/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sampler.bpf.h - the meters of vCPUs and the sums of their VMs, and samples of them at random times (policy/auto/useful_time.h).
 *
 * A timer of each CPU stops the vCPU that runs there, as any interrupt of the host does: kvm_exit notes where its guest was, and the
 * timer's callback, in the softirq that follows on the same CPU, counts that. It is armed again where a guest is entered, so that
 * CPUs without vCPUs have no timer.
 */
#ifndef UNSPIN_BPF_USEFUL_TIME_SAMPLER_H
#define UNSPIN_BPF_USEFUL_TIME_SAMPLER_H

#include "../common/kernel_types.h"

#include <bpf/bpf_helpers.h>

#include "../../policy/auto/useful_time.h"

#define VMS_MAX 4096

/* Mean time between samples of a CPU, ns; 0: there are none. Set by the loader. */
const volatile u32 sample_ns = 0;

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct unspin_spin_meter);
} meters SEC(".maps");

/* By process. User space takes out those that are gone. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, VMS_MAX);
	__type(key, u32);
	__type(value, struct unspin_useful_time);
} useful_times SEC(".maps");

static __always_inline struct unspin_useful_time *sums_of(u32 process)
{
	struct unspin_useful_time *sums = bpf_map_lookup_elem(&useful_times, &process), none = {};

	if (sums)
		return sums;
	bpf_map_update_elem(&useful_times, &process, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&useful_times, &process);
}

/* One CPU; used by that CPU with interrupts off, and in the callback. */
struct sampler {
	struct bpf_timer timer;
	u32 ready; /* that is made */
	u32 armed;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* set by the loader: possible CPUs */
	__type(key, u32);
	__type(value, struct sampler);
} samplers SEC(".maps");

/* Softirq on the CPU it was armed on; the thread that runs there is current. */
static int take_sample(void *map, u32 *cpu, struct sampler *here)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct unspin_spin_meter *meter = bpf_task_storage_get(&meters, p, NULL, 0);
	struct unspin_useful_time *sums;

	here->armed = 0;
	if (!meter)
		return 0;
	sums = sums_of(bpf_get_current_pid_tgid() >> 32);
	if (sums)
		unspin_meter_sample(meter, sums);
	return 0;
}

/* The current vCPU enters its guest: the next sample comes after half the mean time to one and a half times that. */
static __always_inline void keep_sampling(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct sampler *here = bpf_map_lookup_elem(&samplers, &cpu);

	if (!here || here->armed)
		return;
	if (!here->ready) {
		if (bpf_timer_init(&here->timer, &samplers, CLOCK_MONOTONIC) == 0)
			bpf_timer_set_callback(&here->timer, take_sample);
		here->ready = 1;
	}
	if (bpf_timer_start(&here->timer, sample_ns / 2 + bpf_get_prandom_u32() % sample_ns, BPF_F_TIMER_CPU_PIN) == 0)
		here->armed = 1;
}

#endif
