/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* threads.c - numbers of threads: who has which, what becomes of them when a thread ends and when the process forks. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../locks/platform/contract.h"
#include "include/unspin/locks.h"

#define WORD_BITS 32u
#define WORDS (PROCESS_NUMBERS / WORD_BITS)
_Static_assert(PROCESS_NUMBERS % WORD_BITS == 0, "whole words");

_Thread_local struct process_thread process_self __attribute__((tls_model("initial-exec")));
struct platform_seat process_seats[PLATFORM_WAITERS_MAX];

/* Bit n of word n / 32: number n is taken. */
static struct platform_word taken[WORDS];
static pthread_once_t begun = PTHREAD_ONCE_INIT;
/* Its destructor gives the number back. Without a key (there are 1,024) numbers are never given back. */
static pthread_key_t at_end;
static _Bool has_key;

const char *unspin_version(void)
{
	return UNSPIN_VERSION;
}

void process_fail(const char *message)
{
	static const char name[] = "libunspin: ";

	/* One call, so that lines of several threads are not mixed; if it fails nothing is left to be said. */
	struct {
		char text[256];
		size_t bytes;
	} line = {.bytes = sizeof(name) - 1};
	memcpy(line.text, name, sizeof(name) - 1);
	for (; *message && line.bytes < sizeof(line.text) - 1; message++)
		line.text[line.bytes++] = *message;
	line.text[line.bytes++] = '\n';
	if (write(STDERR_FILENO, line.text, line.bytes) < 0)
		abort();
	abort();
}

/*
 * A thread that ends while it holds a lock that only its holder can free keeps its number for ever: another thread of that
 * number would be taken for the holder.
 */
static void give_back(void *unused)
{
	unspin_u32 number = process_self.number_plus_1 - 1;

	(void)unused;
	if (process_self.number_plus_1 == 0 || process_self.holds != 0)
		return;
	process_self.number_plus_1 = 0;
	platform_fetch_and_ordered(&taken[number / WORD_BITS], ~(1u << number % WORD_BITS));
}

/* In the child the forking thread is the only one: all other numbers are free, and nobody is parked. */
static void in_the_child(void)
{
	unspin_u32 number_plus_1 = process_self.number_plus_1;

	for (unspin_u32 i = 0; i < WORDS; i++)
		platform_store_relaxed(&taken[i], 0);
	if (number_plus_1 != 0)
		platform_store_relaxed(&taken[(number_plus_1 - 1) / WORD_BITS], 1u << (number_plus_1 - 1) % WORD_BITS);
	for (unspin_u32 i = 0; i < PLATFORM_WAITERS_MAX; i++)
		platform_store_relaxed(&process_seats[i].permit, PLATFORM_PERMIT_NONE);
}

static void begin(void)
{
	has_key = pthread_key_create(&at_end, give_back) == 0;
	/* Fails only without memory, at the program's start. */
	if (pthread_atfork(0, 0, in_the_child))
		process_fail("no memory for a handler of fork");
}

/* The lowest free number, which is the caller's then; PROCESS_NUMBERS if there is none. */
static unspin_u32 claim(void)
{
	for (unspin_u32 i = 0; i < WORDS; i++) {
		unspin_u32 bits = platform_load_relaxed(&taken[i]);

		while (~bits) {
			unspin_u32 bit = 1u << __builtin_ctz(~bits);

			/* Ordered: what the number's previous thread did is done. */
			bits = platform_fetch_or_ordered(&taken[i], bit);
			if (!(bits & bit))
				return i * WORD_BITS + (unspin_u32)__builtin_ctz(bit);
		}
	}
	return PROCESS_NUMBERS;
}

unspin_u32 process_number_take(void)
{
	sigset_t all, before;
	unspin_u32 number;

	pthread_once(&begun, begin);
	/* A handler that uses a lock would number this thread a second time. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	number = process_self.number_plus_1 ? process_self.number_plus_1 - 1 : claim();
	if (number == PROCESS_NUMBERS)
		process_fail("65,472 threads have used locks and not ended; there are no more numbers for threads");
	if (process_self.number_plus_1 == 0 && number < PLATFORM_WAITERS_MAX)
		platform_exchange_ordered(&process_seats[number].permit, PLATFORM_PERMIT_NONE);
	process_self.number_plus_1 = number + 1;
	if (has_key)
		pthread_setspecific(at_end, &process_self);
	pthread_sigmask(SIG_SETMASK, &before, 0);
	return number;
}
