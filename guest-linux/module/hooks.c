// SPDX-License-Identifier: GPL-2.0-only
/*
 * hooks.c - counts the mutexes and reader-writer semaphores that the task of this CPU waits for or holds, which the preempt
 * count leaves out (ruling 26). Off unless hooks=1.
 *
 * At the entry of the functions that cannot fail (ftrace) the count goes up before the lock is asked for, at that of unlock it
 * goes down; where taking can fail, at the return that shows it did not (fprobe). It is the task's: put aside when the task is
 * switched out, taken up where it runs next. What is taken or freed by other ways (ww_mutex, a semaphore that another task
 * frees) is missed or counted too long: a count never goes below 0, and a host bounds what it grants.
 */
#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/hash.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/timex.h>
#include <linux/tracepoint.h>

#include "hooks.h"

#define ASIDE_BITS 10
#define ASIDE_TRIES 8
#define MEASURED_PAIRS 10000

/* Counts of tasks that do not run, by task; a task without one has 0. */
struct aside {
	struct task_struct *task;
	u32 count;
};
static struct aside aside[1 << ASIDE_BITS];
static atomic_t aside_used = ATOMIC_INIT(0);

static struct aside *aside_of(struct task_struct *task, int try)
{
	return &aside[(hash_ptr(task, ASIDE_BITS) + try) & ((1 << ASIDE_BITS) - 1)];
}

/* Full: the count is lost, and the section with it. */
static notrace void put_aside(struct task_struct *task, u32 count)
{
	for (int try = 0; try < ASIDE_TRIES; try++) {
		struct aside *place = aside_of(task, try);

		if (cmpxchg(&place->task, NULL, task))
			continue;
		place->count = count;
		atomic_inc(&aside_used);
		return;
	}
}

/* The task was switched out before it is switched in: what it put aside is there. */
static notrace u32 take_up(struct task_struct *task)
{
	for (int try = 0; atomic_read(&aside_used) && try < ASIDE_TRIES; try++) {
		struct aside *place = aside_of(task, try);
		u32 count = place->count;

		if (READ_ONCE(place->task) != task)
			continue;
		atomic_dec(&aside_used);
		smp_store_release(&place->task, NULL);
		return count;
	}
	return 0;
}

static notrace void on_switch(void *data, bool preempt, struct task_struct *before, struct task_struct *next,
			      unsigned int state)
{
	struct unspin_counts *counts = this_cpu_counts();

	if (counts->sleeping)
		put_aside(before, counts->sleeping);
	WRITE_ONCE(counts->sleeping, take_up(next));
}

static notrace void add(int change)
{
	struct unspin_counts *counts;

	preempt_disable_notrace();
	counts = this_cpu_counts();
	if (change > 0 || counts->sleeping)
		WRITE_ONCE(counts->sleeping, counts->sleeping + change);
	preempt_enable_notrace();
}

static notrace void on_ask(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
			   struct ftrace_regs *registers)
{
	add(1);
}

static notrace void on_release(unsigned long ip, unsigned long parent, struct ftrace_ops *ops,
			       struct ftrace_regs *registers)
{
	add(-1);
}

static notrace void on_zero(struct fprobe *probe, unsigned long entry, unsigned long back,
			    struct ftrace_regs *registers, void *data)
{
	if ((int)ftrace_regs_get_return_value(registers) == 0)
		add(1);
}

static notrace void on_one(struct fprobe *probe, unsigned long entry, unsigned long back, struct ftrace_regs *registers,
			   void *data)
{
	if ((int)ftrace_regs_get_return_value(registers) == 1)
		add(1);
}

static struct ftrace_ops ask = {.func = on_ask}, release = {.func = on_release};
static struct fprobe killable = {.exit_handler = on_zero}, try = {.exit_handler = on_one};
static const char *const asked[] = {"mutex_lock", "down_read", "down_write"};
static const char *const released[] = {"mutex_unlock", "up_read", "up_write"};
static const char *killed[] = {"mutex_lock_interruptible", "mutex_lock_killable", "down_read_interruptible",
			       "down_read_killable", "down_write_killable"};
static const char *tried[] = {"mutex_trylock", "down_read_trylock", "down_write_trylock"};
static struct tracepoint *switches;

static void find_switches(struct tracepoint *point, void *unused)
{
	if (!strcmp(point->name, "sched_switch"))
		switches = point;
}

static int hook(struct ftrace_ops *ops, const char *const *names, int count)
{
	for (int i = 0; i < count; i++) {
		int refused = ftrace_set_filter(ops, (unsigned char *)names[i], strlen(names[i]), i == 0);

		if (refused)
			return refused;
	}
	return register_ftrace_function(ops);
}

/* TSC cycles of a pair of calls that no other task waits for. */
static u64 cycles_of_pair(void)
{
	static DEFINE_MUTEX(mutex);
	u64 begin = get_cycles();

	for (int i = 0; i < MEASURED_PAIRS; i++) {
		mutex_lock(&mutex);
		mutex_unlock(&mutex);
	}
	return div_u64(get_cycles() - begin, MEASURED_PAIRS);
}

static int attached; /* how far start_hooks() came */

void stop_hooks(void)
{
	if (attached > 4)
		unregister_fprobe(&try);
	if (attached > 3)
		unregister_fprobe(&killable);
	if (attached > 2)
		unregister_ftrace_function(&ask);
	if (attached > 1)
		unregister_ftrace_function(&release);
	if (attached > 0)
		tracepoint_probe_unregister(switches, on_switch, NULL);
	tracepoint_synchronize_unregister();
	attached = 0;
}

int start_hooks(void)
{
	u64 before = cycles_of_pair();
	int refused;

	for_each_kernel_tracepoint(find_switches, NULL);
	if (!switches)
		return -ENOENT;
	/* Unlocks first: a count that only falls stays 0. */
	refused = tracepoint_probe_register(switches, on_switch, NULL);
	attached += !refused;
	refused = refused ?: hook(&release, released, ARRAY_SIZE(released));
	attached += !refused;
	refused = refused ?: hook(&ask, asked, ARRAY_SIZE(asked));
	attached += !refused;
	refused = refused ?: register_fprobe_syms(&killable, killed, ARRAY_SIZE(killed));
	attached += !refused;
	refused = refused ?: register_fprobe_syms(&try, tried, ARRAY_SIZE(tried));
	attached += !refused;
	if (refused) {
		stop_hooks();
		return refused;
	}
	pr_info("unspin_counts: a mutex's pair takes %llu cycles, with hooks %llu\n", before, cycles_of_pair());
	return 0;
}
