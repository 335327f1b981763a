/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lab.h - the interface between a simulated guest and the world. A guest task is a coroutine that runs the iterations
 * of guest/iteration.c with the locks of locks/; each operation that takes time, or that others can see, is a request
 * to the world.
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
	UNSPIN_LAB_WAIT_UNTIL = 7,	 /* first: value, second: spins; returns the value read last */
	/* Requests of the task; word is 0. */
	UNSPIN_LAB_USER = 8,	  /* first: loops at CPL 3 */
	UNSPIN_LAB_KERNEL = 9,	  /* first: loops at CPL 0 */
	UNSPIN_LAB_HOLD = 10,	  /* first: loops at CPL 0 while holding the lock; second: number of the lock */
	UNSPIN_LAB_SEND = 11,	  /* shootdown request to all other vCPUs, which must answer */
	UNSPIN_LAB_PASS = 12,	  /* gives a token to the next vCPU, with an interrupt */
	UNSPIN_LAB_TAKE = 13,	  /* takes one of the vCPU's own tokens; returns 0 if there is none */
	UNSPIN_LAB_HALT = 14,	  /* until an interrupt has been handled */
	UNSPIN_LAB_ITERATED = 15, /* an iteration has ended */
	UNSPIN_LAB_DONE = 16,	  /* no more iterations; never returns */
	/* More accesses to a word. */
	UNSPIN_LAB_FETCH_OR = 17,  /* first: bits */
	UNSPIN_LAB_FETCH_AND = 18, /* first: bits */
	/* Requests of the waiting contract; word is 0. */
	UNSPIN_LAB_KICK = 19,	    /* first: number of the vCPU in the VM; kick by hypercall */
	UNSPIN_LAB_TAKE_KICK = 20,  /* takes a kick that the vCPU has received; returns 0 if there is none */
	UNSPIN_LAB_HELP = 21,	    /* by hypercall */
	UNSPIN_LAB_HELP_NAMED = 22, /* first: number of the vCPU in the VM; yield by hypercall */
	UNSPIN_LAB_PREEMPTED =
		23, /* first: number of the vCPU in the VM; returns whether it is off its pCPU but runnable */
	UNSPIN_LAB_OVERLOADED = 24, /* returns whether another task could run on this pCPU */
	UNSPIN_LAB_RUNNABLE = 25,   /* returns the number of runnable guest tasks on this vCPU, this one included */
	UNSPIN_LAB_SPIN_COUNT = 27, /* first: the guest's own threshold; returns the one in force */
	UNSPIN_LAB_WAKE = 26, /* first: number of the vCPU in the VM, one of whose tasks must read its word again */
};

/* Locks and shootdowns, or one of the two loads between which a guest changes. */
enum unspin_lab_load {
	UNSPIN_LAB_LOAD_BOTH = 0,
	UNSPIN_LAB_LOAD_LOCKS = 1,
	UNSPIN_LAB_LOAD_SHOOTDOWNS = 2,
};

/* One guest task. The world fills it in before unspin_lab_run() and reads the notes at each request. */
struct unspin_lab_task {
	unspin_u64 random; /* state of its random generator (locks/parts/work.h) */
	const struct unspin_distribution *user_work;
	const struct unspin_distribution *kernel_work;
	const struct unspin_distribution *hold;
	unsigned char *memory;	 /* initialised by unspin_lab_memory_init() */
	unspin_u32 number;	 /* number of the vCPU in its VM */
	unspin_u32 task;	 /* number of the task in its VM: number + vcpus * its place on its vCPU */
	unspin_u32 vcpus;	 /* of the VM */
	unspin_u32 lock_kind;	 /* enum unspin_lock_kind */
	unspin_u32 locks;	 /* number of locks shared by all vCPUs; 0: one lock each */
	unspin_u32 memory_locks; /* number of locks in `memory` */
	unspin_u32 shootdown_every_iterations;
	unspin_u32 wakeup_every_iterations;
	unspin_u32 iterations; /* number of iterations; 0: no end */
	/* Which of two loads the guest has in this iteration (guest/iteration.c); the world sets it. */
	unspin_u32 load; /* enum unspin_lab_load */
	/* Notes for the world, which clears them: the lock's number + 1 since the last request; 0: none. */
	unspin_u32 asked;
	unspin_u32 released;
};

/*
 * Bytes of a VM's memory: the cache lines of each lock, then one line for each vCPU with its word of missing answers.
 */
unspin_u64 unspin_lab_memory_bytes(unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 vcpus);

/*
 * Initialises the locks in `memory`, which is aligned to 64 bytes and zero; the kind is below UNSPIN_LOCK_KIND_COUNT.
 * `tau_spins`: for preemptable ticket locks, 0 to PLATFORM_FOREVER (ruling 12).
 */
void unspin_lab_memory_init(unsigned char *memory, unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 tau_spins);

/* Offset in bytes of a vCPU's word of missing answers in that memory. */
unspin_u64 unspin_lab_unanswered_at(unspin_u32 lock_kind, unspin_u32 locks, unspin_u32 number);

/*
 * Runs the iterations of a task, on its own stack; each request leaves it through unspin_lab_perform(). Does not
 * return.
 */
void unspin_lab_run(struct unspin_lab_task *task);

/* Provided by the world: the task that runs now. */
const struct unspin_lab_task *unspin_lab_self(void);

/* Provided by the world: passes a request on, and returns its answer at the simulated time when it is done. */
unspin_u32 unspin_lab_perform(unspin_u32 kind, const struct platform_word *word, unspin_u32 first, unspin_u32 second);

#endif
