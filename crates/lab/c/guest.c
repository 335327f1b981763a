/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* guest.c - the simulated guest's tasks: the iterations of guest/iteration.c, with the locks of locks/ and the draws of work.h. */
#include "lab.h"

#include "../../../locks/all.h"
#include "../../../locks/parts/work.h"

#include "tau.h"

#define LINE_BYTES 64u

_Static_assert(UNSPIN_LAB_TAU_SPINS == PREEMPTABLE_TICKET_TAU_SPINS && UNSPIN_LAB_TAU_FOREVER == PLATFORM_FOREVER,
	       "tau.h differs from locks/");

/* Bytes of a lock of this kind, rounded up to cache lines; `union any_lock` has room for the largest. */
static unspin_u64 lock_stride(unspin_u32 lock_kind)
{
	return (lock_bytes[lock_kind] + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

unspin_u64 unspin_lab_unanswered_at(unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 number)
{
	return locks * lock_stride(lock_kind) + (unspin_u64)number * LINE_BYTES;
}

unspin_u64 unspin_lab_memory_bytes(unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 vcpus)
{
	return unspin_lab_unanswered_at(lock_kind, locks, vcpus);
}

static union any_lock *lock_at(unsigned char *memory, unspin_u32 lock_kind, unspin_u32 lock)
{
	return (union any_lock *)(memory + lock * lock_stride(lock_kind));
}

void unspin_lab_memory_init(unsigned char *memory, unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 tau_spins)
{
	for (unspin_u32 i = 0; i < locks; i++) {
		union any_lock *lock = lock_at(memory, lock_kind, i);

		if (lock_kind == UNSPIN_LOCK_preemptable_ticket)
			preemptable_ticket_init_tau(&lock->preemptable_ticket, tau_spins);
		else if (lock_kind == UNSPIN_LOCK_paravirtual_preemptable_ticket)
			paravirtual_preemptable_ticket_init_tau(&lock->paravirtual_preemptable_ticket, tau_spins);
		else
			lock_operations[lock_kind].init(lock);
	}
}

static unspin_u32 ask(unspin_u32 kind, unspin_u32 first, unspin_u32 second)
{
	return unspin_lab_perform(kind, 0, first, second);
}

static void lock_and_hold(struct unspin_lab_task *task, const struct lock_operations *operations, unspin_u32 number,
			  unspin_u32 loops)
{
	union any_lock *lock = lock_at(task->memory, task->lock_kind, number);

	task->asked = number + 1;
	operations->lock(lock);
	ask(UNSPIN_LAB_HOLD, loops, number);
	operations->unlock(lock);
	task->released = number + 1;
}

/* As in guest/shootdown.c. */
static void shootdown(struct unspin_lab_task *task)
{
	unspin_u64 at = unspin_lab_unanswered_at(task->lock_kind, task->memory_locks, task->number);
	struct platform_word *unanswered = (struct platform_word *)(task->memory + at);
	unspin_u32 left;

	if (task->vcpus == 1)
		return;
	platform_store_relaxed(unanswered, task->vcpus - 1);
	ask(UNSPIN_LAB_SEND, 0, 0);
	left = platform_load_acquire(unanswered);
	while (left)
		left = platform_wait_while(unanswered, left, PLATFORM_FOREVER);
}

/* As in guest/wakeup.c. */
static void pass_token(void)
{
	ask(UNSPIN_LAB_PASS, 0, 0);
	while (!ask(UNSPIN_LAB_TAKE, 0, 0))
		ask(UNSPIN_LAB_HALT, 0, 0);
}

/* Whether something that is done every so many iterations is due now; 0: never. */
static _Bool due(unspin_u32 *iterations_left, unspin_u32 every_iterations)
{
	if (every_iterations == 0 || --*iterations_left != 0)
		return 0;
	*iterations_left = every_iterations;
	return 1;
}

void unspin_lab_run(struct unspin_lab_task *task)
{
	const struct lock_operations operations = lock_operations[task->lock_kind];
	unspin_u32 until_shootdown = task->shootdown_every_iterations, until_wakeup = task->wakeup_every_iterations;

	for (unspin_u32 i = 0; task->iterations == 0 || i < task->iterations; i++) {
		/* The world changes it between iterations. */
		unspin_u32 load = *(volatile unspin_u32 *)&task->load;
		_Bool shared = task->locks != 0 && load != UNSPIN_LAB_LOAD_SHOOTDOWNS;
		struct iteration_draw draw =
			iteration_draw(&task->random, task->user_work, task->kernel_work, task->hold, task->locks);

		if (draw.user_loops)
			ask(UNSPIN_LAB_USER, draw.user_loops, 0);
		if (draw.kernel_loops)
			ask(UNSPIN_LAB_KERNEL, draw.kernel_loops, 0);
		lock_and_hold(task, &operations, shared ? draw.lock : task->number, draw.hold_loops);
		if (load != UNSPIN_LAB_LOAD_LOCKS && due(&until_shootdown, task->shootdown_every_iterations))
			shootdown(task);
		if (due(&until_wakeup, task->wakeup_every_iterations))
			pass_token();
		ask(UNSPIN_LAB_ITERATED, 0, 0);
	}
	for (;;)
		ask(UNSPIN_LAB_DONE, 0, 0);
}

/* random_start() of locks/parts/work.h, for Rust. */
unspin_u64 unspin_lab_random_start(unspin_u64 seed, unspin_u32 number);
unspin_u64 unspin_lab_random_start(unspin_u64 seed, unspin_u32 number)
{
	return random_start(seed, number);
}
