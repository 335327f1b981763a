/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* table.c - tables of threads (locks/platform/table.h), and their calls as functions for tests. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

struct platform_table *driver_table_new(void)
{
	struct platform_table *table = aligned_alloc(_Alignof(struct platform_table), sizeof(*table));

	if (table)
		memset(table, 0, sizeof(*table));
	return table;
}

void driver_table_free(struct platform_table *table)
{
	free(table);
}

void driver_table_run_states(struct platform_table *table, unspin_u32 run_states,
			     const struct unspin_thread_run_state *page)
{
	if (page)
		table->page = page;
	/* Without a page there is nothing to read. */
	if (run_states == PLATFORM_RUN_STATES_PAGE && !table->page)
		run_states = PLATFORM_RUN_STATES_NONE;
	/* Release: whoever sees the value sees the page. It stays in `page`, for those that have just looked. */
	platform_store_release(&table->run_states, run_states);
}

void driver_table_wants_slice(struct platform_table *table)
{
	platform_store_release(&table->wants_slice, 1);
}

unspin_u32 driver_probe_rseq(void)
{
	static struct platform_seat seat; /* one probe at a time; zero again afterwards */
	unspin_u32 found;

	platform_seat_register(&seat, 1);
	found = platform_load_relaxed(&seat.has_rseq) | platform_load_relaxed(&seat.has_slice) << 1;
	platform_seat_unregister(&seat);
	return found;
}

_Thread_local struct unspin_pv_page *driver_page;

_Bool driver_take_page(struct unspin_pv_page *page, unspin_u32 number)
{
	*(volatile unspin_u32 *)&page->critical = 0;
	*(volatile unspin_u32 *)&page->acknowledged = 0;
	/* The kernel does not know it; the scheduler, if there is one, answers in the page. */
	prctl((int)UNSPIN_PRCTL_REGISTER_THREAD, (unsigned long)number, 0, 0, 0);
	driver_page = *(volatile unspin_u32 *)&page->acknowledged == UNSPIN_PV_PAGE_MAGIC ? page : 0;
	return driver_page != 0;
}

/* platform/threads.h as functions, so that tests can park, kick and ask. */
void driver_join(struct platform_table *table, unspin_u32 number)
{
	platform_thread_join(table, number);
}

void driver_leave(void)
{
	platform_thread_leave();
}

void driver_park(const struct platform_word *word, unspin_u32 value)
{
	platform_park(word, value);
}

void driver_kick(unspin_u32 waiter)
{
	platform_kick(waiter);
}

unspin_u32 driver_is_preempted(unspin_u32 waiter)
{
	return platform_is_preempted(waiter);
}

unspin_u32 driver_is_overloaded(void)
{
	return platform_is_overloaded();
}

unspin_u32 driver_is_parked(const struct platform_table *table, unspin_u32 waiter)
{
	return waiter < PLATFORM_WAITERS_MAX && platform_seat_parked(&table->seats[waiter]);
}

unspin_u64 driver_parks(const struct platform_table *table)
{
	unspin_u64 sum = 0;

	for (unspin_u32 i = 0; i < PLATFORM_WAITERS_MAX; i++)
		sum += platform_load_relaxed(&table->seats[i].parks);
	return sum;
}
