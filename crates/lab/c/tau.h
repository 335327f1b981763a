/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tau.h - the tau of preemptable ticket locks, for Rust; guest.c asserts that the values are those of locks/. */
#ifndef UNSPIN_LAB_TAU_H
#define UNSPIN_LAB_TAU_H

/* PREEMPTABLE_TICKET_TAU_SPINS and PLATFORM_FOREVER. */
#define UNSPIN_LAB_TAU_SPINS 16384u
#define UNSPIN_LAB_TAU_FOREVER 0xffffffffu

#endif
