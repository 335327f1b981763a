/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* turn.c - the turns of a vCPU: user work, kernel work, a lock held, now and then a shootdown or a wake-up. */
#include "guest.h"
#include "../locks/all.h"

/* A lock, and who is inside: on another line, since it is the observer's and must not disturb the lock's words. */
struct lock_slot {
	union any_lock lock;
	unspin_u32 holder __attribute__((aligned(64))); /* vCPU, or UNSPIN_NOBODY; written inside only */
};

static struct lock_slot lock_slots[UNSPIN_GUEST_LOCKS_MAX];
static struct lock_operations operations;

/* UNSPIN_FAULT_EXCLUSION's lock: it keeps nobody out. */
static void let_in(union any_lock *lock)
{
	(void)lock;
}

/* Once, by one vCPU, before any other takes a lock. */
void locks_prepare(void)
{
	operations = lock_operations[PARAMETERS->lock_kind];
	if (PARAMETERS->fault_injection == UNSPIN_FAULT_EXCLUSION)
		operations.lock = operations.unlock = let_in;
	for (unspin_u32 i = 0; i < UNSPIN_GUEST_LOCKS_MAX; i++) {
		operations.init(&lock_slots[i].lock);
		lock_slots[i].holder = UNSPIN_NOBODY;
	}
}

/* Who is inside, or UNSPIN_NOBODY: VEE'13's holder_id (section 3). A glance, from any vCPU. */
unspin_u32 lock_holder(unspin_u32 lock)
{
	return *(volatile unspin_u32 *)&lock_slots[lock].holder;
}

/* Inside the lock for so many loops. The holder word is plain memory: two vCPUs inside are bound to see each other. */
static void hold(struct vcpu *self, struct lock_slot *slot, unspin_u32 loops)
{
	volatile unspin_u32 *holder = &slot->holder;

	if (*holder != UNSPIN_NOBODY)
		panic(UNSPIN_PANIC_EXCLUSION, 0, 0, *holder);
	*holder = self->number;
	set_state(self, UNSPIN_STATE_HOLDING);
	work_loops(loops);
	if (*holder != self->number)
		panic(UNSPIN_PANIC_EXCLUSION, 0, 0, *holder);
	*holder = UNSPIN_NOBODY;
}

/* Adds what wait_begin to unlock have shown. Outside the lock. */
static void count_acquisition(struct vcpu *self)
{
	struct unspin_guest_statistics *statistics = self->statistics;
	const struct unspin_guest_wait *wait = &self->wait;
	unspin_u64 wait_cycles = wait->end_tsc - wait->begin_tsc;
	unspin_u64 hold_cycles = wait->released_tsc - wait->end_tsc;

	statistics->hold_cycles += hold_cycles;
	histogram_add(&statistics->hold, hold_cycles);
	if (wait->turns == 0)
		return;
	statistics->lock_waits++;
	statistics->lock_wait_cycles += wait_cycles;
	statistics->lock_wait_stolen_ns += self->wait_stolen_ns;
	histogram_add(&statistics->lock_wait, wait_cycles);
	if (wait_cycles > statistics->longest_wait_cycles)
		statistics->longest_wait_cycles = wait_cycles;
}

static void lock_and_hold(struct vcpu *self, unspin_u32 number, unspin_u32 loops)
{
	struct lock_slot *slot = &lock_slots[number];

	wait_begin(self, UNSPIN_WAIT_LOCK, number, 0);
	hint_asks(self, number);
	set_state(self, UNSPIN_STATE_WAITING);
	__atomic_store_n(&self->asking, number + 1, __ATOMIC_RELAXED);
	operations.lock(&slot->lock);
	wait_end(self);
	hint_holds(self);
	__atomic_store_n(&self->asking, 0, __ATOMIC_RELAXED);
	hold(self, slot, loops);
	operations.unlock(&slot->lock);
	self->wait.released_tsc = rdtsc();
	hint_released(self);
	set_state(self, UNSPIN_STATE_KERNEL);
	count_acquisition(self);
	wait_log(self);
}

/* Whether the n-th turn has come; a period of 0 never does. */
static _Bool due(unspin_u32 *turns_left, unspin_u32 every_turns)
{
	if (every_turns == 0 || --*turns_left != 0)
		return 0;
	*turns_left = every_turns;
	return 1;
}

static void turn(struct vcpu *self)
{
	const struct unspin_guest_parameters *p = PARAMETERS;
	struct turn_draw draw = turn_draw(&self->random, &p->user_work, &p->kernel_work, &p->hold, p->locks);

	if (draw.user_loops) {
		set_state(self, UNSPIN_STATE_USER);
		enter_user(draw.user_loops);
	}
	set_state(self, UNSPIN_STATE_KERNEL);
	work_loops(draw.kernel_loops);
	lock_and_hold(self, p->locks ? draw.lock : self->number, draw.hold_loops);
	if (due(&self->turns_until_shootdown, p->shootdown_every_turns))
		shootdown(self);
	if (due(&self->turns_until_wakeup, p->wakeup_every_turns))
		pass_token(self);
	self->statistics->operations++;
	if (due(&self->turns_until_hint, self->hint_every_turns))
		hint_register(self);
}

/* Until the parameters' turns are done or the VMM asks to stop. */
void turns_run(struct vcpu *self)
{
	unspin_u32 left = PARAMETERS->turns;

	while (!stop_asked()) {
		turn(self);
		if (PARAMETERS->turns != 0 && --left == 0)
			return;
	}
	wake_all_to_stop();
}
