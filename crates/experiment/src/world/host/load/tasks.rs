// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that compute, and such as sleep in between: nobody waits for another one.

use std::{
    os::unix::thread::JoinHandleExt,
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{
    Running, Shared,
    spin::{exact_timers, place_this_thread},
};

/// A periodic task: its period, and what it does in each.
#[derive(Clone, Copy)]
pub(super) struct Periodic {
    period: Duration,
    work: Duration,
}

pub(super) const PERIODIC_WORK: Duration = Duration::from_micros(100);
/// As a VM's I/O thread that serves 500 requests a second.
pub(super) const IO: Periodic = Periodic {
    period: Duration::from_millis(2),
    work: PERIODIC_WORK,
};
/// As a thread that only sees to timers.
pub(super) const TIMER: Periodic = Periodic {
    period: Duration::from_millis(1),
    work: Duration::from_micros(20),
};
/// Threads that are woken together, each for less than a slice. With 512 on two CPUs a sleeper of stress-ng waited for 0.6 s.
pub(super) const CROWD_OF_A_CPU: usize = 256;
const CROWD: Periodic = Periodic {
    period: Duration::from_millis(600),
    work: Duration::from_millis(1),
};
/// What a task that naps does between two naps, and the mean of these.
const NAP_WORK: Duration = Duration::from_micros(200);
const NAP: Duration = Duration::from_millis(1);

impl Running {
    /// Threads that use all the CPU time they get.
    pub(super) fn hogs(&mut self, count: usize) -> anyhow::Result<()> {
        for _ in 0..count {
            let (over, spin) = (Arc::clone(&self.over), self.spin);
            self.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    spin.work(PERIODIC_WORK);
                }
            })?;
        }
        Ok(())
    }

    /// One whose CPU time and work are measured, with that nice value, on that CPU only.
    pub(super) fn measured_hog(
        &mut self,
        nice: i32,
        weight: f64,
        cpu: Option<usize>,
    ) -> anyhow::Result<()> {
        let (over, spin) = (Arc::clone(&self.over), self.spin);
        let recorder = Arc::clone(&self.recorder);
        self.spawn(move || {
            place_this_thread(nice, cpu);
            while !over.load(Ordering::Relaxed) {
                spin.work(PERIODIC_WORK);
                recorder.operations.fetch_add(1, Ordering::Relaxed);
            }
        })?;
        let thread = self.threads.last().expect("it was spawned just now");
        let mut clock = 0;
        // SAFETY: the thread is not joined yet, so its id is valid, and `clock` outlives the call.
        let failed = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) };
        anyhow::ensure!(failed == 0, "a thread has no clock: error {failed}");
        self.shared.push(Shared {
            clock,
            weight,
            before_ns: 0,
        });
        Ok(())
    }

    /// Tasks that work a little in each period, and say how late they woke up for it.
    pub(super) fn periodic(&mut self, count: usize, task: Periodic) -> anyhow::Result<()> {
        for _ in 0..count {
            let (over, spin) = (Arc::clone(&self.over), self.spin);
            let recorder = Arc::clone(&self.recorder);
            self.spawn(move || {
                exact_timers();
                let mut due = Instant::now() + task.period;
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    recorder.add(due.elapsed());
                    spin.work(task.work);
                    due = task.next_due(due, Instant::now());
                }
            })?;
        }
        Ok(())
    }

    /// Threads whose timers expire at once; the first time a period from now.
    pub(super) fn crowd(&mut self, count: usize) -> anyhow::Result<()> {
        let first = Instant::now() + CROWD.period;
        for _ in 0..count {
            let (over, spin) = (Arc::clone(&self.over), self.spin);
            self.spawn(move || {
                exact_timers();
                let mut due = first;
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    spin.work(CROWD.work);
                    due = CROWD.next_due(due, Instant::now());
                }
            })?;
        }
        Ok(())
    }

    /// Tasks that work and sleep for 0.5 to 1.5 times [`NAP`].
    pub(super) fn naps(&mut self, count: usize, seed: u64) -> anyhow::Result<()> {
        for number in 0..count {
            let (over, spin) = (Arc::clone(&self.over), self.spin);
            let mut random = seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.spawn(move || {
                exact_timers();
                while !over.load(Ordering::Relaxed) {
                    spin.work(NAP_WORK);
                    // Xorshift (Marsaglia 2003): what is drawn need not be good.
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    thread::sleep(NAP / 2 + NAP * (random % 1024) as u32 / 1024);
                }
            })?;
        }
        Ok(())
    }
}

impl Periodic {
    /// When the task that was due then is due next: periods that have gone by meanwhile are left out.
    fn next_due(self, due: Instant, now: Instant) -> Instant {
        let gone = now.saturating_duration_since(due).as_nanos() / self.period.as_nanos();
        due + self.period * (gone as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_that_have_gone_by_are_left_out() {
        let due = Instant::now();
        let after = |micros| IO.next_due(due, due + Duration::from_micros(micros)) - due;
        assert_eq!([0, 100, 1_999].map(after), [IO.period; 3]);
        assert_eq!([2_000, 3_999].map(after), [IO.period * 2; 2]);
        assert_eq!(after(5_100), IO.period * 3);
    }
}
