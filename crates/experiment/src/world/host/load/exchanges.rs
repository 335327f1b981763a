// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that wait for others, or for processes.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use anyhow::Context;

use super::{Running, tasks::PERIODIC_WORK};

/// What whoever is called does before it answers.
const ANSWER_WORK: Duration = Duration::from_micros(20);
/// What a worker does for a request: less than a slice. Ours.
const REQUEST_WORK: Duration = Duration::from_millis(1);
/// CPUs whose workers get their requests from one thread. Ours.
const CPUS_OF_A_GIVER: usize = 4;
/// Threads that send, and as many that receive, in a group of the load `messages`, and the bytes of a message: hackbench has
/// 20 and 100 (rt-tests, hackbench.c); fewer threads, so that groups are as many as half the CPUs.
const GROUP: usize = 10;
const MESSAGE_BYTES: usize = 100;

impl Running {
    /// Two threads that send a byte back and forth.
    pub(super) fn pair(&mut self) -> anyhow::Result<()> {
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
    pub(super) fn calls(&mut self, called: usize) -> anyhow::Result<()> {
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

    /// Threads that each give requests to workers of theirs, `workers` in all: one that has none says so and sleeps, and is woken with
    /// the next one (as schbench, Chris Mason).
    pub(super) fn requests(&mut self, cpus: usize, workers: usize) -> anyhow::Result<()> {
        let givers = cpus.div_ceil(CPUS_OF_A_GIVER);
        for giver in 0..givers {
            let (idle, idle_workers) = mpsc::channel();
            let mut requests = Vec::new();
            for _ in (giver..workers).step_by(givers) {
                let (request, my_requests) = mpsc::channel();
                self.worker(requests.len(), idle.clone(), my_requests)?;
                requests.push(request);
            }
            self.giver(idle_workers, requests)?;
        }
        Ok(())
    }

    /// Whoever is idle gets a request: when it was made.
    fn giver(
        &mut self,
        idle_workers: Receiver<usize>,
        requests: Vec<Sender<Instant>>,
    ) -> anyhow::Result<()> {
        let over = Arc::clone(&self.over);
        self.spawn(move || {
            while let Ok(first) = idle_workers.recv() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                for worker in std::iter::once(first).chain(idle_workers.try_iter()) {
                    // It is there, as it has said that it is idle.
                    let _ = requests[worker].send(Instant::now());
                }
            }
        })
    }

    /// Its latency is from a request to the moment when it runs. It ends when its giver does.
    fn worker(
        &mut self,
        number: usize,
        idle: Sender<usize>,
        requests: Receiver<Instant>,
    ) -> anyhow::Result<()> {
        let (recorder, spin) = (Arc::clone(&self.recorder), self.spin);
        self.spawn(move || {
            while idle.send(number).is_ok() {
                let Ok(made) = requests.recv() else { return };
                recorder.add(made.elapsed());
                spin.work(REQUEST_WORK);
            }
        })
    }

    /// Groups of threads that send a message to each of as many others (as hackbench).
    pub(super) fn messages(&mut self, groups: usize) -> anyhow::Result<()> {
        for _ in 0..groups {
            let mut ends = Vec::new();
            for _ in 0..GROUP {
                let (here, mut there) = self.socket_pair()?;
                ends.push(here);
                let recorder = Arc::clone(&self.recorder);
                self.spawn(move || {
                    let mut message = [0; MESSAGE_BYTES];
                    while there.read_exact(&mut message).is_ok() {
                        recorder.operations.fetch_add(1, Ordering::Relaxed);
                    }
                })?;
            }
            let ends = Arc::new(ends);
            for _ in 0..GROUP {
                let ends = Arc::clone(&ends);
                self.spawn(move || {
                    let sends = |mut end: &UnixStream| end.write_all(&[0; MESSAGE_BYTES]).is_ok();
                    while ends.iter().all(sends) {}
                })?;
            }
        }
        Ok(())
    }

    /// Threads that start one process after another, each of which ends soon: a build with so many jobs.
    pub(super) fn processes(&mut self, jobs: usize) -> anyhow::Result<()> {
        for _ in 0..jobs {
            let (over, recorder) = (Arc::clone(&self.over), Arc::clone(&self.recorder));
            self.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let begin = Instant::now();
                    let mut process = Command::new("/proc/self/exe");
                    process.arg("--version").stdin(Stdio::null());
                    process.stdout(Stdio::null()).stderr(Stdio::null());
                    if process.status().is_err() {
                        return;
                    }
                    recorder.add(begin.elapsed());
                }
            })?;
        }
        Ok(())
    }
}
