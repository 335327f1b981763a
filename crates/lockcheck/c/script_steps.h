/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* script_steps.h - when each request is possible, and its effect on memory, buffers and permits. A part of script.c. */
#ifndef UNSPIN_BENCH_SCRIPT_STEPS_H
#define UNSPIN_BENCH_SCRIPT_STEPS_H

#include "script_world.h"

/* The value that `thread` reads at `place`: its own last buffered store there, or memory. */
static unspin_u32 seen_by(const struct script_world *world, const struct script_thread *thread, unspin_u32 place)
{
	for (unspin_u32 i = thread->stores; i > 0; i--)
		if (thread->store[i - 1].place == place)
			return thread->store[i - 1].value;
	return *word_at((struct script_world *)world, place);
}

static void flush(struct script_world *world, struct script_thread *thread)
{
	*word_at(world, thread->store[0].place) = thread->store[0].value;
	thread->stores--;
	__builtin_memmove(&thread->store[0], &thread->store[1], thread->stores * sizeof(thread->store[0]));
}

static unspin_u32 choices_of_wait(const struct script_world *world, const struct script_thread *self)
{
	const struct script_request *request = &self->request;

	if (request->second == 0)
		return SCRIPT_CAN_STEP | SCRIPT_IS_LOCAL; /* without a spin nothing is read */
	if (seen_by(world, self, request->place) != request->first)
		return SCRIPT_CAN_STEP;
	return request->second == PLATFORM_FOREVER ? 0 : SCRIPT_CAN_TIME_OUT;
}

/* Other threads see neither a plain store into the buffer nor the requests of the program around the lock. */
static unspin_u32 choices_of_request(const struct script_world *world, const struct script_thread *self)
{
	switch (self->request.kind) {
	case SCRIPT_DONE:
		return 0;
	case SCRIPT_LOAD:
		return SCRIPT_CAN_STEP;
	case SCRIPT_WAIT:
		return choices_of_wait(world, self);
	case SCRIPT_STORE:
		if (!(world->flags & SCRIPT_STORE_BUFFERS))
			return SCRIPT_CAN_STEP;
		return self->stores < SCRIPT_BUFFER_MAX ? SCRIPT_CAN_STEP | SCRIPT_IS_LOCAL : 0;
	case SCRIPT_RUN_STATE:
		return SCRIPT_IS_LOCAL |
		       (world->run_states == SCRIPT_RUN_STATES_ANY ? SCRIPT_CAN_ANSWER : SCRIPT_CAN_STEP);
	case SCRIPT_PARKED:
		if (self->kicked & self->request.second)
			return SCRIPT_CAN_STEP;
		return SCRIPT_CAN_WAKE | (self->request.second & SCRIPT_DEADLINE ? SCRIPT_CAN_TIME_OUT : 0);
	case SCRIPT_FENCE:
		return self->stores ? 0 : SCRIPT_CAN_STEP | SCRIPT_IS_LOCAL;
	case SCRIPT_EXCHANGE:
	case SCRIPT_FETCH_ADD:
	case SCRIPT_FETCH_OR:
	case SCRIPT_FETCH_AND:
	case SCRIPT_COMPARE_EXCHANGE:
	case SCRIPT_COMPARE_EXCHANGE_TWO:
	case SCRIPT_PARK:
	case SCRIPT_KICK:
	case SCRIPT_UNBLOCK:
		return self->stores ? 0 : SCRIPT_CAN_STEP;
	default:
		return SCRIPT_CAN_STEP | SCRIPT_IS_LOCAL;
	}
}

static unspin_u32 script_choices(const struct script_world *world, unspin_u32 thread)
{
	const struct script_thread *self = &world->thread[thread];

	return choices_of_request(world, self) | (self->stores ? SCRIPT_CAN_FLUSH : 0);
}

/* One read of the word. Returns 0 if the thread still waits. */
static int wait_one_spin(struct script_request *request, unspin_u32 seen, unspin_u32 *result)
{
	*result = seen;
	if (request->second == 0) {
		*result = request->first;
		return 1;
	}
	if (seen != request->first)
		return 1;
	if (request->second != PLATFORM_FOREVER)
		request->second--;
	return request->second == 0;
}

/* Returns 0 if the thread sleeps now. */
static int park(const struct script_world *world, struct script_thread *self)
{
	if (self->request.kind == SCRIPT_PARK && !(self->kicked & self->request.second) &&
	    seen_by(world, self, self->request.place) == self->request.first) {
		self->request.kind = SCRIPT_PARKED;
		return 0;
	}
	self->kicked &= ~self->request.second;
	return 1;
}

static void kick(struct script_world *world, const struct script_request *request)
{
	if (world->thread[request->first].request.kind != SCRIPT_DONE)
		world->thread[request->first].kicked |= request->second;
}

/*
 * Of those that are parked at the word now: by their numbers the first, or the last. With two of them, which three threads
 * can have, these are all choices.
 */
static void unblock(struct script_world *world, const struct script_request *request)
{
	struct script_thread *chosen = 0;

	for (unspin_u32 i = 0; i < world->threads; i++) {
		struct script_thread *thread = &world->thread[i];

		if (thread->request.kind == SCRIPT_PARKED && thread->request.second & SCRIPT_BLOCKER &&
		    thread->request.place == request->place && !(thread->kicked & SCRIPT_BLOCKER) &&
		    (!chosen || request->first)) {
			chosen = thread;
			if (request->first == SCRIPT_ALL)
				thread->kicked |= SCRIPT_BLOCKER;
		}
	}
	if (chosen)
		chosen->kicked |= SCRIPT_BLOCKER;
}

/* Makes the access, with an empty store buffer. Returns the word's previous value. */
static unspin_u32 modify(const struct script_request *request, unspin_u32 *value)
{
	unspin_u32 before = *value;

	if (request->kind == SCRIPT_EXCHANGE || request->kind == SCRIPT_STORE)
		*value = request->first;
	else if (request->kind == SCRIPT_FETCH_ADD)
		*value += request->first;
	else if (request->kind == SCRIPT_FETCH_OR)
		*value |= request->first;
	else if (request->kind == SCRIPT_FETCH_AND)
		*value &= request->first;
	else if (before == request->first)
		*value = request->second;
	return before;
}

/* Both words at once, as modify(). Returns whether they held what was expected. */
static unspin_u32 modify_two(struct script_world *world, const struct script_request *request)
{
	unspin_u32 *first = word_at(world, request->place), *second = word_at(world, request->place + 1);

	if (*first != request->expected.first || *second != request->expected.second)
		return 0;
	*first = request->desired.first;
	*second = request->desired.second;
	return 1;
}

/* Carries out the request. Returns 0 if the thread does not continue. */
static int perform(struct script_world *world, struct script_thread *self)
{
	struct script_request *request = &self->request;

	self->result = 0;
	switch (request->kind) {
	case SCRIPT_LOAD:
		self->result = seen_by(world, self, request->place);
		return 1;
	case SCRIPT_WAIT:
		return wait_one_spin(request, seen_by(world, self, request->place), &self->result);
	case SCRIPT_STORE:
		if (world->flags & SCRIPT_STORE_BUFFERS) {
			self->store[self->stores++] = (struct script_store){request->place, request->first};
			return 1;
		} /* fall through */
	case SCRIPT_EXCHANGE:
	case SCRIPT_FETCH_ADD:
	case SCRIPT_FETCH_OR:
	case SCRIPT_FETCH_AND:
	case SCRIPT_COMPARE_EXCHANGE:
		self->result = modify(request, word_at(world, request->place));
		return 1;
	case SCRIPT_COMPARE_EXCHANGE_TWO:
		self->result = modify_two(world, request);
		return 1;
	case SCRIPT_PARK:
	case SCRIPT_PARKED:
		self->result = 1;
		return park(world, self);
	case SCRIPT_UNBLOCK:
		unblock(world, request);
		return 1;
	case SCRIPT_KICK:
		kick(world, request);
		return 1;
	case SCRIPT_RUN_STATE:
		self->result = world->run_states == SCRIPT_RUN_STATES_ALWAYS;
		return 1;
	default:
		return request->kind != SCRIPT_DONE;
	}
}

static void script_act(struct script_world *world, unspin_u32 thread, unspin_u32 action)
{
	struct script_thread *self = &world->thread[thread];

	if (action == SCRIPT_CAN_FLUSH) {
		flush(world, self);
		return;
	}
	if (action == SCRIPT_CAN_STEP && !perform(world, self))
		return;
	if (action == SCRIPT_CAN_TIME_OUT)
		self->result = self->request.kind == SCRIPT_PARKED ? 0 : self->request.first;
	else if (action == SCRIPT_YES || action == SCRIPT_CAN_WAKE)
		self->result = 1;
	resume(world, thread);
}

#endif
