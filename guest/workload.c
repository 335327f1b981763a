/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * workload.c - the workloads that do more in an iteration than hold a lock, or something else (enum
 * unspin_guest_workload).
 */
#include "guest.h"
#include "../locks/parts/rcu.h"
#include "../locks/test_and_test_and_set.h"

#define FILE_BYTES 4096u

/* The file-reading workload of eCS, section 5.3: one page of a file, its lock, and a buffer for each task. */
static struct test_and_test_and_set_lock page_lock __attribute__((aligned(64)));
static unspin_u8 pages[2][FILE_BYTES] __attribute__((aligned(64)));
static struct platform_word page_now; /* bit 0: the page that readers copy */
static struct rcu page_rcu;
static unspin_u8 buffers[UNSPIN_GUEST_TASKS_MAX][FILE_BYTES] __attribute__((aligned(64)));

/* Tokens that each task has received and not taken yet. */
static struct {
	struct platform_word word;
} __attribute__((aligned(64))) balls[UNSPIN_GUEST_TASKS_MAX];

/* Whether this iteration takes the lock for reading. Draws a random number in the workloads with readers only. */
_Bool reads(struct vcpu *self)
{
	unspin_u32 workload = PARAMETERS->workload;

	if (workload != UNSPIN_WORKLOAD_READERS_WRITERS && workload != UNSPIN_WORKLOAD_READ_A_FILE)
		return 0;
	return random_next(&self->iteration.random) % 100 < PARAMETERS->reader_percent;
}

/* Takes the page's lock; the wait is added to the statistics of lock waits. */
static void lock_page(struct vcpu *self)
{
	struct unspin_guest_statistics *statistics = self->statistics;
	unspin_u64 iterations = statistics->spin_count, begin = rdtsc(), stolen_ns = steal_time_ns(self);

	test_and_test_and_set_lock(&page_lock);
	if (statistics->spin_count == iterations)
		return;
	statistics->lock_waits++;
	statistics->lock_wait_cycles += rdtsc() - begin;
	statistics->lock_wait_stolen_ns += steal_time_ns(self) - stolen_ns;
	histogram_add(&statistics->lock_wait, rdtsc() - begin);
}

/*
 * Inside the file's semaphore as a reader: looks the page up in an RCU section, for `loops`, and copies it under its
 * lock.
 */
void read_page(struct vcpu *self, unspin_u32 loops)
{
	const unspin_u8 *page;

	preempt_disable(self);
	rcu_read_lock(&page_rcu);
	section_begins(self, UNSPIN_SECTION_RCU);
	page = pages[platform_load_acquire(&page_now) & 1];
	work_loops(loops);
	lock_page(self);
	section_begins(self, UNSPIN_SECTION_SPIN);
	__builtin_memcpy(buffers[task_number(self)], page, FILE_BYTES);
	section_ends(self, UNSPIN_SECTION_SPIN);
	test_and_test_and_set_unlock(&page_lock);
	section_ends(self, UNSPIN_SECTION_RCU);
	rcu_read_unlock(&page_rcu);
	preempt_enable(self);
}

/*
 * Inside the file's semaphore as a writer: replaces the page by the other one, and waits until no task reads the old
 * one.
 */
void replace_page(struct vcpu *self)
{
	unspin_u32 now = platform_load_relaxed(&page_now);

	__builtin_memset(pages[(now + 1) & 1], (int)self->number, FILE_BYTES);
	platform_exchange_ordered(&page_now, now + 1);
	rcu_synchronize(&page_rcu);
}

/* Called once, before the first iteration of any vCPU. */
void workload_prepare(void)
{
	rcu_init(&page_rcu);
	test_and_test_and_set_init(&page_lock);
}

/* The task at the same place on the neighbouring vCPU; the task itself if there is none. */
static unspin_u32 partner_of(unspin_u32 task)
{
	unspin_u32 vcpus = PARAMETERS->vcpus, vcpu = task % vcpus;

	return (vcpu ^ 1) < vcpus ? task - vcpu + (vcpu ^ 1) : task;
}

/*
 * Gives the partner a token and wakes it, then sleeps until this task has a token, and takes it. Both give one in every
 * iteration before they take one, so no wait is endless; `stop` ends the wait.
 */
void ping_pong(struct vcpu *self)
{
	unspin_u32 task = task_number(self), partner = partner_of(task);
	struct platform_word *own = &balls[task].word;

	platform_fetch_add_ordered(&balls[partner].word, 1);
	task_wake(partner);
	while (platform_load_acquire(own) == 0) {
		if (stop_asked())
			return;
		task_sleep(own, 0);
	}
	platform_fetch_add_ordered(own, -1u);
}

/* Called when a task ends because of `stop`: wakes its partner, so that it reads `stop` too. */
void ping_pong_ends(struct vcpu *self)
{
	if (PARAMETERS->workload == UNSPIN_WORKLOAD_PING_PONG)
		task_wake(partner_of(task_number(self)));
}

/* The interrupts workload: the handler works as long as an iteration's kernel work. */
void handle_work(struct interrupt_frame *frame)
{
	struct vcpu *self = this_vcpu();
	unspin_u64 random = random_start(PARAMETERS->seed, self->number) + self->statistics->interrupts_worked;

	(void)frame;
	interrupt_begins(self);
	work_loops(PARAMETERS->kernel_work.quantile_loops[random_next(&random) & 0xff]);
	self->statistics->interrupts_worked++;
	wrmsr(MSR_X2APIC_EOI, 0);
	interrupt_ends(self);
}
