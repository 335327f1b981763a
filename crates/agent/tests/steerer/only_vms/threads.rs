// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which threads are moved, when, and what they have afterwards.

use std::{
    fs, io,
    process::Command,
    time::{Duration, Instant},
};
use unspin_testbed::check;

use kvm_ioctls::Kvm;
use unspin_abi::UNSPIN_PRCTL_REGISTER_THREAD;
use unspin_agent::{MovedVm, Steerer, ThreadPages};

use crate::steerer::{
    host::{Busy, still_there, wait_for},
    hostile::attaching::{Killed, set_class},
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

/// A thread's nice value.
fn nice_of(thread: i32) -> i32 {
    // SAFETY: takes and returns numbers only.
    unsafe { libc::getpriority(libc::PRIO_PROCESS, thread as libc::id_t) }
}

fn set_nice(thread: i32, nice: i32) {
    // SAFETY: takes and returns numbers only.
    let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, nice) };
    assert_eq!(done, 0, "{}", io::Error::last_os_error());
}

check!(STEERER_LONG: each_thread_gets_back_what_it_had);
/// Policy, nice value and SCHED_RESET_ON_FORK; a real-time thread is left alone; one that somebody else has given another policy
/// meanwhile keeps that.
fn each_thread_gets_back_what_it_had() {
    let vm = Killed::vm("peaceful", 7);
    let steerer = steer_only_vms("refuse-yields");
    let vcpus = wait_for_threads(vm.id(), 4);
    drop(steerer);
    let reset = libc::SCHED_RESET_ON_FORK;
    set_class(vcpus[0], libc::SCHED_BATCH | reset, 0);
    set_class(vcpus[1], libc::SCHED_IDLE, 0);
    set_class(vcpus[2], libc::SCHED_FIFO, 1);
    for (vcpu, nice) in [(0, -5), (1, 5), (3, 10)] {
        set_nice(vcpus[vcpu], nice);
    }
    let state = || {
        vcpus
            .iter()
            .map(|vcpu| (policy_of(*vcpu), nice_of(*vcpu)))
            .collect::<Vec<_>>()
    };
    let before = state();
    let steerer = steer_only_vms("refuse-yields");
    wait_for_threads(vm.id(), 3);
    let while_steered = state();
    assert_eq!(while_steered[0], (SCHED_EXT | reset, -5));
    // Nothing is nearer to SCHED_IDLE.
    assert_eq!(while_steered[1], (SCHED_EXT, 19));
    assert_eq!(while_steered[2], before[2]);
    assert_eq!(while_steered[3], (SCHED_EXT, 10));
    let of = moved(&steerer, vm.id());
    assert_eq!((of.vcpus, of.real_time), (3, 1), "{of:?}");
    set_class(vcpus[3], libc::SCHED_BATCH, 0);
    still_there(&steerer);
    drop(steerer);
    let after = state();
    assert_eq!(after[..3], before[..3]);
    assert_eq!(after[3], (libc::SCHED_BATCH, 10));
}

check!(STEERER: threads_with_a_page_and_their_children);
/// A thread that takes a page is moved if its process has a VM; one that it creates is not left with its policy.
fn threads_with_a_page_and_their_children() {
    let steerer = steer_only_vms("refuse-yields");
    let _pages = ThreadPages::of_running().expect("it runs");
    // SAFETY: takes and gives numbers only.
    let own = || unsafe { libc::gettid() };
    let take = |page: libc::c_ulong| {
        // The kernel does not know of it, and says so.
        // SAFETY: takes numbers only.
        unsafe { libc::prctl(UNSPIN_PRCTL_REGISTER_THREAD as i32, page, 0, 0, 0) };
    };
    let becomes = |thread: i32, policy: i32| {
        let began = Instant::now();
        while policy_of(thread) != policy && began.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(policy_of(thread), policy);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            take(0);
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(
                policy_of(own()),
                libc::SCHED_OTHER,
                "no VM is in this process"
            );
        });
    });
    let vm = Kvm::new().expect("KVM").create_vm().expect("a VM");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            take(1);
            becomes(own(), SCHED_EXT);
            scope.spawn(|| becomes(own(), libc::SCHED_OTHER));
        });
    });
    let of = moved(&steerer, std::process::id());
    assert_eq!((of.vcpus, of.others, of.children), (0, 1, 1), "{of:?}");
    drop(vm);
    still_there(&steerer);
}

check!(STEERER_LONG: what_a_killed_one_has_left_is_set_back);
/// Nothing gives threads their policy back after `kill -9`: the fair class runs them all the same, and the next one sets them back
/// when it begins.
fn what_a_killed_one_has_left_is_set_back() {
    let vm = Killed::vm("peaceful", 7);
    let own = std::env::current_exe().expect("procfs is mounted");
    let mut killed = Command::new(own)
        .args(["steer", "only-vms"])
        .spawn()
        .expect("this very binary");
    wait_for("enabled", Duration::from_secs(20));
    let vcpus = wait_for_threads(vm.id(), 4);
    killed.kill().expect("it is ours");
    killed.wait().expect("it was killed");
    wait_for("disabled", Duration::from_secs(1));
    assert_eq!(ext_threads(vm.id()), vcpus);
    let ran = || -> u64 {
        let stat = fs::read_to_string(format!("/proc/{}/schedstat", vcpus[0])).expect("it runs");
        stat.split(' ')
            .next()
            .and_then(|word| word.parse().ok())
            .expect("ns")
    };
    let before = ran();
    std::thread::sleep(Duration::from_millis(300));
    assert!(ran() - before > 50_000_000, "{} ns", ran() - before);
    let steerer = steer_only_vms("refuse-yields");
    assert_eq!(steerer.left_behind(), 4);
    wait_for_threads(vm.id(), 4);
    assert_eq!(moved(&steerer, vm.id()).vcpus, 4);
    drop(steerer);
    assert_eq!(ext_threads(vm.id()), Vec::<i32>::new());
}

check!(STEERER_LONG: sent_away_by_the_kernel_it_gives_threads_back);
/// SysRq-S sends every BPF scheduler away; threads get their policy back when the loader goes.
fn sent_away_by_the_kernel_it_gives_threads_back() {
    let vm = Killed::vm("fighting", 7);
    let steerer = steer_only_vms("loan");
    wait_for_threads(vm.id(), 4);
    fs::write("/proc/sysrq-trigger", "S").expect("SysRq is there");
    wait_for("disabled", Duration::from_secs(1));
    assert!(steerer.ended().expect("the kernel tells").is_some());
    drop(steerer);
    assert_eq!(ext_threads(vm.id()), Vec::<i32>::new());
}
