/* SPDX-License-Identifier: GPL-2.0-only */
/* hooks.h - what the two halves of the module share. */
#ifndef UNSPIN_COUNTS_HOOKS_H
#define UNSPIN_COUNTS_HOOKS_H

#include <linux/percpu.h>

#include "counts.h"

DECLARE_PER_CPU(struct unspin_counts *, unspin_counts_of);

/* This CPU's; from the module's start to its end there is one. Preemption is off. */
static __always_inline struct unspin_counts *this_cpu_counts(void)
{
	return __this_cpu_read(unspin_counts_of);
}

int start_hooks(void);
void stop_hooks(void);

#endif
