// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which threads are moved, when, and what they have afterwards.

use std::{
    fs, io,
    time::{Duration, Instant},
};
use unspin_testbed::check;

use unspin_agent::{MovedVm, Steerer};

use crate::steerer::{
    host::{Busy, still_there},
    hostile::attaching::Killed,
    vms::steer,
};

/// `SCHED_EXT`, include/uapi/linux/sched.h.
pub const SCHED_EXT: i32 = 7;

/// The policies of a process's threads, in order of their numbers.
pub fn policies_of(process: u32) -> Vec<(i32, i32)> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let mut threads: Vec<i32> = tasks
        .map(|task| {
            let name = task.expect("a folder").file_name();
            name.to_string_lossy().parse().expect("a number")
        })
        .collect();
    threads.sort_unstable();
    threads
        .into_iter()
        .map(|thread| (thread, policy_of(thread)))
        .collect()
}

pub fn policy_of(thread: i32) -> i32 {
    // SAFETY: takes and returns numbers only.
    let policy = unsafe { libc::sched_getscheduler(thread) };
    assert!(policy >= 0, "{}", io::Error::last_os_error());
    policy
}

/// Threads of that process that are ours.
pub fn ext_threads(process: u32) -> Vec<i32> {
    let all = policies_of(process).into_iter();
    all.filter(|(_, policy)| policy & !libc::SCHED_RESET_ON_FORK == SCHED_EXT)
        .map(|(thread, _)| thread)
        .collect()
}

/// Only VMs are ours.
pub fn steer_only_vms(policies: &str) -> Steerer {
    steer(policies, |options| options.only_vms = true)
}

/// Until so many threads of the process are ours.
#[track_caller]
pub fn wait_for_threads(process: u32, threads: usize) -> Vec<i32> {
    let began = Instant::now();
    loop {
        let moved = ext_threads(process);
        if moved.len() == threads {
            return moved;
        }
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            policies_of(process)
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// What was moved of that process.
pub fn moved(steerer: &Steerer, process: u32) -> MovedVm {
    let all = steerer.moved().expect("only VMs are ours");
    let found = all.into_iter().find(|vm| vm.process == process.to_string());
    found.expect("a VM of that process")
}

check!(STEERER: vcpu_threads_come_and_are_given_back);
/// Of a VM that is there, and of one that comes later; nothing else. What they are afterwards is what they were.
fn vcpu_threads_come_and_are_given_back() {
    let busy = Busy::start(0, None);
    let first = Killed::vm("fighting", 7);
    std::thread::sleep(Duration::from_millis(300));
    let steerer = steer_only_vms("loan,kernel-exit");
    wait_for_threads(first.id(), 4);
    let second = Killed::vm("peaceful", 8);
    wait_for_threads(second.id(), 4);
    for vm in [&first, &second] {
        let of = moved(&steerer, vm.id());
        println!("  {of:?}");
        assert_eq!(
            (of.vcpus, of.others, of.real_time, of.refused),
            (4, 0, 0, 0)
        );
        // A slice of the emulator and one of the host's scheduler.
        assert!(of.longest_ns < 20_000_000, "{of:?}");
    }
    assert_eq!(policies_of(busy.id())[0].1, libc::SCHED_OTHER);
    assert_eq!(ext_threads(std::process::id()), Vec::<i32>::new());
    std::thread::sleep(Duration::from_millis(500));
    still_there(&steerer);
    drop(steerer);
    for vm in [&first, &second] {
        assert_eq!(ext_threads(vm.id()), Vec::<i32>::new());
    }
}
