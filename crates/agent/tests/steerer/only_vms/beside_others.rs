// SPDX-License-Identifier: MIT OR Apache-2.0
//! VMs beside tasks of the fair class, which go first: what each gets, and that no vCPU waits behind such a task where another CPU
//! has room.

use std::{
    fs,
    time::{Duration, Instant},
};
use unspin_testbed::check;

use super::threads::{steer_only_vms, wait_for_threads};
use crate::steerer::{
    host::{Busy, pin, still_there},
    hostile::attaching::Killed,
    vms::steer,
    wakeups::lateness,
};

/// What the kernel counts of a thread: CPU time, and time for which it waited for a CPU.
fn ran_and_waited(thread: i32) -> (Duration, Duration) {
    let text = fs::read_to_string(format!("/proc/{thread}/schedstat")).expect("it runs");
    let mut numbers = text
        .split_whitespace()
        .map(|word| word.parse().expect("ns"));
    let mut next = || Duration::from_nanos(numbers.next().expect("a number"));
    (next(), next())
}

/// The longest time for which one of them waited for a CPU, and how long all ran, in a while.
fn longest_wait(threads: &[i32], time: Duration) -> (Duration, Duration) {
    let all = || {
        threads
            .iter()
            .map(|thread| ran_and_waited(*thread))
            .collect::<Vec<_>>()
    };
    let (first, began) = (all(), Instant::now());
    let (mut last, mut longest) = (first.clone(), Duration::ZERO);
    while began.elapsed() < time {
        std::thread::sleep(Duration::from_millis(5));
        let now = all();
        let waits = now.iter().zip(&last).map(|(now, last)| now.1 - last.1);
        longest = longest.max(waits.max().unwrap_or_default());
        last = now;
    }
    let ran = last
        .iter()
        .zip(&first)
        .map(|(last, first)| last.0 - first.0);
    (longest, ran.sum())
}

/// How all of both kinds share the host: the vCPUs' part, percent, and the longest wait of one.
fn vcpus_part(vcpus: &[i32], hogs: &[Busy], time: Duration) -> (f64, Duration) {
    let hogs: Vec<i32> = hogs.iter().map(|hog| hog.id() as i32).collect();
    let ran = || {
        hogs.iter()
            .map(|hog| ran_and_waited(*hog).0)
            .sum::<Duration>()
    };
    let before = ran();
    let (longest, vcpus_ran) = longest_wait(vcpus, time);
    let hogs_ran = ran() - before;
    let part = 100.0 * vcpus_ran.as_secs_f64() / (vcpus_ran + hogs_ran).as_secs_f64();
    (part, longest)
}

check!(STEERER_LONG: hogs_of_the_other_class_leave_vms_what_the_kernel_keeps);
/// Hogs of the fair class on every CPU: its deadline server gives VMs 50 ms of each second, and the watchdog, which sends a
/// scheduler away after 5 s, is content. Hogs that are not pinned leave more: the fair class counts our tasks, too, when it spreads
/// its own over CPUs.
fn hogs_of_the_other_class_leave_vms_what_the_kernel_keeps() {
    let steerer = steer_only_vms("loan,kernel-exit");
    let vm = Killed::vm("peaceful", 7);
    let vcpus = wait_for_threads(vm.id(), 4);
    let hogs: Vec<Busy> = (0..4).map(|_| Busy::start(0, None)).collect();
    for (number, hog) in hogs.iter().enumerate() {
        pin(hog.id(), &[number % 2]);
    }
    std::thread::sleep(Duration::from_secs(1));
    let (part, longest) = vcpus_part(&vcpus, &hogs, Duration::from_secs(12));
    println!("  hogs on both CPUs: vCPUs have {part:.2} %, the longest wait was {longest:?}");
    assert!((4.0..8.0).contains(&part), "{part}");
    assert!(longest < Duration::from_secs(2), "{longest:?}");
    for hog in &hogs {
        pin(hog.id(), &[0, 1]);
    }
    std::thread::sleep(Duration::from_secs(1));
    let (part, longest) = vcpus_part(&vcpus, &hogs, Duration::from_secs(8));
    println!("  the same hogs anywhere: vCPUs have {part:.2} %, the longest wait was {longest:?}");
    assert!(part > 4.0, "{part}");
    still_there(&steerer);
}

check!(STEERER_LONG: a_crowd_of_vcpus_beside_hogs_is_served);
/// 128 vCPUs on two CPUs, each with a hog of the fair class: each waits for its part of the 50 ms that the kernel keeps of each CPU's
/// second, which takes longer than the 5 s for which the watchdog is patient where all tasks are ours.
fn a_crowd_of_vcpus_beside_hogs_is_served() {
    let steerer = steer_only_vms("loan,kernel-exit");
    let vms = [Killed::vm("crowd", 7), Killed::vm("crowd", 8)];
    let vcpus: Vec<i32> = vms
        .iter()
        .flat_map(|vm| wait_for_threads(vm.id(), 64))
        .collect();
    let hogs = [Busy::start(0, None), Busy::start(0, None)];
    for (number, hog) in hogs.iter().enumerate() {
        pin(hog.id(), &[number]);
    }
    std::thread::sleep(Duration::from_secs(1));
    let (part, longest) = vcpus_part(&vcpus, &hogs, Duration::from_secs(20));
    println!("  128 vCPUs have {part:.2} %, the longest wait was {longest:?}");
    still_there(&steerer);
    assert!((4.0..8.0).contains(&part), "{part}");
    assert!(longest < Duration::from_secs(15), "{longest:?}");
}

check!(STEERER: a_vcpu_runs_where_the_hog_does_not);
/// One CPU has a hog of the fair class, the other is free: a vCPU that computes has that whole, and vCPUs that halt and wake up
/// without end wait for nothing.
fn a_vcpu_runs_where_the_hog_does_not() {
    let steerer = steer_only_vms("loan,kernel-exit");
    let hog = Busy::start(0, None);
    pin(hog.id(), &[0]);
    for (kind, threads) in [("single", 1), ("waking", 2)] {
        let vm = Killed::vm(kind, 7);
        let vcpus = wait_for_threads(vm.id(), threads);
        std::thread::sleep(Duration::from_millis(200));
        let (longest, ran) = longest_wait(&vcpus, Duration::from_secs(1));
        println!("  {kind}: ran for {ran:?} of 1 s, waited for {longest:?} at most");
        assert!(
            threads > 1 || ran > Duration::from_millis(900),
            "{kind}: {ran:?}"
        );
        assert!(longest < Duration::from_millis(10), "{kind}: {longest:?}");
    }
    still_there(&steerer);
}

check!(STEERER_LONG: others_wake_up_beside_vms_without_waiting_for_a_slice);
/// A task of the fair class that sleeps and wakes up goes before any vCPU.
fn others_wake_up_beside_vms_without_waiting_for_a_slice() {
    let vms = [Killed::vm("peaceful", 7), Killed::vm("peaceful", 8)];
    std::thread::sleep(Duration::from_millis(300));
    let measure = |name: &str| {
        let late = lateness(1_000, false);
        let (median, p99) = (late[late.len() / 2], late[late.len() * 99 / 100]);
        println!("  beside 8 vCPUs on 2 CPUs, {name}: late by {median:?}, 99 % by {p99:?} at most");
        (median, p99)
    };
    let kernel = measure("the kernel's scheduler");
    let steerer = steer_only_vms("loan,kernel-exit");
    for vm in &vms {
        wait_for_threads(vm.id(), 4);
    }
    let only_vms = measure("only VMs under ours");
    still_there(&steerer);
    drop(steerer);
    let steerer = steer("loan,kernel-exit", |_| ());
    measure("all under ours");
    still_there(&steerer);
    // Turns of the emulator make the same late by 0.02 to 0.4 ms and 0.6 to 1.9 ms in different boots, under any scheduler. One that
    // waited for the end of a slice would be late by 4 ms.
    assert!(
        only_vms.0 < Duration::from_millis(1),
        "{only_vms:?} {kernel:?}"
    );
    assert!(
        only_vms.1 < Duration::from_millis(3),
        "{only_vms:?} {kernel:?}"
    );
}

check!(FOUR_CPUS: a_pinned_vcpu_leaves_the_hogs_cpu);
/// vCPUs that may run on some of four CPUs wait in the queue of one: not in that of a CPU that a hog of the fair class takes while
/// another one is free.
fn a_pinned_vcpu_leaves_the_hogs_cpu() {
    let steerer = steer_only_vms("loan,kernel-exit");
    // Their CPUs, and where the hogs are one after another.
    let of_two: (&[usize], &[&[usize]]) = (&[0, 1], &[&[0], &[1], &[0], &[1], &[0], &[1]]);
    let of_three: (&[usize], &[&[usize]]) = (
        &[0, 1, 2],
        &[
            &[0, 1],
            &[1, 2],
            &[2, 0],
            &[0, 1],
            &[1, 2],
            &[2, 0],
            &[0, 1],
            &[1, 2],
        ],
    );
    for (kind, threads) in [("single", 1), ("waking", 2)] {
        let vm = Killed::vm(kind, 7);
        let vcpus = wait_for_threads(vm.id(), threads);
        for (cpus, taken) in [of_two, of_three] {
            for vcpu in &vcpus {
                pin(*vcpu as u32, cpus);
            }
            let hogs: Vec<Busy> = taken[0].iter().map(|_| Busy::start(0, None)).collect();
            for taken in taken {
                for (hog, cpu) in hogs.iter().zip(*taken) {
                    pin(hog.id(), &[*cpu]);
                }
                let (longest, ran) = longest_wait(&vcpus, Duration::from_millis(500));
                println!(
                    "  {kind} on {cpus:?}, hogs on {taken:?}: ran for {ran:?} of 0.5 s, waited for {longest:?} at most"
                );
                assert!(ran > Duration::from_millis(400), "{kind}: {ran:?}");
                assert!(longest < Duration::from_millis(50), "{longest:?}");
            }
        }
    }
    still_there(&steerer);
}
