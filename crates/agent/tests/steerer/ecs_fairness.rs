// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an extra schedule costs others: a VM that does not annotate (eCS, Figure 7; ruling 25), a real-time task, a task of more
//! weight. Long checks: seconds of the testbed's time each.

use std::{
    fs,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};

use unspin_abi::LockKind;
use unspin_agent::Steerer;
use unspin_scenario::{LockSharing, Vm, Workload};

use super::{
    checks::{counter, still_there},
    host::pin,
    hostile::{Killed, set_class},
    hostile_code::Draws,
    observer_vms::loops,
    vms::{fighting, steer},
};

const PAPER: &str = "ecs";
const OURS: &str = "ecs-give-back";

/// eCS, section 5.3: tasks that read a file and never sleep, with their sections counted or not.
pub fn reading(hints: bool) -> Vm {
    Vm {
        lock: LockKind::from_name("rwsem").expect("there is one"),
        workload: Workload::ReadAFile,
        hold: loops(5_000),
        reader_percent: 100,
        hints,
        ..fighting(2)
    }
}

/// In critical sections all the time: whatever the moment, it gets its extra schedule.
pub fn always_critical() -> Vm {
    Vm {
        locks: LockSharing::Private,
        user_work: loops(1),
        kernel_work: loops(1),
        hold: loops(50_000),
        ..fighting(4)
    }
}

/// A vCPU's thread.
struct Thread(String);

impl Thread {
    /// All vCPUs of a process with one VM, by number; each alone on the CPU of its number.
    fn pinned(process: u32) -> Vec<Thread> {
        let folder = format!("/proc/{process}/task");
        let tasks = fs::read_dir(folder).expect("it runs");
        let mut vcpus = Vec::new();
        for task in tasks {
            let path = task.expect("a thread").path();
            let name = fs::read_to_string(path.join("comm")).expect("it runs");
            let Some(number) = name.trim().strip_prefix("vm0/vcpu") else {
                continue;
            };
            let id = path.file_name().and_then(|id| id.to_str()?.parse().ok());
            pin(id.expect("a number"), &[number.parse().expect("a number")]);
            vcpus.push(Thread(path.display().to_string()));
        }
        assert_eq!(vcpus.len(), 2, "vCPUs of {process}");
        vcpus
    }

    fn cpu_time(&self) -> Duration {
        let text = fs::read_to_string(format!("{}/schedstat", self.0)).expect("it runs");
        let ns = text.split(' ').next().and_then(|word| word.parse().ok());
        Duration::from_nanos(ns.expect("a number"))
    }

    fn preemptions(&self) -> u64 {
        let text = fs::read_to_string(format!("{}/status", self.0)).expect("it runs");
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
        line.and_then(|count| count.trim().parse().ok())
            .expect("a number")
    }
}

fn cpu_time(vcpus: &[Thread]) -> Duration {
    vcpus.iter().map(Thread::cpu_time).sum()
}

fn preemptions(vcpus: &[Thread]) -> u64 {
    vcpus.iter().map(Thread::preemptions).sum()
}

fn set(steerer: &Steerer, policies: &str) {
    let policies = policies.parse().expect("policies");
    steerer.set_policies(policies).expect("at any time");
}

/// Figure 7 (ruling 25): 10 s, an annotated VM against one that is not, each of two CPUs shared by one vCPU of each.
pub fn annotation_buys_no_share() {
    let steerer = steer("none", |_| ());
    let kinds = ["reading", "reading-silently"];
    let vms = kinds.map(|kind| Killed::vm(kind, 7));
    std::thread::sleep(Duration::from_millis(300));
    let threads = [0, 1].map(|vm: usize| Thread::pinned(vms[vm].id()));
    for policies in ["none", PAPER, OURS] {
        set(&steerer, policies);
        std::thread::sleep(Duration::from_millis(250));
        let granted = counter(&steerer, "granted");
        let switched = [0, 1].map(|vm: usize| preemptions(&threads[vm]));
        let before = [0, 1].map(|vm: usize| cpu_time(&threads[vm]));
        let (mut last, mut widest) = (before, 0.0f64);
        for _ in 0..100 {
            std::thread::sleep(Duration::from_millis(100));
            let now = [0, 1].map(|vm: usize| cpu_time(&threads[vm]));
            let ran = [0, 1].map(|vm: usize| (now[vm] - last[vm]).as_secs_f64() * 1e3);
            widest = widest.max((ran[0] - ran[1]).abs());
            last = now;
        }
        still_there(&steerer);
        let ran = [0, 1].map(|vm: usize| (last[vm] - before[vm]).as_secs_f64());
        let each =
            [0, 1].map(|vm: usize| (preemptions(&threads[vm]) - switched[vm]) as f64 / 100.0);
        let half = (ran[0] + ran[1]) / 2.0;
        println!(
            "  {policies}: {:.3} s annotated, {:.3} s not, of {half:.3} s; apart by {widest:.1} ms of 200 in 100 ms at most; {:.2} and {:.2} preemptions in 100 ms; {} extra schedules",
            ran[0],
            ran[1],
            each[0],
            each[1],
            counter(&steerer, "granted") - granted
        );
        let extended = counter(&steerer, "granted") > granted;
        assert_eq!(extended, policies != "none", "{policies}");
        for ran in ran {
            assert!(
                (ran / half - 1.0).abs() < 0.01,
                "{policies}: {ran} of {half}"
            );
        }
    }
}

/// For how long a thread waited for a CPU each time that it woke up.
struct Waits(Vec<Duration>);

impl Waits {
    /// Of a thread that sleeps 1 to 2 ms again and again, so that it wakes up at any point of others' slices. The time is the
    /// kernel's own (schedstat): a timer that fires late, as the emulator's do by half a millisecond, is no wait.
    fn add(&mut self, time: Duration, draws: &mut Draws, prepare: fn()) {
        let waits = &mut self.0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                prepare();
                let schedstat = fs::File::open("/proc/thread-self/schedstat").expect("procfs");
                let (began, mut before) = (Instant::now(), waited(&schedstat));
                while began.elapsed() < time {
                    std::thread::sleep(Duration::from_micros(1_000 + draws.up_to(1_000)));
                    let now = waited(&schedstat);
                    waits.push(now - before);
                    before = now;
                }
            });
        });
        waits.sort_unstable();
    }

    fn mean(&self) -> Duration {
        self.0.iter().sum::<Duration>() / self.0.len() as u32
    }

    /// What 99 of 100 do not exceed.
    fn p99(&self) -> Duration {
        self.0[self.0.len() * 99 / 100]
    }

    fn most(&self) -> Duration {
        self.0[self.0.len() - 1]
    }
}

impl std::fmt::Display for Waits {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.0.len();
        let (mean, p99, most) = (self.mean(), self.p99(), self.most());
        write!(
            to,
            "{mean:?} mean, {p99:?} p99, {most:?} at most of {count}"
        )
    }
}

/// The second number of a schedstat: for how long its thread could run and did not.
fn waited(schedstat: &fs::File) -> Duration {
    let mut text = [0; 96];
    let length = schedstat.read_at(&mut text, 0).expect("it is ours");
    let text = std::str::from_utf8(&text[..length]).expect("numbers");
    let ns = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(ns.expect("a number"))
}

fn real_time() {
    set_class(0, libc::SCHED_FIFO, 1);
}

/// The weight of some nine tasks.
fn heavy() {
    // SAFETY: takes numbers only; 0 is the calling thread.
    let status = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

/// Beside vCPUs that always get their extra schedule, with eCS and without, alternately.
pub fn extra_time_delays_others_by_1_ms_at_most() {
    const TIME: Duration = Duration::from_millis(500);
    const ORDER: [usize; 8] = [0, 1, 2, 0, 0, 2, 1, 0];
    let policies = ["none", PAPER, OURS];
    let steerer = steer("none", |_| ());
    let _vm = Killed::vm("critical", 7);
    std::thread::sleep(Duration::from_millis(300));
    let mut draws = Draws(1);
    for (who, prepare, may_ms) in [
        ("a real-time task", real_time as fn(), 0.1),
        ("a task of nice -10", heavy as fn(), 1.1),
    ] {
        let (mut waits, mut granted) = ([const { Waits(Vec::new()) }; 3], [0; 3]);
        for _ in 0..2 {
            for at in ORDER {
                set(&steerer, policies[at]);
                let before = counter(&steerer, "granted");
                waits[at].add(TIME, &mut draws, prepare);
                granted[at] += counter(&steerer, "granted") - before;
            }
        }
        still_there(&steerer);
        for ((policies, waits), granted) in policies.iter().zip(&waits).zip(granted) {
            println!("  {who}, {policies}: waited {waits}; {granted} extra schedules");
        }
        let [none, others @ ..] = &waits;
        for (at, others) in others.iter().enumerate() {
            assert!(granted[1 + at] > 50, "{who}: {granted:?}");
            let more =
                |of: fn(&Waits) -> Duration| of(others).as_secs_f64() - of(none).as_secs_f64();
            for (what, more) in [
                ("mean", more(Waits::mean)),
                ("p99", more(Waits::p99)),
                ("most", more(Waits::most)),
            ] {
                let more_ms = more * 1e3;
                assert!(
                    more_ms < may_ms,
                    "{who}, {}: {what} {more_ms} ms more",
                    policies[1 + at]
                );
            }
        }
    }
}
