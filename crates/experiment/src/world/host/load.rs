// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads of the host itself: threads of this process that say how late they woke up, how much they did, and what CPU time they
//! were given.

use std::{
    fmt,
    hint::black_box,
    io::{Read, Write},
    os::unix::{net::UnixStream, thread::JoinHandleExt},
    str::FromStr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::Context;

/// A periodic task's period, and what it does in each: as a VM's I/O thread that serves 500 requests a second.
const PERIOD: Duration = Duration::from_millis(2);
const PERIODIC_WORK: Duration = Duration::from_micros(100);
/// What a task that naps does between two naps, and the mean of these.
const NAP_WORK: Duration = Duration::from_micros(200);
const NAP: Duration = Duration::from_millis(1);
/// What whoever is called does before it answers.
const ANSWER_WORK: Duration = Duration::from_micros(20);
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
}

impl Load {
    /// All, in order.
    pub const ALL: [Load; 6] = [
        Load::Wakeups,
        Load::Naps,
        Load::Pipes,
        Load::Calls,
        Load::Weights,
        Load::Affinity,
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
    /// Periods, round trips, calls that all have answered, or pieces of work of CPU hogs.
    pub operations: u64,
    /// How late periodic tasks woke up, or how long a round trip or a call took, ns; empty of CPU hogs.
    pub latencies_ns: Vec<u64>,
    /// By how much the share of the thread that is furthest from its due is off, percent of what is due.
    pub share_error_percent: Option<f64>,
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
                running.periodic(cpus.div_ceil(2))?;
            }
            Load::Naps => {
                running.hogs(2 * cpus)?;
                running.naps(6 * cpus, seed)?;
                running.periodic(cpus.div_ceil(2))?;
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

    /// Threads that use all the CPU time they get.
    fn hogs(&mut self, count: usize) -> anyhow::Result<()> {
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
    fn measured_hog(&mut self, nice: i32, weight: f64, cpu: Option<usize>) -> anyhow::Result<()> {
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
    fn periodic(&mut self, count: usize) -> anyhow::Result<()> {
        for _ in 0..count {
            let (over, spin) = (Arc::clone(&self.over), self.spin);
            let recorder = Arc::clone(&self.recorder);
            self.spawn(move || {
                exact_timers();
                let mut due = Instant::now() + PERIOD;
                while !over.load(Ordering::Relaxed) {
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    recorder.add(due.elapsed());
                    spin.work(PERIODIC_WORK);
                    due = next_due(due, Instant::now());
                }
            })?;
        }
        Ok(())
    }

    /// Tasks that work and sleep for 0.5 to 1.5 times [`NAP`].
    fn naps(&mut self, count: usize, seed: u64) -> anyhow::Result<()> {
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

    /// Two threads that send a byte back and forth.
    fn pair(&mut self) -> anyhow::Result<()> {
        let (mut one, mut other) = self.socket_pair()?;
        let recorder = Arc::clone(&self.recorder);
        self.spawn(move || {
            let mut byte = [0];
            loop {
                let begin = Instant::now();
                if one.write_all(&byte).is_err() || one.read_exact(&mut byte).is_err() {
                    return;
                }
                recorder.add(begin.elapsed());
            }
        })?;
        self.spawn(move || {
            let mut byte = [0];
            while other.read_exact(&mut byte).is_ok() && other.write_all(&byte).is_ok() {}
        })
    }

    /// A thread that calls others, and waits until all have answered.
    fn calls(&mut self, called: usize) -> anyhow::Result<()> {
        let mut callers_ends = Vec::new();
        for _ in 0..called {
            let (here, mut there) = self.socket_pair()?;
            callers_ends.push(here);
            let spin = self.spin;
            self.spawn(move || {
                let mut byte = [0];
                while there.read_exact(&mut byte).is_ok() {
                    spin.work(ANSWER_WORK);
                    if there.write_all(&byte).is_err() {
                        return;
                    }
                }
            })?;
        }
        let (recorder, spin) = (Arc::clone(&self.recorder), self.spin);
        self.spawn(move || {
            let mut byte = [0];
            loop {
                let begin = Instant::now();
                let mut sent = callers_ends.iter();
                if !sent.all(|mut end| end.write_all(&[1]).is_ok()) {
                    return;
                }
                let mut answers = callers_ends.iter();
                if !answers.all(|mut end| end.read_exact(&mut byte).is_ok()) {
                    return;
                }
                recorder.add(begin.elapsed());
                spin.work(PERIODIC_WORK);
            }
        })
    }

    fn socket_pair(&mut self) -> anyhow::Result<(UnixStream, UnixStream)> {
        let (one, other) = UnixStream::pair().context("sockets of the load")?;
        self.sockets
            .push(one.try_clone().context("sockets of the load")?);
        Ok((one, other))
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

/// When a task that was due then is due next: periods that have gone by meanwhile are left out.
fn next_due(due: Instant, now: Instant) -> Instant {
    let gone = now.saturating_duration_since(due).as_nanos() / PERIOD.as_nanos();
    due + PERIOD * (gone as u32 + 1)
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

/// Work of a length, in loops that take no clock.
#[derive(Clone, Copy, Debug)]
struct Spin {
    loops_per_us: u64,
}

impl Spin {
    /// By the fastest of some tries, while all CPUs are as busy as they will be: siblings of a core share it.
    fn calibrated(cpus: usize) -> Spin {
        const LOOPS: u64 = 20_000;
        let time_one = || {
            let begin = Instant::now();
            Spin::run(LOOPS);
            begin.elapsed().as_nanos() as u64
        };
        let over = AtomicBool::new(false);
        let fastest_ns = thread::scope(|scope| {
            for _ in 1..cpus {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        Spin::run(LOOPS);
                    }
                });
            }
            thread::sleep(Duration::from_millis(5));
            let fastest_ns = (0..20).map(|_| time_one()).min();
            over.store(true, Ordering::Relaxed);
            fastest_ns.unwrap_or(1).max(1)
        });
        Spin {
            loops_per_us: (LOOPS * 1000 / fastest_ns).max(1),
        }
    }

    fn run(loops: u64) {
        for number in 0..loops {
            black_box(number);
        }
    }

    fn work(self, time: Duration) {
        Spin::run(self.loops_per_us * time.as_micros() as u64);
    }
}

/// The calling thread's timers expire when they are due, not up to 50 us later.
fn exact_timers() {
    // SAFETY: takes numbers only. Where it fails timers stay as they were.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

fn place_this_thread(nice: i32, cpu: Option<usize>) {
    // SAFETY: takes numbers only; 0 is the calling thread. A nice value above 0 is never refused.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) };
    let Some(cpu) = cpu else { return };
    // SAFETY: a zeroed set is a valid, empty one, which outlives both calls; where the CPU is not ours the shares say so.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

fn cpu_time_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` outlives the call; of a clock whose thread has ended it stays 0.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
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
            let timed = !matches!(load, Load::Weights | Load::Affinity);
            assert_eq!(!done.latencies_ns.is_empty(), timed, "{load}");
            assert_eq!(done.share_error_percent.is_some(), !timed, "{load}");
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

    #[test]
    fn periods_that_have_gone_by_are_left_out() {
        let due = Instant::now();
        let after = |micros| next_due(due, due + Duration::from_micros(micros)) - due;
        assert_eq!([0, 100, 1_999].map(after), [PERIOD; 3]);
        assert_eq!([2_000, 3_999].map(after), [PERIOD * 2; 2]);
        assert_eq!(after(5_100), PERIOD * 3);
    }
}
