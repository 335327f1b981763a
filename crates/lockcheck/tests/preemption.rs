// SPDX-License-Identifier: MIT OR Apache-2.0
//! The preemptable ticket lock over time: threads advance spin by spin, some of them preempted, over thousands of
//! seeds. Checks the fairness that VEE'13 section 4.3 promises, as far as it holds (rulings 8, 11 and 12).

mod common;

use common::{HEAD, Random, TAKEN, TAU, kind};
use unspin_lockcheck::script::{Request, World};

/// Spins per place. Greater than hold time and overhead together: "the above discussion only holds" then.
const TAU_SPINS: u32 = 60;
const HOLD_LOOPS: u64 = 8;

/// One request for the lock.
#[derive(Clone, Copy, Debug, Default)]
struct Ask {
    thread: usize,
    /// It was preempted while it waited.
    preempted: bool,
    timed_out: bool,
    /// Entries of other threads since it last resumed.
    passed_since_running: usize,
}

/// Threads that make one step per spin each, unless preempted.
struct Timed {
    world: World,
    random: Random,
    running: Vec<bool>,
    /// The spin at which the thread inside leaves.
    leave_at: Vec<u64>,
    now: u64,
    /// Every request so far, by ticket.
    asks: Vec<Ask>,
    /// Each thread's request that has not been granted.
    open: Vec<Option<usize>>,
    /// Tickets in order of entry.
    entries: Vec<usize>,
}

impl Timed {
    fn new(threads: usize, acquisitions: usize, seed: u64) -> Timed {
        let program = "L".repeat(acquisitions);
        let mut world = World::new(kind("preemptable_ticket"), &vec![program.as_str(); threads]);
        world.start(&[(TAU, TAU_SPINS)]);
        Timed {
            world,
            random: Random(seed),
            running: vec![true; threads],
            leave_at: vec![0; threads],
            now: 0,
            asks: Vec::new(),
            open: vec![None; threads],
            entries: Vec::new(),
        }
    }

    fn threads(&self) -> usize {
        self.running.len()
    }

    fn all_done(&self) -> bool {
        (0..self.threads()).all(|thread| self.world.pending(thread) == Request::Done)
    }

    /// Whether the thread waits, in the queue or for the lock word.
    fn waits(&self, thread: usize) -> bool {
        matches!(self.world.pending(thread), Request::Wait { .. })
    }

    fn preempt(&mut self, thread: usize) {
        self.running[thread] = false;
        if let Some(ticket) = self.open[thread] {
            self.asks[ticket].preempted = true;
        }
    }

    fn resume(&mut self, thread: usize) {
        self.running[thread] = true;
        if let Some(ticket) = self.open[thread] {
            self.asks[ticket].passed_since_running = 0;
        }
    }

    /// Each running thread makes one step, in random order.
    fn spin(&mut self) {
        let mut order: Vec<usize> = (0..self.threads()).collect();
        for i in (1..order.len()).rev() {
            order.swap(i, self.random.below(i + 1));
        }
        for thread in order {
            if self.running[thread] {
                self.step(thread);
            }
        }
        self.now += 1;
    }

    fn step(&mut self, thread: usize) {
        if self.world.pending(thread) == Request::Leave && self.now < self.leave_at[thread] {
            return;
        }
        let spent = self.world.is_waiting(thread);
        match self.world.step(thread) {
            Request::FetchAdd(..) => {
                self.open[thread] = Some(self.asks.len());
                self.asks.push(Ask {
                    thread,
                    ..Ask::default()
                });
            }
            Request::Wait {
                word: HEAD,
                spins: 1,
                ..
            } if spent => {
                let ticket = self.open[thread].expect("it waits");
                self.asks[ticket].timed_out = true;
            }
            Request::Enter(_) => self.entered(thread),
            _ => {}
        }
    }

    fn entered(&mut self, thread: usize) {
        let ticket = self.open[thread].take().expect("it asked");
        self.check_priority(ticket);
        self.entries.push(ticket);
        self.leave_at[thread] = self.now + 1 + self.random.below(HOLD_LOOPS as usize) as u64;
        for other in self.open.iter().flatten() {
            self.asks[*other].passed_since_running += 1;
        }
    }

    /// A thread that was never preempted and has not timed out enters only if no timed-out thread can.
    fn check_priority(&self, ticket: usize) {
        let ask = self.asks[ticket];
        if ask.preempted || ask.timed_out {
            return;
        }
        for other in self.open.iter().flatten().map(|&open| self.asks[open]) {
            let competes = other.timed_out && self.running[other.thread];
            assert!(
                !competes,
                "{ask:?} entered before {other:?}, whose time was up"
            );
        }
    }
}

/// Runs to the end; `meddle` may preempt and resume threads before each spin.
fn run(mut timed: Timed, mut meddle: impl FnMut(&mut Timed)) -> Timed {
    while !timed.all_done() {
        meddle(&mut timed);
        timed.spin();
        assert!(timed.now < 2_000_000, "stuck: {:?}", timed.world.words());
    }
    let words = timed.world.words();
    assert_eq!(
        words[0] as usize,
        timed.asks.len(),
        "every request was counted"
    );
    assert_eq!(
        words[HEAD] as usize,
        timed.asks.len(),
        "every request was granted"
    );
    assert_eq!(words[TAKEN], 0);
    let mut granted = timed.entries.clone();
    granted.sort_unstable();
    assert!(
        granted.iter().copied().eq(0..timed.asks.len()),
        "each exactly once"
    );
    timed
}

#[test]
fn without_preemption_it_is_first_come_first_served() {
    for seed in 0..1_000 {
        let threads = 2 + (seed % 7) as usize;
        let timed = run(Timed::new(threads, 4, seed), |_| {});
        assert!(
            timed.entries.iter().copied().eq(0..timed.asks.len()),
            "seed {seed}"
        );
        assert!(timed.asks.iter().all(|ask| !ask.timed_out), "seed {seed}");
    }
}

/// Waiters, never holders, are preempted for up to 20 tau.
fn preempt_waiters(timed: &mut Timed) {
    for thread in 0..timed.threads() {
        if !timed.running[thread] {
            if timed.random.once_in(10 * TAU_SPINS as usize) {
                timed.resume(thread);
            }
        } else if timed.waits(thread) && timed.random.once_in(TAU_SPINS as usize) {
            timed.preempt(thread);
        }
    }
}

#[test]
fn preempted_waiters_are_passed_and_nobody_else() {
    let (mut overtakings, mut time_outs) = (0, 0);
    for seed in 0..800 {
        let threads = 2 + (seed % 7) as usize;
        let timed = run(Timed::new(threads, 4, seed), preempt_waiters);
        // Strict order among those that were never preempted and never timed out.
        let undisturbed = timed.entries.iter().filter(|&&ticket| {
            let ask = timed.asks[ticket];
            !ask.preempted && !ask.timed_out
        });
        assert!(undisturbed.is_sorted(), "seed {seed}: {:?}", timed.entries);
        overtakings += timed
            .entries
            .windows(2)
            .filter(|pair| pair[0] > pair[1])
            .count();
        time_outs += timed.asks.iter().filter(|ask| ask.timed_out).count();
    }
    assert!(
        overtakings > 500 && time_outs > 500,
        "{overtakings} {time_outs}: too tame"
    );
}

/// Claim O09: once a waiter runs again, fewer others enter before it than there are vCPUs.
#[test]
fn a_waiter_that_runs_again_is_passed_by_fewer_than_there_are_vcpus() {
    let mut most = 0;
    for seed in 0..800 {
        let threads = 2 + (seed % 7) as usize;
        let mut resumed_all = false;
        let timed = run(Timed::new(threads, 3, seed), |timed| {
            // All threads may be preempted as above for a while, then none.
            if timed.now < 40 * u64::from(TAU_SPINS) {
                preempt_waiters(timed);
            } else if !resumed_all {
                resumed_all = true;
                (0..timed.threads()).for_each(|thread| timed.resume(thread));
            }
        });
        for ask in &timed.asks {
            assert!(ask.passed_since_running < threads, "seed {seed}: {ask:?}");
            most = most.max(ask.passed_since_running);
        }
    }
    assert!(
        most >= 3,
        "nobody was ever passed by more than {most}: too tame"
    );
}

/// Ruling 11: of R timed-out waiters, each has had the lock after x acquisitions with probability x / R.
#[test]
fn timed_out_waiters_have_equal_chances() {
    const WAITERS: usize = 4;
    const SEEDS: usize = 4_000;
    let mut had_it_after = [0usize; WAITERS + 1];
    for seed in 0..SEEDS {
        let mut timed = Timed::new(WAITERS + 1, 1, seed as u64);
        // Thread 0 holds the lock until all others, queued in order of their numbers, have timed out.
        timed
            .world
            .run_until(0, |request| request == Request::Leave);
        timed.asks.push(Ask::default());
        for thread in 1..=WAITERS {
            timed.world.run_to_wait(thread);
            timed.world.time_out(thread);
            timed.world.step(thread);
            timed.asks.push(Ask {
                thread,
                timed_out: true,
                ..Ask::default()
            });
            timed.open[thread] = Some(thread);
        }
        timed.entries.push(0);
        let timed = run(timed, |_| {});
        let place = timed
            .entries
            .iter()
            .position(|&ticket| ticket == 1)
            .expect("entered");
        (place..=WAITERS).for_each(|x| had_it_after[x] += 1);
    }
    for (x, &count) in had_it_after.iter().enumerate() {
        let expected = x as f64 / WAITERS as f64;
        let four_sigma = 4.0 * (expected * (1.0 - expected) / SEEDS as f64).sqrt();
        let measured = count as f64 / SEEDS as f64;
        assert!(
            (measured - expected).abs() <= four_sigma,
            "P({x}) = {measured}, not {expected}"
        );
    }
}
