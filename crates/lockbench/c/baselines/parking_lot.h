/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * parking_lot.h - the mutex of Rust's crate parking_lot, under the drivers' names.
 *
 * It is one byte; the calls are in src/baselines.rs, so each costs a call more than in a program written in Rust.
 */
#ifndef UNSPIN_BENCH_BASELINES_PARKING_LOT_H
#define UNSPIN_BENCH_BASELINES_PARKING_LOT_H

/* Defined in Rust. `mutex`: one byte, 0 at first. */
extern void unspin_parking_lot_lock(unsigned char *mutex);
extern unsigned char unspin_parking_lot_trylock(unsigned char *mutex);
extern unsigned char unspin_parking_lot_is_locked(const unsigned char *mutex);
extern void unspin_parking_lot_unlock(unsigned char *mutex);

struct parking_lot_lock {
	unsigned char mutex;
};

static inline void parking_lot_init(struct parking_lot_lock *lock)
{
	lock->mutex = 0;
}

static inline void parking_lot_lock(struct parking_lot_lock *lock)
{
	unspin_parking_lot_lock(&lock->mutex);
}

static inline _Bool parking_lot_trylock(struct parking_lot_lock *lock)
{
	return unspin_parking_lot_trylock(&lock->mutex);
}

static inline _Bool parking_lot_is_locked(const struct parking_lot_lock *lock)
{
	return unspin_parking_lot_is_locked(&lock->mutex);
}

static inline void parking_lot_unlock(struct parking_lot_lock *lock)
{
	unspin_parking_lot_unlock(&lock->mutex);
}

#endif
