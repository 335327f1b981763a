// SPDX-License-Identifier: MIT OR Apache-2.0
//! A CPU that the administrator has isolated is nobody's unless a task is put there, and real-time tasks are not ours. In
//! boots of their own, with `nohz_full=1` and with `isolcpus=1`.

use std::{fs, time::Duration};
use unspin_testbed::check;

use unspin_agent::{SteerOptions, Steerer};

use super::{
    host::{Busy, Cgroup, are_close, shares, state, still_there},
    vms::steer,
};

check!(ISOLATED_AT_BOOT: isolation_at_boot_is_named);
fn isolation_at_boot_is_named() {
    let error = Steerer::attach(&SteerOptions::default())
        .err()
        .expect("refused");
    assert!(error.to_string().contains("`isolcpus=1`"), "{error}");
    assert_eq!(state(), "disabled");
}

check!(ISOLATED_CPU: an_isolated_cpu_is_left_alone);
fn an_isolated_cpu_is_left_alone() {
    fs::write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset").expect("the cpuset controller");
    let alone = Cgroup::new("alone", 100);
    fs::write(alone.folder().join("cpuset.cpus"), "1").expect("a CPU");
    fs::write(alone.folder().join("cpuset.cpus.partition"), "isolated").expect("a partition");
    let steerer = steer("loan", |_| ());
    let anywhere = [Busy::start(0, None), Busy::start(0, None)];
    let both: Vec<&Busy> = anywhere.iter().collect();
    let measured = shares(&both, Duration::from_millis(600));
    // Both on CPU 0, though CPU 1 is idle.
    are_close(&measured, &[1.0, 1.0]);
    assert!(
        (0.57..0.61).contains(&measured.iter().sum::<f64>()),
        "{measured:?}"
    );
    let put_there = Busy::start(0, Some(&alone));
    let measured = shares(&[both[0], both[1], &put_there], Duration::from_millis(600));
    are_close(&measured, &[1.0, 1.0, 2.0]);
    // A second one there: without a tick they still take slices.
    let beside = Busy::start(0, Some(&alone));
    let measured = shares(&[&put_there, &beside], Duration::from_millis(1_000));
    assert!(measured.iter().all(|time| *time > 0.4), "{measured:?}");
    drop(beside);
    // A real-time task takes the CPU at once, and all of it but what the kernel keeps back.
    let urgent = Busy::start(0, Some(&alone));
    let parameter = libc::sched_param { sched_priority: 10 };
    // SAFETY: a parameter of our own; the call keeps nothing.
    let done =
        unsafe { libc::sched_setscheduler(urgent.id() as i32, libc::SCHED_FIFO, &parameter) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    let measured = shares(&[&urgent, &put_there], Duration::from_millis(1_000));
    println!(
        "  a real-time task got {:.3} s of 1 s, the one below it {:.3}",
        measured[0], measured[1]
    );
    assert!(measured[0] > 0.9, "{measured:?}");
    still_there(&steerer);
    drop((urgent, put_there));
}
