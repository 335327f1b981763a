/* SPDX-License-Identifier: (MIT OR Apache-2.0) OR GPL-2.0-only */
/*
 * spin_samples.h - the policy word `spin-samples`: a vCPU that spins is found before its pause-loop window is over, by samples.
 *
 * KVM doubles a vCPU's window at each pause-loop exit, from 3,000 PAUSEs up to 65,535 on AMD, and begins again when the vCPU is
 * scheduled in (grow_ple_window(), shrink_ple_window(), arch/x86/kvm/svm/svm.c, Linux 7.2): a vCPU that waits for a preempted one is
 * seen late, and then hardly at all. A timer of the host's stops a vCPU anywhere, which is a sample: at a place where its guest waits
 * (spin_places.h) it may spin, and twice in a row it is taken to have been in a pause-loop exit, with all that follows.
 *
 * Sampled is a vCPU with reason to be: it was seen spinning just now (a pause-loop exit), it was waiting when it lost its CPU,
 * or it runs on a loan, which a waiter has no use for. Samples get rarer while nothing comes of them, and end.
 *
 * A guest may pause wherever it likes, and is sampled then: each sample an exit of a microsecond or two, most of it on its own time.
 */
#ifndef UNSPIN_POLICY_CLASSIFY_SPIN_SAMPLES_H
#define UNSPIN_POLICY_CLASSIFY_SPIN_SAMPLES_H

#include "spin_places.h"

/*
 * Times between samples, ns. Ours: the shorter one is about what a window of 200 PAUSEs takes, at which loans drain a convoy
 * (docs/loan.md), and ten times what an exit costs; the longer one is below the shortest window that KVM has by default.
 */
#define UNSPIN_SAMPLE_SHORT_NS 20000u
#define UNSPIN_SAMPLE_LONG_NS 160000u
/* Samples in a row that find it waiting, from which on it spins: one alone finds waits that are about to end, too. Ours. */
#define UNSPIN_SAMPLES_OF_SPINNER 2u

/* One vCPU. Zeroes: it is not sampled. */
struct unspin_spin_samples {
	unspin_u32 interval_ns; /* to the next one; 0: there is none */
	unspin_u32 found;	/* of the last ones, in a row, that found it waiting */
};
UNSPIN_ASSERT_SIZE(struct unspin_spin_samples, 8);

/* There is reason to sample it from now on; `waited`: it was seen waiting. */
static inline void unspin_samples_begin(struct unspin_spin_samples *samples, _Bool waited)
{
	samples->interval_ns = UNSPIN_SAMPLE_SHORT_NS;
	samples->found = waited;
}

/* A sample: `waits`: it was at such a place. Returns whether it spins. */
static inline _Bool unspin_sampled(struct unspin_spin_samples *samples, _Bool waits)
{
	unspin_u32 next_ns = samples->interval_ns * 2;

	if (!waits) {
		samples->found = 0;
		samples->interval_ns = next_ns <= UNSPIN_SAMPLE_LONG_NS ? next_ns : 0;
		return 0;
	}
	if (samples->found < UNSPIN_SAMPLES_OF_SPINNER)
		samples->found++;
	if (samples->found < UNSPIN_SAMPLES_OF_SPINNER)
		return 0;
	/* If nothing comes of it, it is asked again later. */
	samples->interval_ns = next_ns <= UNSPIN_SAMPLE_LONG_NS ? next_ns : UNSPIN_SAMPLE_LONG_NS;
	return 1;
}

#endif
