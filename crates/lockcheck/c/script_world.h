/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * script_world.h - the data of a scripted world, and its coroutines. A part of script.c.
 *
 * A coroutine's registers are on its stack while it waits, so a copy of its live stack is its whole state.
 */
#ifndef UNSPIN_BENCH_SCRIPT_WORLD_H
#define UNSPIN_BENCH_SCRIPT_WORLD_H

#include "script.h"

/* Replaced by crates/lockcheck-bugs, whose copy of the locks has a seeded bug. */
#ifndef SCRIPT_LOCKS_HEADER
#define SCRIPT_LOCKS_HEADER "../../../locks/all.h"
#endif
#include SCRIPT_LOCKS_HEADER
#ifndef SCRIPT_RCU_HEADER
#define SCRIPT_RCU_HEADER "../../../locks/parts/rcu.h"
#endif
#include SCRIPT_RCU_HEADER

#define STACK_BYTES 8192u
#define OUTSIDE_WORDS 4u
/* A word that is neither the lock's nor the program's. */
#define SCRIPT_ELSEWHERE 0xfffffffeu
/* The spare coroutine, which calls is_locked and trylock after all others have ended. */
#define SPARE SCRIPT_THREADS_MAX

/* A store that has not reached memory yet. */
struct script_store {
	unspin_u32 place;
	unspin_u32 value;
};

struct script_thread {
	void *stack_pointer;
	struct script_request request;
	unspin_u32 result;
	unspin_u32 kicked; /* set of enum script_who */
	unspin_u32 stores;
	struct script_store store[SCRIPT_BUFFER_MAX]; /* oldest first */
	const char *program;
	unsigned char stack[STACK_BYTES] __attribute__((aligned(64)));
};

struct script_world {
	unspin_u32 kind; /* enum unspin_lock_kind or SCRIPT_RCU */
	unspin_u32 threads;
	unspin_u32 flags;
	unspin_u32 run_states; /* enum script_run_states */
	unspin_u32 running;    /* number of the thread that has the CPU, while one has */
	unspin_u32 sections;   /* writers' critical sections that have ended: what the program's word must hold */
	void *script_stack_pointer;
	struct platform_word outside[OUTSIDE_WORDS];
	union {
		union any_lock lock;
		struct rcu rcu;
	};
	struct script_thread thread[SCRIPT_THREADS_MAX + 1];
};

/* The world whose thread runs on this OS thread. */
static _Thread_local struct script_world *current;

/*
 * Saves the callee-saved registers on this stack and its pointer in *from, and continues on the stack `to`. System V
 * ABI of x86-64.
 */
static __attribute__((naked, noinline)) void switch_stacks(__attribute__((unused)) void **from,
							   __attribute__((unused)) void *to)
{
	__asm__("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
		"movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
		"popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret");
}

static unspin_u32 lock_size(const struct script_world *world)
{
	return world->kind == SCRIPT_RCU ? sizeof(struct rcu) : lock_bytes[world->kind];
}

static unspin_u32 place_in_world(const struct script_world *world, const struct platform_word *word)
{
	const struct platform_word *first = (const struct platform_word *)&world->lock;

	if (!word)
		return SCRIPT_NOWHERE;
	if (word >= world->outside && word < world->outside + OUTSIDE_WORDS)
		return SCRIPT_OUTSIDE + (unspin_u32)(word - world->outside);
	if (word < first || word >= first + lock_size(world) / sizeof(*word))
		return SCRIPT_ELSEWHERE;
	return (unspin_u32)(word - first);
}

/* The word at a place that place_in_world() gave. */
static unspin_u32 *word_at(struct script_world *world, unspin_u32 place)
{
	if (place == SCRIPT_NOWHERE)
		return 0;
	if (place >= SCRIPT_OUTSIDE)
		return &world->outside[place - SCRIPT_OUTSIDE].value;
	return &((struct platform_word *)&world->lock)[place].value;
}

static unspin_u32 script_issue(struct script_request request, const struct platform_word *word)
{
	struct script_thread *self = &current->thread[current->running];

	request.place = place_in_world(current, word);
	/* Such an access is not made: the exploration reports it and ends there. */
	if (request.place == SCRIPT_ELSEWHERE || (request.kind == SCRIPT_KICK && request.first >= current->threads) ||
	    (request.kind == SCRIPT_COMPARE_EXCHANGE_TWO && place_in_world(current, word + 1) != request.place + 1))
		request.kind = SCRIPT_ASTRAY;
	self->request = request;
	switch_stacks(&self->stack_pointer, current->script_stack_pointer);
	return self->result;
}

static unspin_u32 script_perform(unspin_u32 kind, const struct platform_word *word, unspin_u32 first, unspin_u32 second)
{
	return script_issue((struct script_request){.kind = kind, .first = first, .second = second}, word);
}

static unspin_u32 script_thread(void)
{
	/* The spare coroutine runs when all others have ended, so it may use the number of any. */
	return current->running == SPARE ? 0 : current->running;
}

static void resume(struct script_world *world, unspin_u32 thread)
{
	current = world;
	world->running = thread;
	switch_stacks(&world->script_stack_pointer, world->thread[thread].stack_pointer);
	current = 0;
}

/* Makes `entry`, which never returns, start at the next resume(). */
static void prepare(struct script_thread *thread, void (*entry)(void))
{
	/* The stack is cleared: padding in live frames is part of what is saved. */
	__builtin_memset(thread->stack, 0, sizeof(thread->stack));
	void **top = (void **)(thread->stack + sizeof(thread->stack));

	/* As after a call: a return address (0) for `entry` at 8 modulo 16, `entry` itself, and six registers below. */
	top[-1] = 0;
	top[-2] = (void *)entry;
	thread->stack_pointer = &top[-8];
}

#endif
