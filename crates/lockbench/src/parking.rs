// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of `locks/platform/threads.h`: parking loses no kick, and run_states are what their source says and no more.

use std::{
    io,
    sync::{
        Barrier,
        atomic::{AtomicBool, AtomicU32, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use unspin_abi::{LockKind, UNSPIN_QUANTILES, unspin_distribution, unspin_thread_run_state};

use crate::{
    affinity,
    ffi::{PlatformTable, driver_join, driver_leave},
    group::{Group, Phase, Work},
    table::{RunStatePage, RunStates, Table, WAITERS_MAX, rseq_offers},
};

unsafe extern "C" {
    fn driver_park(word: *const u32, value: u32);
    fn driver_kick(waiter: u32);
    fn driver_is_preempted(waiter: u32) -> u32;
    fn driver_is_overloaded() -> u32;
    fn driver_is_parked(table: *const PlatformTable, waiter: u32) -> u32;
    fn driver_parks(table: *const PlatformTable) -> u64;
}

/// A thread of a table, from new() to its drop.
struct Joined;

impl Joined {
    fn new(table: &Table, number: u32) -> Joined {
        // SAFETY: the table outlives the thread's part in it: tests borrow it longer.
        unsafe { driver_join(table.as_ptr(), number) };
        Joined
    }

    fn park(&self, word: &AtomicU32, value: u32) {
        // SAFETY: a live word.
        unsafe { driver_park(word.as_ptr(), value) };
    }

    fn kick(&self, waiter: u32) {
        // SAFETY: any number is allowed.
        unsafe { driver_kick(waiter) };
    }

    fn sees_preempted(&self, waiter: u32) -> bool {
        // SAFETY: any number is allowed.
        unsafe { driver_is_preempted(waiter) != 0 }
    }

    fn sees_overload(&self) -> bool {
        // SAFETY: reads the thread's own table.
        unsafe { driver_is_overloaded() != 0 }
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // SAFETY: the calling thread has joined.
        unsafe { driver_leave() };
    }
}

fn parks(table: &Table) -> u64 {
    // SAFETY: a live table.
    unsafe { driver_parks(table.as_ptr()) }
}

fn is_parked(table: &Table, waiter: u32) -> bool {
    // SAFETY: a live table.
    unsafe { driver_is_parked(table.as_ptr(), waiter) != 0 }
}

/// Does the work on a thread of its own; a kick that is lost ends the test, not the suite.
fn within(limit: Duration, work: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    thread::spawn(move || {
        work();
        let _ = done.send(());
    });
    ended
        .recv_timeout(limit)
        .expect("done in time: else a kick was lost, or it panicked");
}

/// Two threads hand a word to and fro; whoever waits parks at once, so that a lost kick would stop both.
#[test]
fn no_kick_is_lost_in_a_hundred_thousand_rounds() {
    const ROUNDS: u32 = 100_000;
    within(Duration::from_secs(60), || {
        let (table, word) = (Table::new(), AtomicU32::new(0));
        thread::scope(|scope| {
            for me in 0..2 {
                let (table, word) = (&table, &word);
                scope.spawn(move || {
                    let joined = Joined::new(table, me);
                    for round in 0..ROUNDS {
                        let mine = 2 * round + me;
                        loop {
                            let seen = word.load(Ordering::Acquire);
                            if seen == mine {
                                break;
                            }
                            joined.park(word, seen);
                        }
                        word.store(mine + 1, Ordering::SeqCst);
                        joined.kick(1 - me);
                    }
                });
            }
        });
        assert_eq!(word.into_inner(), 2 * ROUNDS);
        assert!(parks(&table) > 0, "nobody ever waited in the kernel");
    });
}

#[test]
fn a_kick_before_the_park_ends_it_and_counts_once() {
    within(Duration::from_secs(20), || {
        let (table, word) = (Table::new(), AtomicU32::new(7));
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let joined = Joined::new(&table, 3);
                joined.kick(3);
                joined.kick(3);
                joined.park(&word, 7);
                let at_once = parks(&table);
                // The word differs: returns at once as well.
                joined.park(&word, 8);
                let differs = parks(&table);
                joined.park(&word, 7);
                (at_once, differs, parks(&table))
            });
            while !is_parked(&table, 3) {
                thread::yield_now();
            }
            let joined = Joined::new(&table, 4);
            joined.kick(3);
            assert_eq!(waiter.join().expect("no panic"), (0, 0, 1));
        });
    });
}

#[test]
fn who_has_no_seat_never_parks_and_is_kicked_in_vain() {
    within(Duration::from_secs(5), || {
        let (table, word) = (Table::new(), AtomicU32::new(7));
        let joined = Joined::new(&table, WAITERS_MAX);
        joined.park(&word, 7);
        joined.kick(WAITERS_MAX);
        joined.kick(u32::MAX);
        assert!(!joined.sees_preempted(WAITERS_MAX) && !joined.sees_preempted(u32::MAX));
        drop(joined);
        // SAFETY: a live word; the thread has left its table.
        unsafe { driver_park(word.as_ptr(), 7) };
        assert_eq!(parks(&table), 0);
    });
}

/// A page of zeroes that anybody can write.
struct Page(Vec<[AtomicU32; 16]>);

impl Page {
    fn new() -> Page {
        assert_eq!(
            size_of::<unspin_thread_run_state>(),
            size_of::<[AtomicU32; 16]>()
        );
        Page((0..WAITERS_MAX).map(|_| Default::default()).collect())
    }
}

// SAFETY: the vector never changes its length; atomics may be written while others read them.
unsafe impl RunStatePage for Page {
    fn first(&self) -> *const unspin_thread_run_state {
        self.0.as_ptr().cast()
    }

    fn len(&self) -> u32 {
        self.0.len() as u32
    }

    fn register_this_thread(&self, _number: u32) -> io::Result<()> {
        Ok(())
    }
}

fn with_run_states(table: &Table, run_states: RunStates<'_>) {
    // SAFETY: tests keep their pages until their threads have ended.
    unsafe { table.set_run_states(run_states, 0) };
}

#[test]
fn the_page_is_believed_until_it_goes_away() {
    let (table, page) = (Table::new(), Page::new());
    with_run_states(&table, RunStates::Page(&page));
    let joined = Joined::new(&table, 0);
    assert!(!joined.sees_preempted(5) && !joined.sees_overload());
    page.0[5][0].store(1, Ordering::Relaxed);
    page.0[6][0].store(2, Ordering::Relaxed);
    page.0[0][1].store(1, Ordering::Relaxed);
    assert!(joined.sees_preempted(5) && joined.sees_preempted(6) && joined.sees_overload());
    assert!(!joined.sees_preempted(7));
    table.drop_run_states();
    assert!(!joined.sees_preempted(5) && !joined.sees_overload());
    drop(joined);
}

/// Two threads on one CPU: while one runs, the other does not, and rseq says so. Elsewhere nothing is said.
#[test]
fn rseq_knows_who_was_last_on_my_cpu() {
    if !rseq_offers().area {
        println!("this kernel or libc has no rseq: nothing to test");
        return;
    }
    let cpus = affinity::allowed(None).expect("an affinity mask");
    let (table, together, done) = (Table::new(), Barrier::new(2), AtomicBool::new(false));
    with_run_states(&table, RunStates::Rseq);
    thread::scope(|scope| {
        scope.spawn(|| {
            affinity::allowed(Some(1))
                .and_then(|one| one.confine_this_thread())
                .expect("one CPU");
            let joined = Joined::new(&table, 1);
            together.wait();
            while !done.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            drop(joined);
        });
        scope.spawn(|| {
            affinity::allowed(Some(1))
                .and_then(|one| one.confine_this_thread())
                .expect("one CPU");
            let joined = Joined::new(&table, 0);
            together.wait();
            let limit = Instant::now() + Duration::from_secs(10);
            // At once unless the other has not come back from the kernel since it was confined.
            while !(joined.sees_preempted(1) && joined.sees_overload()) {
                assert!(
                    Instant::now() < limit,
                    "the other is on my CPU, and never said to be"
                );
                thread::yield_now();
            }
            assert!(!joined.sees_preempted(0), "I run");
            assert!(!joined.sees_preempted(2), "nobody has that number");
            done.store(true, Ordering::Relaxed);
            drop(joined);
        });
    });
    assert!(cpus.len() > 0);
}

/// What a liar does to the table's source of run_states while locks are taken.
#[derive(Clone, Copy, Debug)]
enum Lie {
    /// All bits of the page at random, all the time.
    Random,
    /// Everybody is preempted and every CPU overloaded; then the source goes away, and comes back.
    GoesAway,
}

fn constant(loops: u32) -> unspin_distribution {
    unspin_distribution {
        quantile_loops: [loops; UNSPIN_QUANTILES as usize],
    }
}

fn lie(page: &Page, table: &Table, lie: Lie, stop: &AtomicBool) {
    let mut random = 0x9e37_79b9_u32;
    while !stop.load(Ordering::Relaxed) {
        for word in page.0.iter().flatten() {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            let value = match lie {
                Lie::Random => random,
                Lie::GoesAway => 1,
            };
            word.store(value, Ordering::Relaxed);
        }
        if matches!(lie, Lie::GoesAway) {
            table.drop_run_states();
            thread::sleep(Duration::from_micros(200));
            with_run_states(table, RunStates::Page(page));
        }
        thread::sleep(Duration::from_micros(200));
    }
}

/// Every lock excludes, loses nothing and comes to its end, whatever the run_states say.
#[test]
fn no_lock_hangs_or_lets_two_in_because_a_run_state_lies() {
    const THREADS: u32 = 5;
    const SPINS: u32 = 400;
    for kind in LockKind::all() {
        for kind_of_lie in [Lie::Random, Lie::GoesAway] {
            within(Duration::from_secs(60), move || {
                let page = Page::new();
                let mut group = Group::new(kind, THREADS, 1);
                with_run_states(group.table(), RunStates::Page(&page));
                let work = Work {
                    user_work: constant(0),
                    kernel_work: constant(0),
                    hold: constant(200),
                    locks: 1,
                    iterations: SPINS,
                    pause_every_spins: 1,
                    seed: 1,
                };
                let (phase, stop) = (Phase::new(false), AtomicBool::new(false));
                let entered: u64 = thread::scope(|scope| {
                    let (group, work, phase, stop, page) = (&group, &work, &phase, &stop, &page);
                    scope.spawn(move || lie(page, group.table(), kind_of_lie, stop));
                    let handles: Vec<_> = (0..THREADS)
                        .map(|number| scope.spawn(move || group.validate(work, phase, number)))
                        .collect();
                    let seen = handles
                        .into_iter()
                        .map(|handle| handle.join().expect("no panic"));
                    let entered = seen
                        .map(|one| {
                            assert_eq!(one.violations, 0, "{kind:?} {kind_of_lie:?}");
                            one.locked + one.try_locked
                        })
                        .sum();
                    stop.store(true, Ordering::Relaxed);
                    entered
                });
                assert_eq!(group.entries(), entered, "{kind:?} {kind_of_lie:?}");
                assert_eq!(group.still_locked(), 0, "{kind:?} {kind_of_lie:?}");
            });
        }
    }
}
