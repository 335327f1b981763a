/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ipi.bpf.h - writes one event for each receiver of an inter-processor interrupt (IPI), with its sender and how it was
 * addressed. Which interrupts are IPIs is decided in common/ipi_match.bpf.h.
 */
#ifndef UNSPIN_BPF_OBSERVE_IPI_H
#define UNSPIN_BPF_OBSERVE_IPI_H

#include "emit.bpf.h"
#include "threads.bpf.h"

#define IPI_CONTEXT const struct unspin_observed_thread

static __always_inline void ipi_reaches(IPI_CONTEXT *thread, const struct unspin_ipi_sender *sender, u64 now_ns,
					u32 receiver)
{
	emit(thread, UNSPIN_EVENT_IPI, now_ns, receiver, sender->how, sender->destination);
}

#include "../common/ipi_match.bpf.h"

#endif
