// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's watchdog sends a BPF scheduler away when a task that wants to run has not run for 5 s. Here it is forced
//! to: a real-time task keeps a CPU that another task is pinned to.

use std::{
    fs,
    time::{Duration, Instant},
};
use unspin_testbed::check;

use super::{
    host::{Busy, pin, shares, state, wait_for},
    hostile::attaching::Killed,
    vms::steer,
};

/// What the kernel keeps of a CPU for tasks of a BPF scheduler when real-time tasks want all of it: 50 ms a second.
const SERVER: &str = "/sys/kernel/debug/sched/ext_server/cpu1/runtime";

/// A real-time spinner on the second CPU, below the kernel's own real-time threads (50).
fn hog() -> Busy {
    let busy = Busy::start(0, None);
    pin(busy.id(), &[1]);
    let parameter = libc::sched_param { sched_priority: 10 };
    // SAFETY: a parameter of our own; the call keeps nothing.
    let done = unsafe { libc::sched_setscheduler(busy.id() as i32, libc::SCHED_FIFO, &parameter) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    busy
}

check!(STEERER_LONG: the_watchdog_sends_it_away);
/// The kernel's own scheduler is back within a second of the watchdog's bark, VMs go on, and the loader says what happened.
pub fn the_watchdog_sends_it_away() {
    let kept = fs::read_to_string(SERVER).ok();
    if kept.is_some() {
        fs::write(SERVER, "0").expect("debugfs is writable");
    }
    let mut vm = Killed::start();
    let steerer = steer("loan", |_| ());
    let starved = Busy::start(0, None);
    pin(starved.id(), &[1]);
    let hog = hog();
    let began = Instant::now();
    // Its timeout is 5 s, and it looks every 2.5 s.
    while state() == "enabled" {
        assert!(began.elapsed() < Duration::from_secs(10), "no bark");
        std::thread::sleep(Duration::from_millis(5));
    }
    let bark = began.elapsed();
    // It keeps that CPU from the kernel's own threads, too, and some of them take part in what follows.
    drop(hog);
    wait_for("disabled", Duration::from_secs(1));
    println!(
        "  the watchdog barked {} ms after the hog came; {} ms later the kernel's own scheduler was back",
        bark.as_millis(),
        (began.elapsed() - bark).as_millis()
    );
    let end = steerer.ended().expect("the kernel tells").expect("it went");
    println!("  {}: {}", end.reason, end.message);
    assert!(end.reason.contains("stall"), "{end:?}");
    // Who waited where, by our own words beside the kernel's.
    for words in [
        "wait in the shared queue",
        "wait in its queue",
        "slice ends",
    ] {
        assert!(end.dump.contains(words), "{}", end.dump);
    }
    drop(steerer);
    assert!(vm.is_running(), "the VM is lost");
    let measured = shares(&[&starved], Duration::from_millis(300));
    assert!(measured[0] > 0.05, "{measured:?}");
    if let Some(kept) = kept {
        fs::write(SERVER, kept.trim()).expect("debugfs is writable");
    }
}
