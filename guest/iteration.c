/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* iteration.c - a task's iterations: user work, kernel work, a lock held, and periodically a shootdown or a wake-up. */
#include "guest.h"
#include "../locks/all.h"

/* A lock, and for checks the vCPU inside, on another cache line so that it does not slow the lock's words down. */
struct lock_slot {
	union any_lock lock;
	unspin_u32 holder __attribute__((aligned(64))); /* vCPU, or UNSPIN_NOBODY; written inside only */
	unspin_u32 readers;				/* number of readers inside */
};

static struct lock_slot lock_slots[UNSPIN_GUEST_LOCKS_MAX];
static struct lock_operations operations;
static _Bool blocks; /* waiters of this lock sleep, so tasks may be switched while they hold it or wait for it */

#define LOCK_TRAITS(name, traits) [UNSPIN_LOCK_##name] = (traits),
static const unspin_u8 lock_traits[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCK_TRAITS(LOCK_TRAITS)};

/* The lock function of UNSPIN_FAULT_EXCLUSION: excludes no vCPU. */
static void let_in(union any_lock *lock)
{
	(void)lock;
}

/* Called once, by one vCPU, before any vCPU takes a lock. */
void locks_prepare(void)
{
	operations = lock_operations[PARAMETERS->lock_kind];
	blocks = (lock_traits[PARAMETERS->lock_kind] & UNSPIN_LOCK_BLOCKS) != 0;
	if (PARAMETERS->fault_injection == UNSPIN_FAULT_EXCLUSION)
		operations.lock = operations.unlock = operations.read_lock = operations.read_unlock = let_in;
	for (unspin_u32 i = 0; i < UNSPIN_GUEST_LOCKS_MAX; i++) {
		operations.init(&lock_slots[i].lock);
		lock_slots[i].holder = UNSPIN_NOBODY;
	}
}

/* The vCPU inside, or UNSPIN_NOBODY: VEE'13's holder_id (section 3). May be out of date. For any vCPU. */
unspin_u32 lock_holder(unspin_u32 lock)
{
	return *(volatile unspin_u32 *)&lock_slots[lock].holder;
}

/* Holds the lock for `loops`. Panics if another vCPU is inside: `holder` is plain memory, which both would change. */
static void hold(struct vcpu *self, struct lock_slot *slot, unspin_u32 loops)
{
	volatile unspin_u32 *holder = &slot->holder, *readers = &slot->readers;
	unspin_u32 number = self->number;

	if (*holder != UNSPIN_NOBODY || *readers)
		panic(UNSPIN_PANIC_EXCLUSION, 0, 0, *holder);
	*holder = number;
	set_state(self, UNSPIN_STATE_HOLDING);
	if (PARAMETERS->workload == UNSPIN_WORKLOAD_READ_A_FILE)
		replace_page(self);
	work_loops(loops);
	if (*holder != number || *readers)
		panic(UNSPIN_PANIC_EXCLUSION, 0, 0, *holder);
	*holder = UNSPIN_NOBODY;
}

/* The same as a reader: panics if a writer is inside. */
static void hold_reading(struct vcpu *self, struct lock_slot *slot, unspin_u32 loops)
{
	volatile unspin_u32 *holder = &slot->holder;

	__atomic_fetch_add(&slot->readers, 1, __ATOMIC_ACQ_REL);
	if (*holder != UNSPIN_NOBODY)
		panic(UNSPIN_PANIC_EXCLUSION, 0, 0, *holder);
	set_state(self, UNSPIN_STATE_HOLDING);
	if (PARAMETERS->workload == UNSPIN_WORKLOAD_READ_A_FILE)
		read_page(self, loops);
	else
		work_loops(loops);
	if (*holder != UNSPIN_NOBODY)
		panic(UNSPIN_PANIC_EXCLUSION, 0, 0, *holder);
	__atomic_fetch_sub(&slot->readers, 1, __ATOMIC_ACQ_REL);
	self->statistics->reads++;
}

/* Adds the acquisition's wait and hold times to the statistics. Called after unlock. */
static void count_acquisition(struct vcpu *self)
{
	struct unspin_guest_statistics *statistics = self->statistics;
	const struct unspin_guest_wait *wait = &self->iteration.wait;
	unspin_u64 wait_cycles = wait->end_tsc - wait->begin_tsc;
	unspin_u64 hold_cycles = wait->released_tsc - wait->end_tsc;

	statistics->hold_cycles += hold_cycles;
	histogram_add(&statistics->hold, hold_cycles);
	if (wait->spins == 0)
		return;
	statistics->lock_waits++;
	statistics->lock_wait_cycles += wait_cycles;
	statistics->lock_wait_stolen_ns += self->iteration.wait_stolen_ns;
	histogram_add(&statistics->lock_wait, wait_cycles);
	if (wait_cycles > statistics->longest_wait_cycles)
		statistics->longest_wait_cycles = wait_cycles;
}

static void lock_and_hold(struct vcpu *self, unspin_u32 number, unspin_u32 loops, _Bool reader)
{
	struct lock_slot *slot = &lock_slots[number];
	enum unspin_section_class class = lock_class(PARAMETERS->lock_kind, reader);

	if (!blocks)
		preempt_disable(self);
	wait_begin(self, UNSPIN_WAIT_LOCK, number, 0);
	pv_page_asks(self, number);
	set_state(self, UNSPIN_STATE_WAITING);
	__atomic_store_n(&self->asking, number + 1, __ATOMIC_RELAXED);
	(reader ? operations.read_lock : operations.lock)(&slot->lock);
	wait_end(self);
	pv_page_holds(self);
	section_begins(self, class);
	__atomic_store_n(&self->asking, 0, __ATOMIC_RELAXED);
	(reader ? hold_reading : hold)(self, slot, loops);
	section_ends(self, class);
	(reader ? operations.read_unlock : operations.unlock)(&slot->lock);
	self->iteration.wait.released_tsc = rdtsc();
	pv_page_released(self);
	set_state(self, UNSPIN_STATE_KERNEL);
	count_acquisition(self);
	wait_log(self);
	if (!blocks)
		preempt_enable(self);
}

/* Whether something that is done every so many iterations is due now; 0: never. */
static _Bool due(unspin_u32 *iterations_left, unspin_u32 every_iterations)
{
	if (every_iterations == 0 || --*iterations_left != 0)
		return 0;
	*iterations_left = every_iterations;
	return 1;
}

/*
 * Of two loads between which the guest changes, whether this is the second: a lock of each vCPU's own and shootdowns. The first one has
 * the shared locks and none. All VMs of a host change at the same time, if they have its TSC.
 */
static _Bool is_second_load(const struct unspin_guest_parameters *p)
{
	return p->load_cycles != 0 && rdtsc() / p->load_cycles & 1;
}

static void iteration(struct vcpu *self)
{
	const struct unspin_guest_parameters *p = PARAMETERS;
	_Bool second = is_second_load(p);
	struct iteration_draw draw =
		iteration_draw(&self->iteration.random, &p->user_work, &p->kernel_work, &p->hold, p->locks);

	if (draw.user_loops) {
		set_state(self, UNSPIN_STATE_USER);
		enter_user(draw.user_loops);
	}
	set_state(self, UNSPIN_STATE_KERNEL);
	work_loops(draw.kernel_loops);
	if (p->workload == UNSPIN_WORKLOAD_PING_PONG)
		ping_pong(self);
	else
		lock_and_hold(self, p->locks && !second ? draw.lock : self->number, draw.hold_loops, reads(self));
	if (p->workload == UNSPIN_WORKLOAD_INTERRUPTS)
		apic_send(self->number, VECTOR_WORK);
	if ((second || p->load_cycles == 0) &&
	    due(&self->iteration.iterations_until_shootdown, p->shootdown_every_iterations))
		shootdown(self);
	if (due(&self->iteration.iterations_until_wakeup, p->wakeup_every_iterations))
		pass_token(self);
	count_one(&self->statistics->operations);
	if (due(&self->iterations_until_pv_page, self->pv_page_every_iterations))
		pv_page_register(self);
	if (*(volatile unspin_u32 *)&self->need_switch)
		task_yield(self);
}

/* Runs iterations until those of the parameters are done or the VMM asks to stop. */
void iterations_run(struct vcpu *self)
{
	unspin_u32 left = PARAMETERS->iterations;

	while (!stop_asked()) {
		iteration(self);
		if (PARAMETERS->iterations != 0 && --left == 0)
			return;
	}
	wake_all_to_stop();
	ping_pong_ends(self);
}
