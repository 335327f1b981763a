// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whom an extra schedule (eCS) keeps waiting: a real-time task, a task and a VM of more weight. Long checks: seconds of the
//! testbed's time each.

use std::{
    fs,
    os::unix::fs::FileExt,
    time::{Duration, Instant},
};
use unspin_testbed::check;

use unspin_scenario::{LockSharing, Vm, Workload};

use crate::steerer::{
    ecs::fairness::{OURS, PAPER, Thread, set},
    host::{counter, still_there},
    hostile::{
        attaching::{Killed, set_class},
        code::Draws,
    },
    observer_vms::loops,
    vms::{fighting, steer},
};

/// How long each is measured at a time, in an order that no drift favours: without, the paper's, ours.
const TIME: Duration = Duration::from_millis(500);
const ORDER: [usize; 8] = [0, 1, 2, 0, 0, 2, 1, 0];
/// A nice of some nine times the usual weight.
const HEAVY: i32 = -10;

/// Its tasks wake each other, so its vCPUs halt and wake up without end.
pub fn waking() -> Vm {
    Vm {
        locks: LockSharing::Private,
        workload: Workload::PingPong,
        user_work: loops(5_000),
        ..fighting(2)
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
    Duration::from_nanos(numbers(schedstat)[1])
}

/// Time that a thread ran, time that it waited for a CPU, and how often it began to run.
fn numbers(schedstat: &fs::File) -> [u64; 3] {
    let mut text = [0; 96];
    let length = schedstat.read_at(&mut text, 0).expect("it runs");
    let text = std::str::from_utf8(&text[..length]).expect("numbers");
    let mut words = text.split_whitespace().map(str::parse);
    [(); 3].map(|()| words.next().expect("three numbers").expect("a number"))
}

fn real_time() {
    set_class(0, libc::SCHED_FIFO, 1);
}

fn heavy() {
    set_nice(0, HEAVY);
}

/// 0 is the calling thread.
fn set_nice(thread: u32, nice: i32) {
    // SAFETY: takes numbers only.
    let status = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, nice) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

check!(STEERER_LONG: extra_time_delays_others_by_1_ms_at_most);
/// Beside vCPUs that always get their extra schedule, with eCS and without, alternately.
pub fn extra_time_delays_others_by_1_ms_at_most() {
    let policies = ["refuse-yields", PAPER, OURS];
    let steerer = steer("refuse-yields", |_| ());
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

check!(STEERER_LONG: a_heavier_vm_wakes_up_1_ms_later_at_most);
/// The same, for a VM of more weight whose vCPUs halt and wake up: by how much eCS raises what one waits for a CPU.
pub fn a_heavier_vm_wakes_up_1_ms_later_at_most() {
    let policies = ["refuse-yields", PAPER, OURS];
    let steerer = steer("refuse-yields", |_| ());
    let (_critical, heavy) = (Killed::vm("critical", 7), Killed::vm("waking", 7));
    std::thread::sleep(Duration::from_millis(500));
    let vcpus = Thread::vcpus(heavy.id());
    for (_, id, _) in &vcpus {
        set_nice(*id, HEAVY);
    }
    let files: Vec<fs::File> = vcpus.iter().map(|vcpu| vcpu.2.schedstat()).collect();
    let (mut waited, mut woken, mut granted) = ([0; 3], [0; 3], [0; 3]);
    for _ in 0..2 {
        for at in ORDER {
            set(&steerer, policies[at]);
            let extra = counter(&steerer, "granted");
            let before: Vec<_> = files.iter().map(numbers).collect();
            std::thread::sleep(TIME);
            for (file, before) in files.iter().zip(before) {
                let now = numbers(file);
                waited[at] += now[1] - before[1];
                woken[at] += now[2] - before[2];
            }
            granted[at] += counter(&steerer, "granted") - extra;
        }
    }
    still_there(&steerer);
    let mean_ms = [0, 1, 2].map(|at: usize| waited[at] as f64 / 1e6 / woken[at] as f64);
    for at in 0..3 {
        println!(
            "  a vCPU of nice -10, {}: waited {:.3} ms in the mean of {}; {} extra schedules",
            policies[at], mean_ms[at], woken[at], granted[at]
        );
    }
    for at in 1..3 {
        assert!(woken[at] > 100 && granted[at] > 50, "{}", policies[at]);
        let more_ms = mean_ms[at] - mean_ms[0];
        assert!(more_ms < 1.0, "{}: {more_ms} ms more", policies[at]);
    }
}
