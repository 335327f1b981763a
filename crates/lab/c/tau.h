/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tau.h - the times of preemptable ticket locks, for Rust; guest.c checks that they are those of locks/. */
#ifndef UNSPIN_LAB_TAU_H
#define UNSPIN_LAB_TAU_H

/* PREEMPTABLE_TICKET_TAU_SPINS and PLATFORM_FOREVER. */
#define UNSPIN_LAB_TAU_SPINS 16384u
#define UNSPIN_LAB_TAU_FOREVER 0xffffffffu

#endif
