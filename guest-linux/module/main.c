// SPDX-License-Identifier: GPL-2.0-only
/*
 * main.c - registers with the host where an unmodified Linux guest keeps its own counts of critical sections
 * (abi/guest/counts.h): of each CPU its __preempt_count and its current task, in whose task_struct RCU's nesting stands.
 *
 * It changes nothing in the kernel, and costs a hypercall a second on each CPU; with hooks=1 it also counts mutexes and
 * reader-writer semaphores (hooks.c). Where no host listens it does nothing.
 */
#include <linux/io.h>
#include <linux/kvm_para.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "hooks.h"

#define REPEAT_TICKS (HZ / 16) /* until the host has acknowledged */
#define REFRESH_TICKS (1 * HZ) /* from then on: a watcher may be exchanged */

DEFINE_PER_CPU(struct unspin_counts *, unspin_counts_of);

static bool hooks;
module_param(hooks, bool, 0444);
MODULE_PARM_DESC(hooks, "count mutexes and reader-writer semaphores, too");

/* Guest-physical address of a per-CPU variable of the kernel's: in the direct map, or page by page elsewhere. */
static phys_addr_t physical(void *address)
{
	if (virt_addr_valid(address))
		return virt_to_phys(address);
	return page_to_phys(vmalloc_to_page(address)) + offset_in_page(address);
}

static struct unspin_counts *describe(int cpu)
{
	struct unspin_counts *counts;

	/* A power of two: such an object does not cross a page. */
	counts = kzalloc_node(roundup_pow_of_two(sizeof(*counts)), GFP_KERNEL, cpu_to_node(cpu));
	if (!counts)
		return NULL;
	counts->preempt_count = physical(per_cpu_ptr(&__preempt_count, cpu));
	counts->current_task = physical(per_cpu_ptr(&current_task, cpu));
	counts->direct_map = PAGE_OFFSET;
	counts->direct_map_bytes = __pa(high_memory - 1) + 1;
#ifdef CONFIG_PREEMPT_RCU
	counts->rcu_nesting = offsetof(struct task_struct, rcu_read_lock_nesting);
#endif
	counts->task_flags = offsetof(struct task_struct, flags);
	counts->hooks = hooks;
	counts->magic = UNSPIN_COUNTS_MAGIC;
	return counts;
}

/* On each CPU: the host reads while that vCPU's thread is current, so it must be this one that registers. */
static void register_here(void *unused)
{
	struct unspin_counts *counts = this_cpu_read(unspin_counts_of);

	WRITE_ONCE(counts->acknowledged, 0);
	kvm_hypercall1(UNSPIN_HYPERCALL_REGISTER_COUNTS, virt_to_phys(counts));
}

static bool all_acknowledged(void)
{
	int cpu;

	for_each_online_cpu(cpu) if (READ_ONCE(per_cpu(unspin_counts_of, cpu)->acknowledged) !=
				     UNSPIN_COUNTS_MAGIC) return false;
	return true;
}

static void repeat(struct work_struct *work)
{
	on_each_cpu(register_here, NULL, 1);
	schedule_delayed_work(to_delayed_work(work), all_acknowledged() ? REFRESH_TICKS : REPEAT_TICKS);
}

static DECLARE_DELAYED_WORK(registration, repeat);

static void forget(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
	{
		struct unspin_counts *counts = per_cpu(unspin_counts_of, cpu);

		if (!counts)
			continue;
		/* The host reads the magic each time: after this it reads nothing, and the words may go. */
		WRITE_ONCE(counts->magic, 0);
		per_cpu(unspin_counts_of, cpu) = NULL;
		kfree(counts);
	}
}

static int __init start(void)
{
	int cpu;

	if (!kvm_para_available())
		return -ENODEV;
	for_each_possible_cpu(cpu)
	{
		per_cpu(unspin_counts_of, cpu) = describe(cpu);
		if (!per_cpu(unspin_counts_of, cpu)) {
			forget();
			return -ENOMEM;
		}
	}
	if (hooks) {
		int refused = start_hooks();

		if (refused) {
			forget();
			return refused;
		}
	}
	pr_info("unspin_counts: preempt count and current task of %u CPUs told to the host; RCU nesting %s\n",
		num_online_cpus(), IS_ENABLED(CONFIG_PREEMPT_RCU) ? "too" : "is in the count");
	schedule_delayed_work(&registration, 0);
	return 0;
}

static void __exit stop(void)
{
	cancel_delayed_work_sync(&registration);
	if (hooks)
		stop_hooks();
	forget();
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Registers with the host where this guest's counts of critical sections lie");
MODULE_LICENSE("GPL");
