// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread of the host that sleeps for 1 ms at a time: how late it gets its CPU is how late others that sleep get theirs.

use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long it sleeps.
const PERIOD: Duration = Duration::from_millis(1);

/// The thread, until this is dropped. It has the policy of whoever starts it.
pub(crate) struct Sleeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    over: AtomicBool,
    seen: Mutex<Seen>,
}

struct Seen {
    /// When it is to wake up next.
    due: Instant,
    late_ns: Vec<u64>,
}

impl Seen {
    /// What was seen since the last call. A sleep that is overdue while nothing else was seen counts as it is by now: one that never
    /// wakes up is seen, too.
    fn take(&mut self, now: Instant) -> Vec<u64> {
        let mut late_ns = std::mem::take(&mut self.late_ns);
        let overdue = now.saturating_duration_since(self.due);
        if late_ns.is_empty() && !overdue.is_zero() {
            late_ns.push(nanoseconds(overdue));
        }
        late_ns
    }
}

impl Sleeper {
    /// Starts it.
    ///
    /// # Errors
    /// When no thread can be made.
    pub(crate) fn start() -> io::Result<Sleeper> {
        let shared = Arc::new(Shared {
            over: AtomicBool::new(false),
            seen: Mutex::new(Seen {
                due: Instant::now() + PERIOD,
                late_ns: Vec::new(),
            }),
        });
        let own = Arc::clone(&shared);
        let named = thread::Builder::new().name("unspin-sleeper".to_owned());
        let thread = named.spawn(move || own.sleep())?;
        Ok(Sleeper {
            shared,
            thread: Some(thread),
        })
    }

    /// How late it woke up each time since the last call, ns.
    pub(crate) fn take(&self) -> Vec<u64> {
        self.shared.locked().take(Instant::now())
    }
}

impl Shared {
    fn locked(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sleep(&self) {
        // SAFETY: takes numbers only. Where it fails the thread is late by up to 50 us more, in all phases alike.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
        while !self.over.load(Ordering::Relaxed) {
            let due = Instant::now() + PERIOD;
            self.locked().due = due;
            thread::sleep(PERIOD);
            let late_ns = nanoseconds(due.elapsed());
            self.locked().late_ns.push(late_ns);
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic.
            let _ = thread.join();
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_sleeps_is_heard_of_and_one_that_does_not_wake_up_too() {
        let sleeper = Sleeper::start().expect("a thread");
        thread::sleep(Duration::from_millis(50));
        assert!(!sleeper.take().is_empty());

        let now = Instant::now();
        let mut seen = Seen {
            due: now,
            late_ns: vec![3],
        };
        assert_eq!(seen.take(now + Duration::from_secs(1)), [3]);
        assert_eq!(seen.take(now + Duration::from_secs(2)), [2_000_000_000]);
        assert_eq!(seen.take(now), [] as [u64; 0]);
    }
}
