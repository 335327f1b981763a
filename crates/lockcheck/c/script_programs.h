/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* script_programs.h - the programs of scripted threads, by the letters of script.h. A part of script.c. */
#ifndef UNSPIN_BENCH_SCRIPT_PROGRAMS_H
#define UNSPIN_BENCH_SCRIPT_PROGRAMS_H

#include "script_world.h"

/* Around locks/parts/rcu.h: which version is current, and the value of each. */
#define RCU_VERSION 0
#define RCU_VALUE 1
#define RCU_VERSIONS (OUTSIDE_WORDS - RCU_VALUE)
#define RCU_SPOILT 0xdeadu

static void ask(enum script_entry entry)
{
	if (current->flags & SCRIPT_LOOKS)
		script_perform(SCRIPT_ASK, 0, entry, 0);
}

/* Inside the lock: a plain word must hold the number of writers' critical sections so far; a writer increments it. */
static void look(enum script_entry entry)
{
	struct script_world *world = current;
	unspin_u32 seen;

	if (!(world->flags & SCRIPT_LOOKS))
		return;
	seen = platform_load_relaxed(&world->outside[0]);
	if (seen != world->sections)
		script_perform(SCRIPT_WRONG, 0, seen, world->sections);
	if (entry == SCRIPT_BY_READ)
		return;
	platform_store_relaxed(&world->outside[0], seen + 1);
	world->sections++;
}

static void critical_section(struct script_world *world, enum script_entry entry)
{
	script_perform(SCRIPT_ENTER, 0, entry, 0);
	look(entry);
	script_perform(SCRIPT_LEAVE, 0, entry, 0);
	if (entry == SCRIPT_BY_READ) {
		lock_operations[world->kind].read_unlock(&world->lock);
		return;
	}
	lock_operations[world->kind].unlock(&world->lock);
}

/* What pthread_rwlock_t adds: writers with a deadline, readers that keep off for writers, with a deadline or without. */
static _Bool adaptive_rwlock_letter(struct script_world *world, char letter)
{
	struct adaptive_rwlock_lock *lock = &world->lock.adaptive_rwlock;
	struct adaptive_rwlock_entry entry = {.reads = letter != 'D', .deadline = letter == 'K' ? 0 : world};
	enum script_entry how = entry.reads ? SCRIPT_BY_READ : SCRIPT_BY_TRY;

	if (letter != 'D' && letter != 'K' && letter != 'E')
		return 0;
	entry.keeps_off = entry.reads;
	ask(how);
	if (adaptive_rwlock_enters(lock, &entry) || adaptive_rwlock_wait(lock, &entry))
		critical_section(world, how);
	else
		script_perform(SCRIPT_TRY_REFUSED, 0, 0, 0);
	return 1;
}

static void lock_letter(struct script_world *world, char letter)
{
	const struct lock_operations *lock = &lock_operations[world->kind];

	if (letter == 'L') {
		ask(SCRIPT_BY_LOCK);
		lock->lock(&world->lock);
		critical_section(world, SCRIPT_BY_LOCK);
	} else if (letter == 'R') {
		ask(SCRIPT_BY_READ);
		lock->read_lock(&world->lock);
		critical_section(world, SCRIPT_BY_READ);
	} else if (letter == 'P') {
		ask(SCRIPT_BY_READ);
		if (lock->read_trylock(&world->lock))
			critical_section(world, SCRIPT_BY_READ);
		else
			script_perform(SCRIPT_TRY_REFUSED, 0, 0, 0);
	} else if (letter == 'T') {
		ask(SCRIPT_BY_TRY);
		if (lock->trylock(&world->lock))
			critical_section(world, SCRIPT_BY_TRY);
		else
			script_perform(SCRIPT_TRY_REFUSED, 0, 0, 0);
	} else if (world->kind == UNSPIN_LOCK_adaptive_rwlock && adaptive_rwlock_letter(world, letter)) {
		return;
	} else if (letter == 'D' && world->kind == UNSPIN_LOCK_adaptive_mutex) {
		struct adaptive_mutex_lock *mutex = &world->lock.adaptive_mutex;

		ask(SCRIPT_BY_TRY);
		if (adaptive_mutex_trylock(mutex) || adaptive_mutex_lock_until(mutex, world))
			critical_section(world, SCRIPT_BY_TRY);
		else
			script_perform(SCRIPT_TRY_REFUSED, 0, 0, 0);
	} else if (letter == 'Q') {
		script_perform(SCRIPT_IS_LOCKED, 0, (unspin_u32)lock->is_locked(&world->lock), 0);
	} else if (letter == 'U') {
		lock->unlock(&world->lock);
	}
}

static void rcu_letter(struct script_world *world, char letter)
{
	if (letter == 'R') {
		rcu_read_lock(&world->rcu);
		unspin_u32 version = platform_load_relaxed(&world->outside[RCU_VERSION]);
		unspin_u32 seen = platform_load_relaxed(&world->outside[RCU_VALUE + version]);

		if (seen == RCU_SPOILT)
			script_perform(SCRIPT_WRONG, 0, seen, 0);
		rcu_read_unlock(&world->rcu);
	} else if (letter == 'S') {
		unspin_u32 version = platform_load_relaxed(&world->outside[RCU_VERSION]);

		platform_store_relaxed(&world->outside[RCU_VALUE + version + 1], version + 1);
		platform_store_release(&world->outside[RCU_VERSION], version + 1);
		rcu_synchronize(&world->rcu);
		platform_store_relaxed(&world->outside[RCU_VALUE + version], RCU_SPOILT);
	}
}

static void run_program(void)
{
	struct script_world *world = current;

	for (const char *program = world->thread[world->running].program; *program; program++) {
		(world->kind == SCRIPT_RCU ? rcu_letter : lock_letter)(world, *program);
	}
	for (;;)
		script_perform(SCRIPT_DONE, 0, 0, 0);
}

/* After all have ended: whether the lock is free, and whether is_locked returns that. */
static void ask_at_the_end(void)
{
	struct script_world *world = current;
	const struct lock_operations *lock = &lock_operations[world->kind];
	unspin_u32 answer = 0;

	if (lock->is_locked(&world->lock))
		answer |= SCRIPT_STILL_LOCKED;
	if (!lock->trylock(&world->lock))
		answer |= SCRIPT_STILL_REFUSED;
	for (;;)
		script_perform(SCRIPT_DONE, 0, answer, 0);
}

#endif
