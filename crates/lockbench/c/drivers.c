/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* drivers.c - the table of all locks' drivers, and what they share: the thread's state, the clock, the work loop. */
#include "driver.h"

#include "../../../locks/preemptable_ticket.h"
#include "../../../locks/parts/work.h"

_Thread_local struct platform_thread platform_self = {.pause_every_spins = 1, .spins_to_pause = 1};
_Thread_local struct unspin_pv_page platform_own_pv_page;

#define DECLARE(number, name) extern const struct driver driver_##name;
UNSPIN_LOCK_KINDS(DECLARE)

#define ENTRY(number, name) [number] = &driver_##name,
const struct driver *const driver_table[UNSPIN_LOCK_KIND_COUNT] = {UNSPIN_LOCK_KINDS(ENTRY)};

void driver_thread_state(struct platform_thread *state)
{
	*state = platform_self;
}

void driver_thread_start(unspin_u32 pause_every_spins, unspin_u64 stall_spins)
{
	platform_thread_start(pause_every_spins, stall_spins);
}

void driver_begin_wait(const struct platform_word *holder)
{
	platform_thread_begin_wait(holder);
}

unspin_u32 driver_wait(const struct platform_word *word, unspin_u32 value, unspin_u32 spins)
{
	return platform_wait_while(word, value, spins);
}

unspin_u64 driver_tsc(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
#error "the drivers read the TSC: x86-64 only, as the rest of unspin"
#endif
}

unspin_u64 driver_time_work(unspin_u32 loops)
{
	unspin_u64 begin = driver_tsc();

	work_loops(loops);
	return driver_tsc() - begin;
}

const unspin_u32 driver_tau_spins = PREEMPTABLE_TICKET_TAU_SPINS;

unspin_u64 driver_time_wait(unspin_u32 spins, unspin_u32 pause_every_spins)
{
	struct platform_word word;
	unspin_u64 begin;

	platform_init(&word, 0);
	platform_thread_start(pause_every_spins, ~0ull);
	begin = driver_tsc();
	platform_wait_while(&word, 0, spins);
	return driver_tsc() - begin;
}
