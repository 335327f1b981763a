/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kernel.bpf.h - what the scheduler needs of the kernel: types, flags and functions of sched_ext, by hand.
 *
 * Types with ___steer are flavours of the kernel's: only the fields used, found by name when the program is loaded.
 * Numbers are those of Linux 7.2 (include/linux/sched/ext.h, kernel/sched/ext/internal.h); they are interface.
 */
#ifndef UNSPIN_BPF_SCHEDULER_KERNEL_H
#define UNSPIN_BPF_SCHEDULER_KERNEL_H

#include "../common/kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

typedef int s32;

enum { false, true };

enum {
	STEER_MAP_TYPE_PERCPU_ARRAY = 6,
	STEER_MAP_TYPE_LRU_HASH = 9,
};

#define SCX_DSQ_LOCAL 0x8000000000000002ull
#define SCX_WAKE_SYNC (1ull << 4) /* WF_SYNC: whoever wakes is about to sleep */
#define SCX_ENQ_WAKEUP (1ull << 0)
#define SCX_ENQ_PREEMPT (1ull << 32)
#define SCX_ENQ_REENQ (1ull << 40)
#define SCX_ENQ_LAST (1ull << 41)
#define SCX_DSQ_ITER_REV (1ull << 16)
#define SCX_SLICE_INF (~0ull)
#define SCX_OPS_ENQ_LAST (1ull << 1)
#define SCX_OPS_ENQ_EXITING (1ull << 2)
#define SCX_OPS_ENQ_MIGRATION_DISABLED (1ull << 4)
#define SCX_KICK_IDLE 1ull
#define SCX_KICK_PREEMPT 2ull
#define SCX_TASK_QUEUED 1u
#define PF_EXITING 0x00000004u
#define PF_KTHREAD 0x00200000u
#define SCHED_IDLE 5u
#define SCHED_EXT 7u
#define DEFAULT_PRIO 120
/* tg_bandwidth's RUNTIME_INF in microseconds, which scx gets for cpu.max = "max". */
#define STEER_NO_QUOTA (~0ull)

struct bpf_spin_lock {
	u32 val;
};
struct bpf_iter_scx_dsq {
	u64 __opaque[6];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	u64 __opaque[1];
} __attribute__((aligned(8)));

/* Only pointers to these are handed on: what is inside is the kernel's. */
struct cpumask {
	unsigned long bits[1];
};
struct bpf_cpumask {
	u32 usage;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity___steer {
	u64 sum_exec_runtime;
};
struct scx_dispatch_q___steer {
	u32 nr;
};
struct sched_ext_entity___steer {
	struct scx_dispatch_q___steer *dsq; /* where it waits; NULL: nowhere */
	u32 flags;
	u64 slice;
	u64 dsq_vtime;
};
struct thread_info___steer {
	u32 cpu;
};
struct task_struct___steer {
	struct thread_info___steer thread_info;
	unsigned int flags;
	int static_prio; /* DEFAULT_PRIO plus the nice value */
	unsigned int policy;
	int nr_cpus_allowed;
	unsigned short migration_disabled;
	int pid;
	int tgid;
	struct task_struct___steer *group_leader;
	u64 start_boottime;
	const struct cpumask *cpus_ptr;
	struct sched_entity___steer se;
	struct sched_ext_entity___steer scx;
};

struct kernfs_node {
	u64 id;
};
struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};
struct task_group {
	struct cgroup_subsys_state css;
	int idle;
};
enum cgroup_subsys_id {
	cpu_cgrp_id,
};
struct cgroup {
	struct cgroup_subsys_state self;
	struct cgroup_subsys_state *subsys[1];
	int level;
	struct kernfs_node *kn;
};

struct scx_cgroup_init_args {
	u32 weight;
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
};
struct scx_init_task_args {
	bool fork;
	struct cgroup *cgroup;
};
struct scx_exit_task_args {
	bool cancelled;
};
struct scx_cpu_release_args {
	int reason;
};
enum scx_exit_kind { STEER_NOT_ENDED };
struct scx_exit_info {
	enum scx_exit_kind kind;
	const char *reason;
	char *msg;
	char *dump;
};
struct scx_dump_ctx;

#pragma clang attribute pop

/* Sizes and order are the kernel's: these are handed to it. */
struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id;
	u64 slice;
	u64 vtime;
	u64 enq_flags;
};
struct scx_bpf_select_cpu_and_args {
	s32 prev_cpu;
	u64 wake_flags;
	u64 flags;
};

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle) __ksym;
s32 __scx_bpf_select_cpu_and(struct task_struct *p, const struct cpumask *allowed,
			     struct scx_bpf_select_cpu_and_args *args) __ksym;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p, struct scx_bpf_dsq_insert_vtime_args *args) __ksym;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
struct task_struct *scx_bpf_dsq_peek(u64 dsq_id) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, u64 slice) __ksym;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, u64 vtime) __ksym;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 enq_flags) __ksym;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id, u64 enq_flags) __ksym;
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags) __ksym;
u32 scx_bpf_reenqueue_local(void) __ksym;
/* Since Linux 7.1; needed where only VMs are ours. From any program, and what it does comes a moment later. */
void scx_bpf_dsq_reenq(u64 dsq_id, u64 reenq_flags) __ksym __weak;
void scx_bpf_dump_bstr(char *format, unsigned long long *data, u32 data__sz) __ksym;
void scx_bpf_exit_bstr(s64 code, char *format, unsigned long long *data, u32 data__sz) __ksym;

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
void bpf_cpumask_release(struct bpf_cpumask *mask) __ksym;
void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym;
const struct cpumask *scx_bpf_get_online_cpumask(void) __ksym;
void scx_bpf_put_cpumask(const struct cpumask *mask) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;
bool bpf_cpumask_subset(const struct cpumask *inner, const struct cpumask *outer) __ksym;
u32 bpf_cpumask_any_distribute(const struct cpumask *mask) __ksym;
u32 bpf_cpumask_any_and_distribute(const struct cpumask *one, const struct cpumask *other) __ksym;

/* The scheduler's own view of a task. */
#define scheduled(p) ((struct task_struct___steer *)(p))

/* The CPU that it runs on, or ran on last: scx_bpf_task_cpu(), without the call. x86 (arch/x86/include/asm/thread_info.h, Linux 7.2). */
static __always_inline s32 task_cpu(struct task_struct *p)
{
	return *(volatile u32 *)&scheduled(p)->thread_info.cpu;
}

/* kernel/sched/ext/internal.h, struct sched_ext_ops: libbpf matches members by name. */
struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*set_weight)(struct task_struct *p, u32 weight);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*enable)(struct task_struct *p);
	s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us);
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	void (*cpu_release)(s32 cpu, struct scx_cpu_release_args *args);
	void (*dump)(struct scx_dump_ctx *context);
	void (*dump_cpu)(struct scx_dump_ctx *context, s32 cpu, bool idle);
	void (*dump_task)(struct scx_dump_ctx *context, struct task_struct *p);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	u32 exit_dump_len;
	char name[128];
};

#endif
