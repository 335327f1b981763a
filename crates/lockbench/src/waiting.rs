// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `locks/platform/threads.h` by itself: how spins, PAUSEs and stalls are counted (rulings 8 and 10).

use std::{
    ptr,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use unspin_abi::UNSPIN_NOBODY;

const FOREVER: u32 = u32::MAX;
const NOT_STALLED: u32 = u32::MAX;

/// `struct platform_thread` of `locks/platform/threads.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct PlatformThread {
    spins: u64,
    pauses: u64,
    wait_spins: u64,
    stall_spins: u64,
    holder: *const u32,
    holder_at_stall: u32,
    pause_every_spins: u32,
    spins_to_pause: u32,
}
const _: () = assert!(size_of::<PlatformThread>() == 56);

unsafe extern "C" {
    fn driver_thread_state(state: *mut PlatformThread);
    fn driver_thread_start(pause_every_spins: u32, stall_spins: u64);
    fn driver_begin_wait(holder: *const u32);
    fn driver_wait(word: *const u32, value: u32, spins: u32) -> u32;
}

fn start(pause_every_spins: u32, stall_spins: u64) {
    // SAFETY: touches this thread's own state.
    unsafe { driver_thread_start(pause_every_spins, stall_spins) }
}

fn begin_wait(holder: Option<&'static AtomicU32>) {
    let holder = holder.map_or(ptr::null(), |word| word.as_ptr().cast_const());
    // SAFETY: the word, if there is one, lives for ever.
    unsafe { driver_begin_wait(holder) }
}

fn wait(word: &AtomicU32, value: u32, spins: u32) -> u32 {
    // SAFETY: the word outlives the call, and all access to it is atomic.
    unsafe { driver_wait(word.as_ptr(), value, spins) }
}

fn state() -> PlatformThread {
    let mut state = PlatformThread {
        spins: 0,
        pauses: 0,
        wait_spins: 0,
        stall_spins: 0,
        holder: ptr::null(),
        holder_at_stall: 0,
        pause_every_spins: 0,
        spins_to_pause: 0,
    };
    // SAFETY: fills the structure that is given.
    unsafe { driver_thread_state(&mut state) };
    state
}

#[test]
fn a_bounded_wait_takes_so_many_spins() {
    start(1, 2048);
    let word = AtomicU32::new(7);
    for spins in [0, 1, 2, 1_000] {
        begin_wait(None);
        assert_eq!(wait(&word, 7, spins), 7, "spent");
        assert_eq!(state().wait_spins, u64::from(spins));
    }
    assert_eq!(state().spins, 1_003, "all waits since the start");
}

#[test]
fn a_changed_word_is_seen_at_the_first_look() {
    start(1, 2048);
    begin_wait(None);
    assert_eq!(wait(&AtomicU32::new(8), 7, FOREVER), 8);
    assert_eq!((state().wait_spins, state().pauses), (1, 0));
    // With no spins nothing is looked at.
    assert_eq!(wait(&AtomicU32::new(8), 7, 0), 7);
    assert_eq!(state().wait_spins, 1);
}

#[test]
fn pause_comes_at_every_kth_spin_across_waits() {
    let word = AtomicU32::new(7);
    for (k, expected) in [(1, 100), (3, 33), (100, 1), (101, 0)] {
        start(k, 2048);
        for _ in 0..100 {
            wait(&word, 7, 1);
        }
        assert_eq!(state().pauses, expected, "k = {k}");
    }
}

#[test]
fn a_stall_is_a_wait_of_more_than_the_bound() {
    static HOLDER: AtomicU32 = AtomicU32::new(3);
    let word = AtomicU32::new(7);
    start(1, 2048);
    begin_wait(Some(&HOLDER));
    wait(&word, 7, 2_047);
    wait(&word, 7, 1);
    assert_eq!(state().holder_at_stall, NOT_STALLED, "2,048 spins are none");
    wait(&word, 7, 1);
    assert_eq!(state().holder_at_stall, 3, "the holder then");
    // Who holds the lock later does not matter.
    HOLDER.store(UNSPIN_NOBODY, Ordering::Relaxed);
    wait(&word, 7, 5_000);
    assert_eq!(state().holder_at_stall, 3);
    // The next acquisition counts from 0.
    begin_wait(Some(&HOLDER));
    assert_eq!(state().holder_at_stall, NOT_STALLED);
    wait(&word, 7, 2_049);
    assert_eq!(
        state().holder_at_stall,
        UNSPIN_NOBODY,
        "nobody held it: a waiter preemption"
    );
}

#[test]
fn a_wait_without_bound_ends_with_the_change() {
    let word = AtomicU32::new(7);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            start(1, 2048);
            begin_wait(None);
            (wait(&word, 7, FOREVER), state().wait_spins)
        });
        thread::sleep(std::time::Duration::from_millis(30));
        word.store(9, Ordering::Release);
        let (seen, spins) = waiter.join().expect("no panic");
        assert_eq!(seen, 9);
        assert!(spins >= 1, "it looked");
    });
}
