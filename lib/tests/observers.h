/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* observers.h - what properties.c observes of a lock. Each observer returns a value in words, or ends the program. */
#ifndef UNSPIN_LIB_TESTS_OBSERVERS_H
#define UNSPIN_LIB_TESTS_OBSERVERS_H

#include "kind.h"

/* The lock that is observed. */
extern const struct kind *kind;

/* A free lock, of free(). */
union any *new_lock(void);
/* Runs `work` in a child. Returns its exit status, 128 + the signal that ended it, or -1 if it had to be stopped. */
int in_child(int (*work)(union any *lock), union any *lock, long limit_ns);

/* waiting.c */
const char *observe_waits(void);
const char *observe_order(void);
const char *observe_newcomers(void);
const char *observe_sleeps(void);
const char *observe_stalled(void);
/* holders.c */
const char *observe_recursion(void);
const char *observe_others_unlock(void);
const char *observe_dead_holder(void);
const char *observe_inheritance(void);
/* processes.c */
const char *observe_fork(void);
const char *observe_shared(void);
const char *observe_seats(void);
/* signals.c */
const char *observe_signals(void);
const char *observe_handlers(void);

#endif
