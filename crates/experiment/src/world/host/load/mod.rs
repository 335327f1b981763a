// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads of the host itself: threads of this process that say how late they woke up, how much they did, and what CPU time they
//! were given.

mod exchanges;
mod spin;
mod tasks;

use std::{
    fmt,
    os::unix::net::UnixStream,
    str::FromStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::Context;

use spin::{Spin, cpu_time_ns};

/// Nice values of the load `weights`.
const NICE: [i32; 3] = [0, 3, 6];
/// Weights of these (sched_prio_to_weight, kernel/sched/core.c, Linux 7.2).
const NICE_WEIGHTS: [f64; 3] = [1024.0, 526.0, 272.0];

/// What runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Periodic tasks, one for two CPUs, beside three CPU hogs for each CPU.
    Wakeups,
    /// The same beside two CPU hogs and six tasks that nap for each CPU.
    Naps,
    /// Pairs of threads that send a byte back and forth, two for each CPU.
    Pipes,
    /// One caller and a called thread for each CPU, all of which answer, beside a CPU hog for each CPU.
    Calls,
    /// CPU hogs of three nice values, one of each for each CPU.
    Weights,
    /// Two CPU hogs that may run on the first CPU only, beside two for each CPU.
    Affinity,
    /// Two workers for each CPU, each of which is woken for a request, works for a millisecond, and waits for the next one.
    Requests,
    /// Groups of ten threads that send to ten others, one for two CPUs.
    Messages,
    /// Two threads for each CPU that start one short process after another.
    Processes,
    /// Short periodic tasks, one for two CPUs, beside 256 threads for each CPU that are woken together.
    Crowd,
}

impl Load {
    /// All, in order.
    pub const ALL: [Load; 10] = [
        Load::Wakeups,
        Load::Naps,
        Load::Pipes,
        Load::Calls,
        Load::Weights,
        Load::Affinity,
        Load::Requests,
        Load::Messages,
        Load::Processes,
        Load::Crowd,
    ];

    /// Its word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Load::Wakeups => "wakeups",
            Load::Naps => "naps",
            Load::Pipes => "pipes",
            Load::Calls => "calls",
            Load::Weights => "weights",
            Load::Affinity => "affinity",
            Load::Requests => "requests",
            Load::Messages => "messages",
            Load::Processes => "processes",
            Load::Crowd => "crowd",
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Load {
    type Err = String;

    fn from_str(word: &str) -> Result<Load, String> {
        let found = Load::ALL.into_iter().find(|load| load.name() == word);
        found.ok_or_else(|| {
            let names = Load::ALL.map(Load::name).join(", ");
            format!("`{word}` is no load; there are {names}")
        })
    }
}

/// What the threads of a load did in a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    /// Periods, round trips, calls that all have answered, pieces of work of CPU hogs, requests, messages or processes.
    pub operations: u64,
    /// How late periodic tasks and workers woke up, or how long a round trip, a call or a process took, ns; empty of CPU hogs and
    /// messages.
    pub latencies_ns: Vec<u64>,
    /// By how much the share of the thread that is furthest from its due is off, percent of what is due.
    pub share_error_percent: Option<f64>,
}

impl Done {
    /// One operation that took so long.
    pub fn one(took: Duration) -> Done {
        Done {
            operations: 1,
            latencies_ns: vec![took.as_nanos() as u64],
            share_error_percent: None,
        }
    }
}

/// What measured threads have done since it was taken last.
#[derive(Debug, Default)]
struct Recorder {
    operations: AtomicU64,
    latencies_ns: Mutex<Vec<u64>>,
}

impl Recorder {
    fn add(&self, latency: Duration) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        let mut latencies = self.latencies_ns.lock().expect("no thread panics with it");
        latencies.push(latency.as_nanos() as u64);
    }
}

/// A thread whose share is measured.
struct Shared {
    clock: libc::clockid_t,
    /// Beside those of the others.
    weight: f64,
    before_ns: u64,
}

/// A load that runs until it is dropped.
pub struct Running {
    over: Arc<AtomicBool>,
    recorder: Arc<Recorder>,
    threads: Vec<JoinHandle<()>>,
    /// Shut down when it is over, so that no thread waits for a byte.
    sockets: Vec<UnixStream>,
    shared: Vec<Shared>,
    spin: Spin,
}

impl Running {
    /// Starts it on so many CPUs; `seed`: of the naps.
    ///
    /// # Errors
    /// When this host has no more threads or sockets.
    pub fn start(load: Load, cpus: usize, seed: u64) -> anyhow::Result<Running> {
        let mut running = Running {
            over: Arc::default(),
            recorder: Arc::default(),
            threads: Vec::new(),
            sockets: Vec::new(),
            shared: Vec::new(),
            spin: Spin::calibrated(cpus),
        };
        match load {
            Load::Wakeups => {
                running.hogs(3 * cpus)?;
                running.periodic(cpus.div_ceil(2), tasks::IO)?;
            }
            Load::Naps => {
                running.hogs(2 * cpus)?;
                running.naps(6 * cpus, seed)?;
                running.periodic(cpus.div_ceil(2), tasks::IO)?;
            }
            Load::Pipes => (0..2 * cpus).try_for_each(|_| running.pair())?,
            Load::Calls => {
                running.hogs(cpus)?;
                running.calls(cpus)?;
            }
            Load::Weights => {
                for (nice, weight) in NICE.into_iter().zip(NICE_WEIGHTS) {
                    (0..cpus).try_for_each(|_| running.measured_hog(nice, weight, None))?;
                }
            }
            Load::Affinity => {
                (0..2).try_for_each(|_| running.measured_hog(0, 1.0, Some(0)))?;
                (0..2 * cpus).try_for_each(|_| running.measured_hog(0, 1.0, None))?;
            }
            Load::Requests => running.requests(cpus, 2 * cpus)?,
            Load::Messages => running.messages(cpus.div_ceil(2))?,
            Load::Processes => running.processes(2 * cpus)?,
            Load::Crowd => {
                running.crowd(tasks::CROWD_OF_A_CPU * cpus)?;
                running.periodic(cpus.div_ceil(2), tasks::TIMER)?;
            }
        }
        Ok(running)
    }

    /// What was done before is forgotten.
    pub fn begin(&mut self) {
        self.recorder.operations.store(0, Ordering::Relaxed);
        self.recorder.latencies_ns.lock().expect("as above").clear();
        for shared in &mut self.shared {
            shared.before_ns = cpu_time_ns(shared.clock);
        }
    }

    /// What was done since [`Running::begin`].
    pub fn end(&mut self) -> Done {
        let spent: Vec<(f64, f64)> = self
            .shared
            .iter()
            .map(|of| ((cpu_time_ns(of.clock) - of.before_ns) as f64, of.weight))
            .collect();
        Done {
            operations: self.recorder.operations.load(Ordering::Relaxed),
            latencies_ns: std::mem::take(&mut self.recorder.latencies_ns.lock().expect("as above")),
            share_error_percent: share_error_percent(&spent),
        }
    }

    fn spawn(&mut self, what: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
        let spawned = thread::Builder::new().stack_size(64 << 10).spawn(what);
        self.threads.push(spawned.context("a thread of the load")?);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for socket in &self.sockets {
            // One whose threads are gone is shut down already.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            // What a thread panicked with has been said.
            let _ = thread.join();
        }
    }
}

/// Of times with their weights; `None` without any.
fn share_error_percent(spent: &[(f64, f64)]) -> Option<f64> {
    let total: f64 = spent.iter().map(|(time, _)| time).sum();
    let weights: f64 = spent.iter().map(|(_, weight)| weight).sum();
    let errors = spent
        .iter()
        .map(|(time, weight)| (time / total / (weight / weights) - 1.0).abs() * 100.0);
    errors.reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_does_something_and_ends() {
        for load in Load::ALL {
            let mut running = Running::start(load, 2, 1).expect("threads");
            running.begin();
            thread::sleep(Duration::from_millis(100));
            let done = running.end();
            assert!(done.operations > 0, "{load}: {done:?}");
            let hogs = matches!(load, Load::Weights | Load::Affinity);
            let timed = !hogs && load != Load::Messages;
            assert_eq!(!done.latencies_ns.is_empty(), timed, "{load}");
            assert_eq!(done.share_error_percent.is_some(), hogs, "{load}");
        }
    }

    #[test]
    fn words_are_read_as_they_are_written_and_others_name_what_there_is() {
        for load in Load::ALL {
            assert_eq!(load.to_string().parse(), Ok(load));
        }
        let refused = "wakeup".parse::<Load>().expect_err("no such load");
        assert!(refused.contains("wakeups"), "{refused}");
    }

    #[test]
    fn the_share_that_is_furthest_off_is_the_error() {
        assert_eq!(share_error_percent(&[]), None);
        assert_eq!(share_error_percent(&[(2.0, 1.0), (4.0, 2.0)]), Some(0.0));
        let error = share_error_percent(&[(3.0, 1.0), (1.0, 1.0)]).expect("two");
        assert!((error - 50.0).abs() < 1e-9, "{error}");
    }
}
