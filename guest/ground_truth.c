/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ground_truth.c - the ground truth of waits: the waiter logs each wait, its cause and times (struct
 * unspin_guest_wait).
 */
#include "guest.h"

/*
 * Sets notice_at_spins to the nearer of stall and call for help, so that the waiting loop makes one comparison for
 * both.
 */
static void notice_next(struct vcpu *self)
{
	_Bool help_first = self->iteration.help_at_spins < self->iteration.stall_at_spins;

	self->iteration.notice_at_spins = help_first ? self->iteration.help_at_spins : self->iteration.stall_at_spins;
}

/* A wait begins: spins are counted for it until wait_end(). A task has one wait at a time; handlers never wait. */
void wait_begin(struct vcpu *self, enum unspin_wait_kind kind, unspin_u32 lock, unspin_u64 targets)
{
	self->iteration.wait = (struct unspin_guest_wait){
		.targets = targets,
		.lock = (unspin_u16)lock,
		.kind = (unspin_u8)kind,
		.holder_at_stall = UNSPIN_NOBODY,
	};
	self->iteration.wait_begin_spins = self->statistics->spin_count;
	self->iteration.stall_at_spins = self->iteration.wait_begin_spins + PARAMETERS->stall_spins + 1;
	self->iteration.help_at_spins = ~0ull;
	if (kind == UNSPIN_WAIT_LOCK && PARAMETERS->help_after_spins)
		self->iteration.help_at_spins =
			self->iteration.wait_begin_spins + platform_spin_count(PARAMETERS->help_after_spins);
	notice_next(self);
	self->iteration.wait_stolen_ns = steal_time_ns(self);
	self->iteration.wait.begin_tsc = rdtsc();
}

/* The vCPUs that wait for this lock now, one bit each; may be out of date. */
static unspin_u64 vcpus_asking(unspin_u32 lock)
{
	unspin_u64 asking = 0;

	for (unspin_u32 i = 0; i < PARAMETERS->vcpus; i++) {
		if (__atomic_load_n(&vcpu_of(i)->asking, __ATOMIC_RELAXED) == lock + 1)
			asking |= 1ull << i;
	}
	return asking;
}

/* The wait has just passed stall_spins (ruling 10): records whom it waits for, which can only be seen now. */
static void wait_stalled(struct vcpu *self)
{
	struct unspin_guest_wait *wait = &self->iteration.wait;

	wait->stall_tsc = rdtsc();
	wait->preempted_at_stall = steal_time_preempted();
	if (wait->kind == UNSPIN_WAIT_SHOOTDOWN) {
		wait->waiting_at_stall = shootdown_unanswered(self);
		return;
	}
	wait->holder_at_stall = (unspin_u8)lock_holder(wait->lock);
	wait->waiting_at_stall = vcpus_asking(wait->lock);
	self->statistics->stalls++;
	if (wait->holder_at_stall == UNSPIN_NOBODY)
		self->statistics->stalls_unheld++;
}

/* The wait has reached notice_at_spins. A stall is recorded before the host is asked for help, which may take long. */
void wait_noticed(struct vcpu *self)
{
	unspin_u64 spins = self->statistics->spin_count;

	if (spins == self->iteration.stall_at_spins) {
		self->iteration.stall_at_spins = ~0ull;
		wait_stalled(self);
	}
	if (spins == self->iteration.help_at_spins) {
		self->iteration.help_at_spins += platform_spin_count(PARAMETERS->help_after_spins);
		vcpu_asks_for_help(self);
	}
	notice_next(self);
}

/* Excludes `spins`, which other tasks of this vCPU have spun meanwhile, from the current wait. */
void wait_shift(struct vcpu *self, unspin_u64 spins)
{
	struct iteration_state *iteration = &self->iteration;

	iteration->wait_begin_spins += spins;
	iteration->stall_at_spins += iteration->stall_at_spins == ~0ull ? 0 : spins;
	iteration->help_at_spins += iteration->help_at_spins == ~0ull ? 0 : spins;
	notice_next(self);
}

void wait_end(struct vcpu *self)
{
	unspin_u64 spins = self->statistics->spin_count - self->iteration.wait_begin_spins;

	self->iteration.wait.end_tsc = rdtsc();
	self->iteration.wait_stolen_ns = steal_time_ns(self) - self->iteration.wait_stolen_ns;
	self->iteration.wait.spins = spins < 0xffffffff ? (unspin_u32)spins : 0xffffffff;
	self->iteration.stall_at_spins = self->iteration.help_at_spins = self->iteration.notice_at_spins = ~0ull;
}

/*
 * The next free record of this vCPU's log; NULL when the log is full. A handler may interrupt this anywhere and take a
 * record too, so the index is incremented by one instruction.
 */
static struct unspin_guest_wait *log_record(struct vcpu *self)
{
	struct unspin_guest_statistics *statistics = self->statistics;
	unspin_u64 index = __atomic_fetch_add(&statistics->log_kept, 1, __ATOMIC_RELAXED);

	if (index < PARAMETERS->log_records)
		return &self->log[index];
	__atomic_fetch_sub(&statistics->log_kept, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&statistics->log_dropped, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Writes a record, its kind last: a record whose kind the VMM sees is complete. */
static void log_write(struct vcpu *self, const struct unspin_guest_wait *wait)
{
	struct unspin_guest_wait *record = log_record(self), incomplete = *wait;

	if (!record)
		return;
	incomplete.kind = 0;
	*record = incomplete;
	__atomic_store_n(&record->kind, wait->kind, __ATOMIC_RELEASE);
}

/* Logs the wait that has ended, if it is long enough and the log has room. */
void wait_log(struct vcpu *self)
{
	if (self->iteration.wait.spins >= PARAMETERS->log_minimum_spins)
		log_write(self, &self->iteration.wait);
}

/* Logs that this vCPU has just answered the shootdown of vCPU `sender`. */
void answer_log(struct vcpu *self, unspin_u32 sender)
{
	unspin_u64 now = rdtsc();
	struct unspin_guest_wait answer = {
		.begin_tsc = now,
		.end_tsc = now,
		.targets = 1ull << sender,
		.kind = UNSPIN_WAIT_ANSWER,
		.holder_at_stall = UNSPIN_NOBODY,
	};

	if (PARAMETERS->log_records)
		log_write(self, &answer);
}
