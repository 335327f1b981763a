/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lab.h - what a simulated guest and the world agree on: a guest task is a coroutine that runs the iterations of guest/iteration.c
 * with the locks of locks/; each thing that takes time, or that others can see, is a request to the world.
 */
#ifndef UNSPIN_LAB_H
#define UNSPIN_LAB_H

#include "../../../abi/guest/memory.h"

struct platform_word;

enum unspin_lab_kind {
	/* Accesses to a word, as in locks/platform/contract.h. */
	UNSPIN_LAB_LOAD = 1,
	UNSPIN_LAB_STORE = 2,		 /* first: value */
	UNSPIN_LAB_EXCHANGE = 3,	 /* first: value */
	UNSPIN_LAB_FETCH_ADD = 4,	 /* first: addend */
	UNSPIN_LAB_COMPARE_EXCHANGE = 5, /* first: expected, second: desired */
	UNSPIN_LAB_WAIT_WHILE = 6,	 /* first: value, second: spins */
	UNSPIN_LAB_WAIT_UNTIL = 7,	 /* first: value, second: spins; returns what it held last */
	/* Of the task; word is 0. */
	UNSPIN_LAB_USER = 8,   /* first: loops at CPL 3 */
	UNSPIN_LAB_KERNEL = 9, /* first: loops at CPL 0 */
	UNSPIN_LAB_HOLD = 10,  /* first: loops at CPL 0 with the lock, which is held from now on; second: which lock */
	UNSPIN_LAB_SEND = 11,  /* to all other vCPUs: answer me */
	UNSPIN_LAB_PASS = 12,  /* a token to the next vCPU, with an interrupt */
	UNSPIN_LAB_TAKE = 13,  /* a token of one's own; returns 0 when there is none */
	UNSPIN_LAB_HALT = 14,  /* until an interrupt has been handled */
	UNSPIN_LAB_ITERATED = 15, /* an iteration is done */
	UNSPIN_LAB_DONE = 16,	  /* no more iterations; never returns */
	/* More accesses. */
	UNSPIN_LAB_FETCH_OR = 17,  /* first: bits */
	UNSPIN_LAB_FETCH_AND = 18, /* first: bits */
	/* Of the waiting contract; word is 0. */
	UNSPIN_LAB_KICK = 19,	    /* first: vCPU of the VM, by hypercall */
	UNSPIN_LAB_TAKE_KICK = 20,  /* a kick of one's own; returns 0 when there is none */
	UNSPIN_LAB_HELP = 21,	    /* by hypercall */
	UNSPIN_LAB_HELP_NAMED = 22, /* first: vCPU of the VM, by hypercall */
	UNSPIN_LAB_PREEMPTED = 23,  /* first: vCPU of the VM; whether it is off its pCPU though it could run */
	UNSPIN_LAB_OVERLOADED = 24, /* whether somebody else could run on this pCPU */
	UNSPIN_LAB_RUNNABLE = 25,   /* guest tasks that could run on this vCPU, this one included */
	UNSPIN_LAB_SPIN_COUNT = 27, /* first: the guest's own threshold; returns the one in force */
	UNSPIN_LAB_WAKE = 26,	    /* first: vCPU of the VM, on which a task has something to look at */
};

/* One guest task. The world fills it in before unspin_lab_run() and reads the notes at each request. */
struct unspin_lab_task {
	unspin_u64 random; /* state of its generator (locks/parts/work.h) */
	const struct unspin_distribution *user_work;
	const struct unspin_distribution *kernel_work;
	const struct unspin_distribution *hold;
	unsigned char *memory; /* unspin_lab_memory() */
	unspin_u32 number;     /* of the vCPU in its VM */
	unspin_u32 task;       /* of the task in its VM: number + vcpus * its place among those of its vCPU */
	unspin_u32 vcpus;      /* of the VM */
	unspin_u32 lock_kind;  /* enum unspin_lock_kind */
	unspin_u32 locks;      /* shared by all vCPUs; 0: one each */
	unspin_u32 shootdown_every_iterations;
	unspin_u32 wakeup_every_iterations;
	unspin_u32 iterations; /* 0: for ever */
	/* Notes: what happened since the last request. A lock's number + 1; 0: nothing. The world clears them. */
	unspin_u32 asked;
	unspin_u32 released;
};

/* Bytes of a VM's memory: the cache lines of each lock, then one per vCPU (its word of unanswered requests). */
unspin_u64 unspin_lab_memory_bytes(unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 vcpus);

/*
 * Makes the locks in it. `memory` is aligned to 64 bytes and zero; the kind is below UNSPIN_LOCK_KIND_COUNT. `tau_spins`:
 * of preemptable ticket locks, 0 to PLATFORM_FOREVER (ruling 12).
 */
void unspin_lab_memory_init(unsigned char *memory, unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 tau_spins);

/* Where in it the word of unanswered requests of a vCPU lies, in bytes. */
unspin_u64 unspin_lab_unanswered_at(unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 number);

/* The iterations of a task. On its own stack; each request leaves it through unspin_lab_perform(). Does not return. */
void unspin_lab_run(struct unspin_lab_task *task);

/* The world's: the task that runs now. */
const struct unspin_lab_task *unspin_lab_self(void);

/* The world's: hands a request over and returns with its answer, when the simulated time has come. */
unspin_u32 unspin_lab_perform(unspin_u32 kind, const struct platform_word *word, unspin_u32 first, unspin_u32 second);

#endif
