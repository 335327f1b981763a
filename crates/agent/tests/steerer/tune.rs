// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin tune`: slices of vCPUs' own under the host's scheduler, given back however it ends.

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use unspin_testbed::check;

use unspin_agent::tune::{HostSlice, Tuning};

use super::hostile::attaching::Killed;

const SLICE_NS: u64 = 100_000;
/// What a check waits for at most: a scan of threads every 250 ms, on a busy host.
const PATIENCE: Duration = Duration::from_secs(5);

/// The slices of a process's threads, as /proc/PID/task/TID/sched does not tell them: sched_getattr(2).
fn slices_ns(process: u32) -> Vec<u64> {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let mut slices: Vec<u64> = threads
        .flatten()
        .filter_map(|thread| thread.file_name().to_str()?.parse::<u32>().ok())
        .map(|thread| {
            // struct sched_attr: size, policy; flags; nice, priority; runtime; deadline; period.
            let mut attr = [0u64; 6];
            // SAFETY: the kernel writes 48 bytes at most into `attr`.
            let done = unsafe {
                libc::syscall(
                    libc::SYS_sched_getattr,
                    thread,
                    attr.as_mut_ptr(),
                    48u32,
                    0u32,
                )
            };
            assert_eq!(done, 0, "thread {thread}");
            attr[3]
        })
        .collect();
    slices.sort_unstable();
    slices
}

/// Until so many threads of that process have our slice.
fn wait_for(process: u32, tuned: usize) {
    let began = Instant::now();
    loop {
        let slices = slices_ns(process);
        if slices.iter().filter(|ns| **ns == SLICE_NS).count() == tuned {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{tuned} of {slices:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The child of [`slices_come_and_go`]: tunes until it is killed.
pub fn child() -> ! {
    let _tuning = Tuning::start(HostSlice::Fixed(SLICE_NS as u32), Vec::new(), None);
    loop {
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn tune() -> Child {
    let own = std::env::current_exe().expect("procfs is mounted");
    let mut command = Command::new(own);
    command.arg("tune").stdout(Stdio::null());
    command.spawn().expect("this very binary")
}

check!(GUESTS: slices_come_and_go);
/// The vCPUs of VMs get them, those that come later too, nobody else does, and all are as they were when it ends, or is killed.
fn slices_come_and_go() {
    let first = Killed::start();
    let kernels_ns = slices_ns(first.id())[0];
    let is_untouched = |vm: &Killed| slices_ns(vm.id()).iter().all(|ns| *ns == kernels_ns);
    let tuning = Tuning::start(HostSlice::Fixed(SLICE_NS as u32), Vec::new(), None);
    let tuning = tuning.expect("Linux 7.2 has slices of threads");
    wait_for(first.id(), 4);
    assert!(
        slices_ns(first.id()).len() > 4,
        "the thread that waits for them has its own"
    );
    let second = Killed::vm("peaceful", 3);
    wait_for(second.id(), 4);
    assert!(tuning.end().expect("the kernel lets it").is_none());
    assert!(is_untouched(&first) && is_untouched(&second));

    let mut killed = tune();
    wait_for(first.id(), 4);
    killed.kill().expect("it is ours");
    killed.wait().expect("it was killed");
    wait_for(first.id(), 0);
    wait_for(second.id(), 0);
    assert!(is_untouched(&first) && is_untouched(&second));

    // For one VM, by trial: the other is left alone.
    let tuning = Tuning::start(HostSlice::Auto, vec![first.id()], None).expect("as before");
    let began = Instant::now();
    let mut steps = Vec::new();
    while steps.len() < 8 {
        assert!(began.elapsed() < PATIENCE, "{steps:?}");
        std::thread::sleep(Duration::from_millis(50));
        steps.extend(tuning.steps());
    }
    assert!(steps.iter().all(|step| step.vm == first.id()), "{steps:?}");
    let controller = tuning.end().expect("the kernel lets it");
    assert!(controller.is_some_and(|controller| controller.acting().len() == 1));
    assert!(is_untouched(&first) && is_untouched(&second));
}
