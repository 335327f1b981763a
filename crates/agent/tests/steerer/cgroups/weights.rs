// SPDX-License-Identifier: MIT OR Apache-2.0
//! Shares follow weights: of nice, of nested cgroups, of tasks that may run in some places only, of those that sleep.

use std::{
    fs,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};
use unspin_testbed::check;

use super::super::{
    host::{Busy, Cgroup, are_close, attach, counter, pin, shares, still_there},
    hostile,
};

check!(STEERER: cpu_time_follows_weights);
/// One attach for all that weights are about.
pub fn cpu_time_follows_weights() {
    let steerer = attach();
    nice_counts();
    nested_cgroups_count();
    still_there(&steerer);
}

check!(STEERER_LONG: places_and_sleepers_count);
/// The same for what weights alone do not say.
pub fn places_and_sleepers_count() {
    let steerer = attach();
    who_waits_for_one_cpu_has_its_share();
    affinity_is_kept();
    cpusets_are_kept();
    a_share_that_cannot_be_used_harms_nobody();
    hostile::attaching::a_sleeper_is_served_soon();
    hostile::attaching::a_sleeper_is_served_soon_while_classes_change();
    still_there(&steerer);
}

check!(STEERER_LONG: the_lightest_do_not_wait_for_ever);
/// Twenty tasks of nice 0 for each CPU, and two of the least weight, one of them on the second CPU only: after a slice of
/// 1.4 ms they are 0.5 s ahead of clocks that come 50 ms further in a second.
pub fn the_lightest_do_not_wait_for_ever() {
    const LOOKS: u32 = 3;
    let steerer = attach();
    let light = [Busy::start(0, None), Busy::start(0, None)];
    for task in &light {
        hostile::attaching::set_class(task.id() as i32, libc::SCHED_IDLE, 0);
    }
    pin(light[1].id(), &[1]);
    let busy = Busy::threads(40);
    let times = || light.each_ref().map(Busy::cpu_time);
    std::thread::sleep(Duration::from_millis(500));
    for _ in 0..LOOKS {
        let before = times();
        std::thread::sleep(Duration::from_secs(3));
        still_there(&steerer);
        let grown = [0, 1].map(|task| times()[task] - before[task]);
        println!("  in 3 s {grown:?}");
        // The longest wait is 2 s. By their weight they would have 1/13,700 of two CPUs: 0.4 ms.
        for time in grown {
            assert!(!time.is_zero(), "{grown:?}");
            assert!(time < Duration::from_millis(20), "{grown:?}");
        }
    }
    let moved = counter(&steerer, "brought_forward");
    assert!((2..30 * u64::from(LOOKS)).contains(&moved), "{moved}");
    println!("  brought forward {moved} times");
    drop(busy);
}

fn nice_counts() {
    // Weights of the kernel's table for nice 0, 0, 3 and -2, sched_prio_to_weight[], over 1024; two CPUs.
    let tasks: Vec<Busy> = [0, 0, 3, -2].map(|nice| Busy::start(nice, None)).into();
    let measured = shares(
        &tasks.iter().collect::<Vec<_>>(),
        Duration::from_millis(2_500),
    );
    are_close(&measured, &[1024.0, 1024.0, 526.0, 1586.0]);
}

fn nested_cgroups_count() {
    let _outer = Cgroup::new("outer", 300);
    let light = Cgroup::new("outer/light", 100);
    let heavy = Cgroup::new("outer/heavy", 200);
    let other = Cgroup::new("other", 100);
    let tasks = [
        Busy::start(0, Some(&light)),
        Busy::start(0, Some(&light)),
        Busy::start(0, Some(&heavy)),
        Busy::start(0, Some(&heavy)),
        Busy::start(0, Some(&other)),
        Busy::start(0, Some(&other)),
        Busy::start(0, Some(&other)),
    ];
    let all: Vec<&Busy> = tasks.iter().collect();
    let measured = shares(&all, Duration::from_millis(2_500));
    let third = 25.0 / 3.0;
    are_close(&measured, &[12.5, 12.5, 25.0, 25.0, third, third, third]);
    // A weight that changes while the group is active.
    fs::write(other.folder().join("cpu.weight"), "900").expect("a weight");
    let measured = shares(&all, Duration::from_millis(2_500));
    are_close(
        &measured,
        &[
            25.0 / 6.0,
            25.0 / 6.0,
            25.0 / 3.0,
            25.0 / 3.0,
            25.0,
            25.0,
            25.0,
        ],
    );
    drop(tasks);
}

fn affinity_is_kept() {
    let tasks = [
        Busy::start(0, None),
        Busy::start(0, None),
        Busy::start(0, None),
    ];
    for task in &tasks[..2] {
        pin(task.id(), &[1]);
    }
    let measured = shares(
        &tasks.iter().collect::<Vec<_>>(),
        Duration::from_millis(1_500),
    );
    are_close(&measured, &[1.0, 1.0, 2.0]);
    for task in &tasks[..2] {
        let text = fs::read_to_string(format!("/proc/{}/stat", task.id())).expect("it runs");
        // Field 39 is the CPU it ran on last; the name in field 2 has no blank.
        assert_eq!(text.split(' ').nth(38), Some("1"));
    }
}

/// More weight than a CPU's worth on one of them: the others' weights still count among them.
fn a_share_that_cannot_be_used_harms_nobody() {
    // A weight of 9548 and three of 1024 on two CPUs: it has one of them.
    let tasks: Vec<Busy> = [-10, 0, 0, 0].map(|nice| Busy::start(nice, None)).into();
    let all: Vec<&Busy> = tasks.iter().collect();
    are_close(
        &shares(&all, Duration::from_millis(1_500)),
        &[3.0, 1.0, 1.0, 1.0],
    );
    drop(tasks);
    // Six on one CPU, two of weights 1024 and 335 on the other, where they have three times as much each.
    let tasks: Vec<Busy> = [0, 5, 0, 0, 0, 0, 0, 0]
        .map(|nice| Busy::start(nice, None))
        .into();
    for (number, task) in tasks.iter().enumerate() {
        pin(task.id(), if number < 2 { &[1] } else { &[0] });
    }
    let measured = shares(&[&tasks[0], &tasks[1]], Duration::from_millis(1_500));
    are_close(&measured, &[1024.0, 335.0]);
    // Who comes to that CPU now, and who may go anywhere, waits for nobody.
    let late = [Busy::start(0, None), Busy::start(0, None)];
    pin(late[0].id(), &[1]);
    std::thread::sleep(Duration::from_millis(100));
    assert!(
        late.iter()
            .all(|task| task.cpu_time() > Duration::from_millis(5))
    );
}

/// Three that are always busy, one of them on the first CPU only, where one of most weight wakes up every other moment: each of
/// its slices is one of that CPU's queue, and nobody waits in the shared one.
fn who_waits_for_one_cpu_has_its_share() {
    let tasks = [0; 3].map(|nice| Busy::start(nice, None));
    pin(tasks[2].id(), &[0]);
    let over = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: takes and gives numbers only.
            let thread = unsafe { libc::gettid() } as u32;
            pin(thread, &[0]);
            // SAFETY: plain numbers.
            let done = unsafe { libc::setpriority(libc::PRIO_PROCESS, thread, -20) };
            assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
            hostile::attaching::latest_wakeup(&over)
        });
        let all: Vec<&Busy> = tasks.iter().collect();
        let measured = shares(&all, Duration::from_millis(1_500));
        over.store(true, Ordering::Relaxed);
        measured
    });
    are_close(&measured, &[1.0, 1.0, 1.0]);
}

fn cpusets_are_kept() {
    fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset").expect("the cpuset controller");
    let set = Cgroup::new("set", 100);
    fs::write(set.folder().join("cpuset.cpus"), "1").expect("a CPU");
    let tasks = [
        Busy::start(0, Some(&set)),
        Busy::start(0, Some(&set)),
        Busy::start(0, None),
    ];
    let all: Vec<&Busy> = tasks.iter().collect();
    let measured = shares(&all, Duration::from_millis(800));
    are_close(&measured, &[1.0, 1.0, 2.0]);
    drop(tasks);
}
