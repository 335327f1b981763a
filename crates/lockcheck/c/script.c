/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * script.c - implements the scripted world of script.h. Compiled once for each build of the locks:
 *   SCRIPT_NAME           the symbol of its table of calls, the only one it exports
 *   SCRIPT_LOCKS_HEADER   the locks, if not locks/all.h
 *   SCRIPT_RCU_HEADER     the same for locks/parts/rcu.h
 *   UNSPIN_LOCKS_IN_TABLE the locks that it can create, if not all (locks/all.h)
 */
#include "script_programs.h"
#include "script_steps.h"

#include <stdlib.h>
#include <string.h>

#ifndef SCRIPT_NAME
#define SCRIPT_NAME script_calls
#endif

static void script_reset(struct script_world *world)
{
	memset(&world->lock, 0, sizeof(world->lock));
	if (world->kind == SCRIPT_RCU)
		rcu_init(&world->rcu);
	else
		lock_operations[world->kind].init(&world->lock);
	memset(world->outside, 0, sizeof(world->outside));
	world->sections = 0;
	for (unspin_u32 i = 0; i < world->threads; i++) {
		world->thread[i].request = (struct script_request){.kind = SCRIPT_DONE};
		world->thread[i].stores = 0;
		world->thread[i].kicked = 0;
	}
}

static struct script_world *script_create(unspin_u32 kind, unspin_u32 threads, unspin_u32 flags, unspin_u32 run_states)
{
	struct script_world *world;

	if (kind != SCRIPT_RCU && (kind >= UNSPIN_LOCK_KIND_COUNT || !lock_operations[kind].init))
		return 0;
	if (threads == 0 || threads > SCRIPT_THREADS_MAX)
		return 0;
	world = aligned_alloc(_Alignof(struct script_world), sizeof(*world));
	if (!world)
		return 0;
	memset(world, 0, sizeof(*world));
	world->kind = kind;
	world->threads = threads;
	world->flags = flags;
	world->run_states = run_states;
	script_reset(world);
	return world;
}

static void script_destroy(struct script_world *world)
{
	free(world);
}

static void script_start(struct script_world *world, const char *const *programs)
{
	for (unspin_u32 i = 0; i < world->threads; i++) {
		world->thread[i].program = programs[i];
		prepare(&world->thread[i], run_program);
		resume(world, i);
	}
}

static void *script_lock_memory(struct script_world *world, unspin_u32 *bytes)
{
	*bytes = lock_size(world);
	return &world->lock;
}

static const struct script_request *script_pending(const struct script_world *world, unspin_u32 thread)
{
	return &world->thread[thread].request;
}

/* A copy in progress; `at` counts all bytes, also those that do not fit the buffer. */
struct writer {
	unsigned char *buffer;
	unspin_u64 capacity;
	unspin_u64 at;
};

static void append(struct writer *writer, const void *bytes, unspin_u64 count)
{
	if (writer->at + count <= writer->capacity)
		memcpy(writer->buffer + writer->at, bytes, count);
	writer->at += count;
}

static const unsigned char *take(const unsigned char *from, void *bytes, unspin_u64 count)
{
	memcpy(bytes, from, count);
	return from + count;
}

static void save_thread(struct writer *writer, const struct script_thread *thread)
{
	const unsigned char *live = thread->stack_pointer;
	unspin_u32 bytes = (unspin_u32)(thread->stack + sizeof(thread->stack) - live);
	unspin_u32 head[2] = {thread->stores, thread->kicked};

	append(writer, &thread->request, sizeof(thread->request));
	append(writer, head, sizeof(head));
	append(writer, thread->store, thread->stores * sizeof(thread->store[0]));
	/* A thread that has ended has no further state. */
	if (thread->request.kind == SCRIPT_DONE)
		return;
	append(writer, &bytes, sizeof(bytes));
	append(writer, live, bytes);
}

static const unsigned char *restore_thread(const unsigned char *from, struct script_thread *thread)
{
	unspin_u32 head[2];
	unspin_u32 bytes;

	from = take(from, &thread->request, sizeof(thread->request));
	from = take(from, head, sizeof(head));
	thread->stores = head[0];
	thread->kicked = head[1];
	from = take(from, thread->store, thread->stores * sizeof(thread->store[0]));
	if (thread->request.kind == SCRIPT_DONE)
		return from;
	from = take(from, &bytes, sizeof(bytes));
	thread->stack_pointer = thread->stack + sizeof(thread->stack) - bytes;
	return take(from, thread->stack_pointer, bytes);
}

static unspin_u64 script_save(const struct script_world *world, void *buffer, unspin_u64 capacity)
{
	struct writer writer = {.buffer = buffer, .capacity = capacity};

	append(&writer, &world->lock, lock_size(world));
	append(&writer, world->outside, sizeof(world->outside));
	append(&writer, &world->sections, sizeof(world->sections));
	for (unspin_u32 i = 0; i < world->threads; i++)
		save_thread(&writer, &world->thread[i]);
	return writer.at;
}

static void script_restore(struct script_world *world, const void *buffer)
{
	const unsigned char *from = take(buffer, &world->lock, lock_size(world));

	from = take(from, world->outside, sizeof(world->outside));
	from = take(from, &world->sections, sizeof(world->sections));
	for (unspin_u32 i = 0; i < world->threads; i++)
		from = restore_thread(from, &world->thread[i]);
}

/* More steps than is_locked and trylock need at a free lock. */
#define FINISH_STEPS 1000

static unspin_u32 script_finish(struct script_world *world)
{
	struct script_thread *spare = &world->thread[SPARE];

	if (world->kind == SCRIPT_RCU)
		return 0;
	spare->stores = 0;
	spare->kicked = 0;
	prepare(spare, ask_at_the_end);
	resume(world, SPARE);
	for (unspin_u32 i = 0; spare->request.kind != SCRIPT_DONE; i++) {
		unspin_u32 choices = script_choices(world, SPARE);

		if (i == FINISH_STEPS || choices & SCRIPT_CAN_WAKE)
			return SCRIPT_STILL_STUCK;
		if (choices & SCRIPT_CAN_FLUSH)
			script_act(world, SPARE, SCRIPT_CAN_FLUSH);
		else if (choices & (SCRIPT_CAN_STEP | SCRIPT_CAN_ANSWER))
			script_act(world, SPARE, SCRIPT_CAN_STEP);
		else
			return SCRIPT_STILL_STUCK;
	}
	return spare->request.first;
}

extern const struct script_calls SCRIPT_NAME;
const struct script_calls SCRIPT_NAME = {
	.create = script_create,
	.destroy = script_destroy,
	.reset = script_reset,
	.start = script_start,
	.lock_memory = script_lock_memory,
	.pending = script_pending,
	.choices = script_choices,
	.act = script_act,
	.save = script_save,
	.restore = script_restore,
	.finish = script_finish,
	.waiters_max = PLATFORM_WAITERS_MAX,
};
