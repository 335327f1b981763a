/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* script.c - the scripted world of script.h: coroutines by ucontext, one request at a time. */
#define _GNU_SOURCE
#include "script.h"

#include "../../../locks/all.h"

#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define STACK_BYTES 16384u

struct script_thread {
	ucontext_t context;
	struct script_request request;
	unspin_u32 result;
	const char *program;
	unsigned char stack[STACK_BYTES] __attribute__((aligned(64)));
};

struct script_world {
	unspin_u32 kind; /* enum unspin_lock_kind */
	unspin_u32 threads;
	unspin_u32 running; /* number of the thread that has the CPU, while one has */
	ucontext_t script;
	union any_lock lock;
	struct script_thread thread[SCRIPT_THREADS_MAX];
};

/* The world whose thread runs on this OS thread. */
static _Thread_local struct script_world *current;

unspin_u32 script_perform(unspin_u32 kind, struct platform_word *word, unspin_u32 first, unspin_u32 second)
{
	struct script_thread *self = &current->thread[current->running];

	self->request = (struct script_request){.kind = kind, .first = first, .second = second, .word = word};
	swapcontext(&self->context, &current->script);
	return self->result;
}

unspin_u32 script_thread(void)
{
	return current->running;
}

static void critical_section(struct script_world *world, unspin_u32 by_lock)
{
	script_perform(SCRIPT_ENTER, 0, by_lock, 0);
	script_perform(SCRIPT_LEAVE, 0, 0, 0);
	lock_operations[world->kind].unlock(&world->lock);
}

static void run_program(void)
{
	struct script_world *world = current;
	const char *program = world->thread[world->running].program;

	for (; *program; program++) {
		if (*program == 'L') {
			lock_operations[world->kind].lock(&world->lock);
			critical_section(world, 1);
		} else if (*program == 'T') {
			if (lock_operations[world->kind].trylock(&world->lock))
				critical_section(world, 0);
			else
				script_perform(SCRIPT_TRY_REFUSED, 0, 0, 0);
		} else if (*program == 'Q') {
			unspin_u32 answer = (unspin_u32)lock_operations[world->kind].is_locked(&world->lock);

			script_perform(SCRIPT_IS_LOCKED, 0, answer, 0);
		}
	}
	for (;;)
		script_perform(SCRIPT_DONE, 0, 0, 0);
}

static void resume(struct script_world *world, unspin_u32 thread)
{
	current = world;
	world->running = thread;
	swapcontext(&world->script, &world->thread[thread].context);
	current = 0;
}

struct script_world *script_new(unspin_u32 kind, unspin_u32 threads)
{
	struct script_world *world;

	if (kind >= UNSPIN_LOCK_KIND_COUNT || threads == 0 || threads > SCRIPT_THREADS_MAX)
		return 0;
	world = aligned_alloc(_Alignof(struct script_world), sizeof(*world));
	if (!world)
		return 0;
	memset(world, 0, sizeof(*world));
	world->kind = kind;
	world->threads = threads;
	script_reset(world);
	return world;
}

void script_free(struct script_world *world)
{
	free(world);
}

void script_reset(struct script_world *world)
{
	memset(&world->lock, 0, sizeof(world->lock));
	lock_operations[world->kind].init(&world->lock);
	for (unspin_u32 i = 0; i < world->threads; i++)
		world->thread[i].request = (struct script_request){.kind = SCRIPT_DONE};
}

void script_start(struct script_world *world, const char *const *programs)
{
	for (unspin_u32 i = 0; i < world->threads; i++) {
		struct script_thread *thread = &world->thread[i];

		/* A fresh stack each time: what is left on it is part of script_local_state(). */
		memset(thread->stack, 0, sizeof(thread->stack));
		thread->program = programs[i];
		getcontext(&thread->context);
		thread->context.uc_stack.ss_sp = thread->stack;
		thread->context.uc_stack.ss_size = sizeof(thread->stack);
		thread->context.uc_link = 0; /* run_program() does not return */
		makecontext(&thread->context, run_program, 0);
		resume(world, i);
	}
}

void *script_lock_memory(struct script_world *world, unspin_u32 *bytes)
{
	*bytes = lock_bytes[world->kind];
	return &world->lock;
}

const struct script_request *script_pending(const struct script_world *world, unspin_u32 thread)
{
	return &world->thread[thread].request;
}

/* Does the access. Returns 0 when the thread still waits. */
static int perform(struct script_request *request, unspin_u32 *result)
{
	unspin_u32 *value = request->word ? &request->word->value : 0;

	*result = value ? *value : 0;
	switch (request->kind) {
	case SCRIPT_STORE:
	case SCRIPT_EXCHANGE:
		*value = request->first;
		return 1;
	case SCRIPT_FETCH_ADD:
		*value += request->first;
		return 1;
	case SCRIPT_FETCH_OR:
		*value |= request->first;
		return 1;
	case SCRIPT_FETCH_AND:
		*value &= request->first;
		return 1;
	case SCRIPT_COMPARE_EXCHANGE:
		if (*value == request->first)
			*value = request->second;
		return 1;
	case SCRIPT_WAIT:
		if (request->second == 0) {
			*result = request->first; /* no turn, no look */
			return 1;
		}
		if (*value != request->first)
			return 1;
		if (request->second != PLATFORM_FOREVER)
			request->second--;
		return request->second == 0;
	default:
		return 1;
	}
}

void script_step(struct script_world *world, unspin_u32 thread)
{
	struct script_thread *self = &world->thread[thread];

	if (self->request.kind != SCRIPT_DONE && perform(&self->request, &self->result))
		resume(world, thread);
}

void script_time_out(struct script_world *world, unspin_u32 thread)
{
	struct script_thread *self = &world->thread[thread];

	self->result = self->request.first;
	resume(world, thread);
}

/* Appends to `buffer` as far as it goes; counts all the same. */
static unspin_u64 append(unsigned char *buffer, unspin_u64 capacity, unspin_u64 at, const void *bytes, unspin_u64 count)
{
	if (at + count <= capacity)
		memcpy(buffer + at, bytes, count);
	return at + count;
}

unspin_u64 script_local_state(const struct script_world *world, unspin_u32 thread, void *buffer, unspin_u64 capacity)
{
	static const int registers[] = {REG_RBX, REG_RBP, REG_R12, REG_R13, REG_R14, REG_R15, REG_RSP, REG_RIP};
	const struct script_thread *self = &world->thread[thread];
	const unsigned char *top = self->stack + sizeof(self->stack);
	const unsigned char *live = (const unsigned char *)self->context.uc_mcontext.gregs[REG_RSP];
	unspin_u64 at = append(buffer, capacity, 0, &self->request, sizeof(self->request));

	if (self->request.kind == SCRIPT_DONE)
		return at;
	for (unsigned i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
		at = append(buffer, capacity, at, &self->context.uc_mcontext.gregs[registers[i]], sizeof(greg_t));
	return append(buffer, capacity, at, live, (unspin_u64)(top - live));
}
