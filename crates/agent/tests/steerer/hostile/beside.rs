// SPDX-License-Identifier: MIT OR Apache-2.0
//! A process with a hostile guest, and threads beside it that never sleep.

use std::{
    fs,
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use crate::steerer::{
    hostile::code::{Draws, VCPUS, program},
    raw_vm::{VCPU_THREAD, run},
};

/// The threads beside it.
pub const VICTIMS: u64 = 2;

/// What this binary does when it is started as `hostile KIND`.
pub fn child() {
    let words: Vec<String> = std::env::args().skip(1).take(3).collect();
    if let [word, kind, seed] = &words[..] {
        if word == "hostile" {
            let seed = seed.parse().expect("a number");
            run(&program(kind, &mut Draws(seed)));
        }
    }
}

/// A process with such a guest, killed (SIGKILL) when dropped.
pub struct Hostile(pub Child);

impl Hostile {
    /// Up to a slice from now, so that from each seed others run when it begins.
    pub fn start(kind: &str, draws: &mut Draws) -> Hostile {
        thread::sleep(Duration::from_micros(draws.up_to(10_000)));
        let own = std::env::current_exe().expect("procfs is mounted");
        let mut command = Command::new(own);
        let seed = draws.next().to_string();
        command.args(["hostile", kind, &seed]).stdout(Stdio::null());
        Hostile(command.spawn().expect("this very binary"))
    }

    /// CPU time of its vCPUs: the process's other threads are of the test, and have a fair share of their own.
    fn cpu_ns(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).expect("it runs");
        let folders = tasks.map(|task| task.expect("a thread").path().display().to_string());
        let is_vcpu = |folder: &String| {
            let name = fs::read_to_string(format!("{folder}/comm")).expect("it runs");
            name.trim() == VCPU_THREAD
        };
        let vcpus: Vec<String> = folders.filter(is_vcpu).collect();
        assert_eq!(vcpus.len() as u64, VCPUS);
        vcpus.iter().map(|folder| cpu_ns(folder)).sum()
    }
}

impl Drop for Hostile {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it was killed");
    }
}

/// The first number of a task's schedstat.
fn cpu_ns(folder: &str) -> u64 {
    let text = fs::read_to_string(format!("{folder}/schedstat")).expect("it runs");
    let ns = text.split(' ').next().and_then(|word| word.parse().ok());
    ns.expect("a number")
}

/// What the victims got, and what the guest did, in the same time.
pub struct Measured {
    pub victims_ns: u64,
    pub guest_ns: u64,
    pub longest_wait: Duration,
}

/// Threads that always want to run beside the guest; each notes for how long it did not.
pub fn beside(guest: &Hostile, time: Duration) -> Measured {
    let (longest_ns, end) = (AtomicU64::new(0), AtomicBool::new(false));
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..VICTIMS {
            let send = send.clone();
            scope.spawn(|| {
                // SAFETY: takes nothing, touches no memory.
                let thread = unsafe { libc::gettid() };
                { send }.send(thread).expect("somebody listens");
                let mut before = Instant::now();
                while !end.load(Ordering::Relaxed) {
                    let now = Instant::now();
                    longest_ns.fetch_max((now - before).as_nanos() as u64, Ordering::Relaxed);
                    before = now;
                }
            });
        }
        let threads: Vec<i32> = receive.iter().take(VICTIMS as usize).collect();
        // Those that have just started catch up first.
        thread::sleep(Duration::from_millis(200));
        let victims_ns = || -> u64 {
            let each = threads
                .iter()
                .map(|thread| format!("/proc/self/task/{thread}"));
            each.map(|folder| cpu_ns(&folder)).sum()
        };
        longest_ns.store(0, Ordering::Relaxed);
        let before = (victims_ns(), guest.cpu_ns());
        thread::sleep(time);
        let after = (victims_ns(), guest.cpu_ns());
        end.store(true, Ordering::Relaxed);
        Measured {
            victims_ns: after.0 - before.0,
            guest_ns: after.1 - before.1,
            longest_wait: Duration::from_nanos(longest_ns.load(Ordering::Relaxed)),
        }
    })
}
