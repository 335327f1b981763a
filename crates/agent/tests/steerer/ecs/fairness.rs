// SPDX-License-Identifier: MIT OR Apache-2.0
//! What extra schedules cost a VM that does not annotate (eCS, Figure 7; ruling 25). A long check: 10 s of the testbed's time for
//! each policy.

use std::{fs, time::Duration};
use unspin_testbed::check;

use unspin_abi::LockKind;
use unspin_agent::Steerer;
use unspin_scenario::{LockSharing, Vm, Workload};

use crate::steerer::{
    host::{counter, pin, still_there},
    hostile::attaching::Killed,
    observer_vms::loops,
    vms::{fighting, steer},
};

pub const PAPER: &str = "ecs";
pub const OURS: &str = "ecs-give-back";
/// eCS, section 5.3: tasks that read a file and never sleep, with their sections counted or not.
pub fn reading(pv_page: bool) -> Vm {
    Vm {
        lock: LockKind::from_name("rwsem").expect("there is one"),
        workload: Workload::ReadAFile,
        hold: loops(5_000),
        reader_percent: 100,
        pv_page,
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
pub struct Thread(String);

impl Thread {
    /// All vCPUs of a process with one VM: number, thread and its folder.
    pub fn vcpus(process: u32) -> Vec<(usize, u32, Thread)> {
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
            let number = number.parse().expect("a number");
            let thread = Thread(path.display().to_string());
            vcpus.push((number, id.expect("a number"), thread));
        }
        assert_eq!(vcpus.len(), 2, "vCPUs of {process}");
        vcpus
    }

    /// Those, each alone on the CPU of its number.
    fn pinned(process: u32) -> Vec<Thread> {
        let alone = |(number, id, thread): (usize, u32, Thread)| {
            pin(id, &[number]);
            thread
        };
        Thread::vcpus(process).into_iter().map(alone).collect()
    }

    pub fn schedstat(&self) -> fs::File {
        fs::File::open(format!("{}/schedstat", self.0)).expect("it runs")
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

pub fn set(steerer: &Steerer, policies: &str) {
    let policies = policies.parse().expect("policies");
    steerer.set_policies(policies).expect("at any time");
}

check!(STEERER_LONG: annotation_buys_no_share);
/// Figure 7 (ruling 25): 10 s, an annotated VM against one that is not, each of two CPUs shared by one vCPU of each.
pub fn annotation_buys_no_share() {
    let steerer = steer("refuse-yields", |_| ());
    let kinds = ["reading", "reading-silently"];
    let vms = kinds.map(|kind| Killed::vm(kind, 7));
    std::thread::sleep(Duration::from_millis(300));
    let threads = [0, 1].map(|vm: usize| Thread::pinned(vms[vm].id()));
    for policies in ["refuse-yields", PAPER, OURS] {
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
        assert_eq!(extended, policies != "refuse-yields", "{policies}");
        for ran in ran {
            assert!(
                (ran / half - 1.0).abs() < 0.01,
                "{policies}: {ran} of {half}"
            );
        }
    }
}
