// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stalls of waits for locks in the lab, as VEE'13's Table 1 counts them in a guest's kernel (ruling 10): a wait of more than
//! 2,048 spins on a CPU stalls once, for a preempted waiter where nobody holds the lock then, for its holder otherwise.

use unspin_lab::{
    ids::{Lock, Task},
    trace_event::TraceEvent,
};

/// Spins after which a wait has stalled (VEE'13 section 3).
pub const STALL_SPINS: u64 = 2_048;

/// What the waits of a task came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Locks that it got.
    pub acquisitions: u64,
    /// Waits of it that stalled.
    pub stalls: u64,
    /// Of these, those in which nobody held the lock.
    pub next_waiter_stalls: u64,
}

/// A wait for a lock.
#[derive(Clone, Copy, Debug)]
struct Wait {
    lock: Lock,
    /// Time on a CPU in it, up to `since_ns`.
    spun_ns: u64,
    /// Since when it is on a CPU, if it is.
    since_ns: Option<u64>,
    stalled: bool,
}

/// Counts stalls by task.
#[derive(Debug)]
pub struct Stalls {
    stall_ns: u64,
    waits: Vec<Option<Wait>>,
    counts: Vec<Waits>,
    /// By lock: how many hold it, and who waits.
    locks: Vec<(u32, Vec<Task>)>,
}

impl Stalls {
    /// `spin_ps`: how long a spin takes.
    pub fn new(spin_ps: u64) -> Stalls {
        Stalls {
            stall_ns: STALL_SPINS * spin_ps / 1_000,
            waits: Vec::new(),
            counts: Vec::new(),
            locks: Vec::new(),
        }
    }

    /// What the waits of that task came to.
    pub fn of(&self, task: Task) -> Waits {
        self.counts.get(task.index()).copied().unwrap_or_default()
    }

    /// Takes an event of the lab; `counts`: whether what ends now counts.
    pub fn see(&mut self, now_ns: u64, task: Option<Task>, what: TraceEvent, counts: bool) {
        match (what, task) {
            (TraceEvent::LockAsked { lock }, Some(task)) => {
                self.settle_all(lock, now_ns, counts);
                self.lock(lock).1.push(task);
                *place(&mut self.waits, task.index()) = Some(Wait {
                    lock,
                    spun_ns: 0,
                    since_ns: Some(now_ns),
                    stalled: false,
                });
            }
            (TraceEvent::LockTaken { lock }, Some(task)) => {
                self.settle_all(lock, now_ns, counts);
                let (holders, waiters) = self.lock(lock);
                *holders += 1;
                waiters.retain(|waiter| *waiter != task);
                *place(&mut self.waits, task.index()) = None;
                place(&mut self.counts, task.index()).acquisitions += u64::from(counts);
            }
            (TraceEvent::LockReleased { lock }, _) => {
                self.settle_all(lock, now_ns, counts);
                let holders = &mut self.lock(lock).0;
                *holders = holders.saturating_sub(1);
            }
            (TraceEvent::SwitchOut { task, .. }, _) => {
                self.settle(task, now_ns, counts);
                if let Some(wait) = place(&mut self.waits, task.index()) {
                    wait.since_ns = None;
                }
            }
            (TraceEvent::SwitchIn { task }, _) => {
                if let Some(wait) = place(&mut self.waits, task.index()) {
                    wait.since_ns = Some(now_ns);
                }
            }
            _ => {}
        }
    }

    fn lock(&mut self, lock: Lock) -> &mut (u32, Vec<Task>) {
        place(&mut self.locks, lock.index())
    }

    /// Before whether the lock is held changes: who stalled until now stalled with it as it was.
    fn settle_all(&mut self, lock: Lock, now_ns: u64, counts: bool) {
        for place in 0..self.lock(lock).1.len() {
            let waiter = self.lock(lock).1[place];
            self.settle(waiter, now_ns, counts);
        }
    }

    fn settle(&mut self, task: Task, now_ns: u64, counts: bool) {
        let Some(wait) = place(&mut self.waits, task.index()) else {
            return;
        };
        let Some(since_ns) = wait.since_ns else {
            return;
        };
        wait.spun_ns += now_ns - since_ns;
        wait.since_ns = Some(now_ns);
        if wait.stalled || wait.spun_ns <= self.stall_ns {
            return;
        }
        wait.stalled = true;
        let lock = wait.lock;
        let held = self.lock(lock).0 > 0;
        let of = place(&mut self.counts, task.index());
        of.stalls += u64::from(counts);
        of.next_waiter_stalls += u64::from(counts && !held);
    }
}

/// The item at that place, made if it is not there yet.
fn place<T: Default + Clone>(of: &mut Vec<T>, index: usize) -> &mut T {
    if index >= of.len() {
        of.resize(index + 1, T::default());
    }
    &mut of[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: Lock = Lock(0);
    /// A spin of 1 ns: a wait stalls after 2,048 ns on a CPU.
    const SPIN_PS: u64 = 1_000;

    fn play(events: &[(u64, u32, TraceEvent)]) -> [Waits; 3] {
        let mut stalls = Stalls::new(SPIN_PS);
        for &(now_ns, task, what) in events {
            stalls.see(now_ns, Some(Task(task)), what, true);
        }
        [0, 1, 2].map(|task| stalls.of(Task(task)))
    }

    const ASKED: TraceEvent = TraceEvent::LockAsked { lock: LOCK };
    const TAKEN: TraceEvent = TraceEvent::LockTaken { lock: LOCK };
    const RELEASED: TraceEvent = TraceEvent::LockReleased { lock: LOCK };

    fn out(task: u32) -> TraceEvent {
        TraceEvent::SwitchOut {
            task: Task(task),
            runnable: true,
            preempted: true,
        }
    }

    fn back(task: u32) -> TraceEvent {
        TraceEvent::SwitchIn { task: Task(task) }
    }

    #[test]
    fn a_wait_for_a_holder_and_one_for_a_preempted_waiter() {
        let [first, second, third] = play(&[
            (0, 0, ASKED),
            (1, 0, TAKEN),
            (2, 1, ASKED),
            (3, 2, ASKED),
            (4, 1, out(1)),
            // Nobody holds it from here on; 1 is next and away, 2 has waited 97 ns.
            (100, 0, RELEASED),
            (9_000, 1, back(1)),
            (9_001, 1, TAKEN),
            (9_002, 1, RELEASED),
            (9_003, 2, TAKEN),
        ]);
        assert_eq!((first.acquisitions, first.stalls), (1, 0));
        // It spun for 3 ns only: it was away.
        assert_eq!((second.acquisitions, second.stalls), (1, 0));
        assert_eq!((third.stalls, third.next_waiter_stalls), (1, 1));
    }

    #[test]
    fn a_holder_that_is_away_is_waited_for_as_a_holder_and_counted_once() {
        let [_, second, _] = play(&[
            (0, 0, ASKED),
            (1, 0, TAKEN),
            (2, 0, out(0)),
            (3, 1, ASKED),
            (5_000, 1, out(1)),
            (6_000, 1, back(1)),
            (20_000, 0, back(0)),
            (20_001, 0, RELEASED),
            (20_002, 1, TAKEN),
        ]);
        assert_eq!((second.stalls, second.next_waiter_stalls), (1, 0));
    }

    #[test]
    fn exactly_2_048_spins_are_no_stall() {
        for (until_ns, stalls) in [(2_048, 0), (2_049, 1)] {
            let [first, ..] = play(&[(0, 0, ASKED), (until_ns, 0, TAKEN)]);
            assert_eq!(first.stalls, stalls);
        }
    }

    #[test]
    fn the_warm_up_does_not_count() {
        let mut stalls = Stalls::new(SPIN_PS);
        stalls.see(0, Some(Task(0)), ASKED, false);
        stalls.see(9_000, Some(Task(0)), TAKEN, false);
        assert_eq!(stalls.of(Task(0)), Waits::default());
    }
}
