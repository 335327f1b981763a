/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * properties.c - what one lock of the installed library does: lines "PROPERTY: VALUE". Usage: properties LOCK [PROPERTY...].
 * It only observes; crates/locks/tests/long_library/properties.rs compares with what docs/libunspin.md says.
 */
#include <signal.h>
#include <sys/wait.h>

#include "observers.h"
#include "table.h"
#include "waiters.h"

const struct kind *kind;

union any *new_lock(void)
{
	union any *lock = aligned_alloc(64, sizeof(union any));

	if (!lock)
		fail("no memory");
	kind->init(lock);
	return lock;
}

int in_child(int (*work)(union any *lock), union any *lock, long limit_ns)
{
	long long end = now_ns(CLOCK_MONOTONIC) + limit_ns;
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0)
		_exit(work(lock));
	while (waitpid(child, &status, WNOHANG) == 0) {
		if (now_ns(CLOCK_MONOTONIC) > end) {
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return -1;
		}
		pause_ns(MS);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *observe_bytes(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "%zu", kind->bytes);
	return text;
}

/* Whether the constant is what init makes. */
static const char *observe_constant(void)
{
	union any *lock = aligned_alloc(64, sizeof(union any));
	bool same;

	if (!lock)
		fail("no memory");
	memset(lock, 0, sizeof(*lock));
	kind->init(lock);
	same = !memcmp(lock, kind->initial, kind->bytes);
	free(lock);
	return same ? "as init" : "differs from init";
}

static const struct {
	const char *name;
	const char *(*observe)(void);
} properties[] = {
	{"bytes", observe_bytes},
	{"constant", observe_constant},
	{"waiter", observe_waits},
	{"order", observe_order},
	{"newcomers", observe_newcomers},
	{"sleeps of a waiter", observe_sleeps},
	{"stalled waiter", observe_stalled},
	{"recursion", observe_recursion},
	{"another thread unlocks", observe_others_unlock},
	{"dead holder", observe_dead_holder},
	{"priority inheritance", observe_inheritance},
	{"fork", observe_fork},
	{"between processes", observe_shared},
	{"places to sleep", observe_seats},
	{"signals", observe_signals},
	{"in a handler", observe_handlers},
};

static bool wanted(const char *name, int count, char **names)
{
	for (int i = 0; i < count; i++) {
		if (!strcmp(names[i], name))
			return 1;
	}
	return count == 0;
}

int main(int count, char **arguments)
{
	kind = count > 1 ? kind_named(arguments[1]) : 0;
	if (!kind)
		fail("usage: properties LOCK [PROPERTY...]");
	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
		if (wanted(properties[i].name, count - 2, arguments + 2))
			printf("%s: %s\n", properties[i].name, properties[i].observe());
	}
	return 0;
}
