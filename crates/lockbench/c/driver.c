/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* driver.c - the drivers of driver.h for one lock: DRIVER_LOCK of DRIVER_LOCK_HEADER, both given by build.rs. */
#include "driver.h"

#include DRIVER_LOCK_HEADER
#include "../../../locks/parts/ecs.h"
#include "../../../locks/parts/work.h"

#include <sched.h>
#include <time.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define LOCK(operation) JOIN(DRIVER_LOCK, operation)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

/* Two cache lines: adjacent lines are prefetched in pairs. */
#define SLOT_ALIGNMENT 128

/* A lock and what it protects, apart from each other so that waiters do not slow the holder down. */
struct slot {
	struct LOCK(_lock) lock __attribute__((aligned(SLOT_ALIGNMENT)));
	/* Plain on purpose: a lock that lets two in is a data race on these, which ThreadSanitizer reports. */
	volatile unspin_u32 inside __attribute__((aligned(SLOT_ALIGNMENT)));
	volatile unspin_u64 entries;
	struct platform_word holder; /* VEE'13 section 3, holder_id: thread number or UNSPIN_NOBODY; read by waiters */
};

/* Returns 1 if somebody else is inside. */
static unspin_u32 enter(struct slot *slot, unspin_u32 thread)
{
	unspin_u32 violated = slot->inside != UNSPIN_NOBODY;

	slot->inside = thread;
	slot->entries = slot->entries + 1;
	platform_store_relaxed(&slot->holder, thread);
	return violated;
}

/* Returns 1 if somebody else has come in meanwhile. */
static unspin_u32 leave(struct slot *slot, unspin_u32 thread)
{
	unspin_u32 violated = slot->inside != thread;

	platform_store_relaxed(&slot->holder, UNSPIN_NOBODY);
	slot->inside = UNSPIN_NOBODY;
	return violated;
}

static void account_wait(struct unspin_guest_statistics *statistics, const struct driver_run *run, unspin_u64 cycles)
{
	statistics->lock_waits++;
	statistics->lock_wait_cycles += cycles;
	if (cycles > statistics->longest_wait_cycles)
		statistics->longest_wait_cycles = cycles;
	histogram_add(&statistics->lock_wait, cycles);
	if (platform_self.wait_spins > run->stall_spins) {
		statistics->stalls++;
		statistics->stalls_unheld += platform_self.holder_at_stall == UNSPIN_NOBODY;
	}
}

static void account_acquisition(struct driver_outcome *outcome, unspin_u64 cycles)
{
	outcome->acquire_count[driver_acquire_bucket(cycles)]++;
	if (cycles > outcome->longest_cycles)
		outcome->longest_cycles = cycles;
}

/* One acquisition of `slot`, held for so many iterations of the work loop; returns violations. */
static unspin_u64 acquire_once(const struct driver_run *run, struct slot *slot, unspin_u32 thread, unspin_u32 loops,
			       struct unspin_guest_statistics *statistics, struct driver_outcome *outcome)
{
	unspin_u64 begin, acquired, done;
	unspin_u32 violations;

	platform_thread_begin_wait(&slot->holder);
	begin = driver_tsc();
	ecs_asks(driver_page);
	LOCK(_lock)(&slot->lock);
	platform_slice_begin();
	acquired = driver_tsc();
	violations = enter(slot, thread);
	work_loops(loops);
	violations += leave(slot, thread);
	LOCK(_unlock)(&slot->lock);
	platform_slice_end();
	if (ecs_released(driver_page))
		sched_yield();
	done = driver_tsc();

	account_acquisition(outcome, acquired - begin);
	statistics->operations++;
	statistics->hold_cycles += done - acquired;
	histogram_add(&statistics->hold, done - acquired);
	if (platform_self.wait_spins)
		account_wait(statistics, run, acquired - begin);
	return violations;
}

static unspin_u64 thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (unspin_u64)now.tv_sec * 1000000000u + (unspin_u64)now.tv_nsec;
}

/* Waits in the kernel so far, in this table. */
static unspin_u64 own_parks(void)
{
	const struct platform_seat *seat = platform_thread_seat(platform_self.number);

	return seat ? platform_load_relaxed(&seat->parks) : 0;
}

/* What was counted in the warm-up is forgotten, but for what checks exclusion. cpu_ns and parks become what to subtract. */
static void begin_measuring(const struct driver_run *run, struct unspin_guest_statistics *statistics,
			    struct driver_outcome *outcome)
{
	*statistics = (struct unspin_guest_statistics){.first_instruction_tsc = driver_tsc()};
	*outcome = (struct driver_outcome){.entries = outcome->entries, .violations = outcome->violations};
	platform_thread_start(run->pause_every_spins, run->stall_spins);
	outcome->parks = own_parks();
	outcome->cpu_ns = thread_cpu_ns();
}

/* Follows the phase; returns 0 when the thread is done. */
static int go_on(const struct driver_run *run, unspin_u32 *phase, struct unspin_guest_statistics *statistics,
		 struct driver_outcome *outcome)
{
	unspin_u32 now = platform_load_relaxed(run->phase);

	if (now != *phase && now == DRIVER_MEASURE)
		begin_measuring(run, statistics, outcome);
	*phase = now;
	if (now == DRIVER_STOP)
		return 0;
	return now == DRIVER_WARM_UP || !run->iterations || statistics->operations < run->iterations;
}

static void iterations(const struct driver_run *run, unspin_u32 thread, struct unspin_guest_statistics *statistics,
		       struct driver_outcome *outcome)
{
	struct slot *slots = run->slots;
	unspin_u64 random = random_start(run->seed, thread);
	unspin_u32 phase = DRIVER_WARM_UP;

	*outcome = (struct driver_outcome){0};
	platform_thread_join(run->table, thread);
	begin_measuring(run, statistics, outcome);
	while (go_on(run, &phase, statistics, outcome)) {
		struct iteration_draw draw =
			iteration_draw(&random, run->user_work, run->kernel_work, run->hold, run->locks);
		struct slot *slot = &slots[run->locks ? draw.lock : thread];

		work_loops(draw.user_loops);
		work_loops(draw.kernel_loops);
		outcome->violations += acquire_once(run, slot, thread, draw.hold_loops, statistics, outcome);
		outcome->entries++;
	}
	statistics->done_tsc = driver_tsc();
	outcome->cpu_ns = thread_cpu_ns() - outcome->cpu_ns;
	outcome->parks = own_parks() - outcome->parks;
	statistics->spin_count = platform_self.spins;
	statistics->pauses = platform_self.pauses;
	statistics->state = UNSPIN_STATE_DONE;
	platform_thread_leave();
}

static void validate(const struct driver_run *run, unspin_u32 thread, struct driver_validation *validation)
{
	struct slot *slots = run->slots;
	unspin_u64 random = random_start(run->seed, thread);

	*validation = (struct driver_validation){0};
	platform_thread_join(run->table, thread);
	platform_thread_start(run->pause_every_spins, run->stall_spins);
	for (unspin_u32 i = 0; i < run->iterations; i++) {
		struct iteration_draw draw =
			iteration_draw(&random, run->user_work, run->kernel_work, run->hold, run->locks);
		struct slot *slot = &slots[run->locks ? draw.lock : thread];

		platform_thread_begin_wait(0);
		if (random & 1) {
			LOCK(_lock)(&slot->lock);
			validation->locked++;
		} else if (LOCK(_trylock)(&slot->lock)) {
			validation->try_locked++;
		} else {
			validation->try_refused++;
			continue;
		}
		validation->violations += enter(slot, thread);
		validation->violations += !LOCK(_is_locked)(&slot->lock);
		work_loops(draw.hold_loops);
		validation->violations += leave(slot, thread);
		LOCK(_unlock)(&slot->lock);
	}
	platform_thread_leave();
}

static unspin_u64 latency(void *slots, unspin_u32 pairs)
{
	struct slot *slot = slots;
	unspin_u64 begin;

	platform_thread_start(1, ~0ull);
	begin = driver_tsc();
	for (unspin_u32 pair = 0; pair < pairs; pair++) {
		LOCK(_lock)(&slot->lock);
		LOCK(_unlock)(&slot->lock);
	}
	return driver_tsc() - begin;
}

static void prepare(void *slots, unspin_u32 count)
{
	struct slot *slot = slots;

	for (unspin_u32 i = 0; i < count; i++) {
		LOCK(_init)(&slot[i].lock);
		slot[i].inside = UNSPIN_NOBODY;
		slot[i].entries = 0;
		platform_init(&slot[i].holder, UNSPIN_NOBODY);
	}
}

static unspin_u64 entries(const void *slots, unspin_u32 count)
{
	const struct slot *slot = slots;
	unspin_u64 sum = 0;

	for (unspin_u32 i = 0; i < count; i++)
		sum += slot[i].entries;
	return sum;
}

static unspin_u64 still_locked(const void *slots, unspin_u32 count)
{
	const struct slot *slot = slots;
	unspin_u64 sum = 0;

	for (unspin_u32 i = 0; i < count; i++)
		sum += !!LOCK(_is_locked)(&slot[i].lock);
	return sum;
}

const struct driver JOIN(driver_, DRIVER_LOCK) = {
	.name = TEXT(DRIVER_LOCK),
	.slot_bytes = sizeof(struct slot),
	.slot_alignment = SLOT_ALIGNMENT,
	.prepare = prepare,
	.entries = entries,
	.still_locked = still_locked,
	.iterations = iterations,
	.validate = validate,
	.latency = latency,
};
