// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs that end early: each says why, and nothing of it is left.
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use unspin_testbed::check;

use unspin_abi as abi;
use unspin_scenario::{Length, Vm};
use unspin_vmm::{Error, Fault, GuestFailure, Phase, RunOptions};

use crate::support::{iterations, loops, run_alone, scenario, vm};

check!(KVM: a_guest_that_goes_wrong_is_reported_and_takes_everybody_down);
pub fn a_guest_that_goes_wrong_is_reported_and_takes_everybody_down() {
    let scenario = scenario(
        Length::DurationNs(60_000_000_000),
        vec![Vm { count: 2, ..vm(2) }],
    );
    let failure = |fault| {
        let options = RunOptions {
            fault,
            ..Default::default()
        };
        match run_alone(&scenario, &options) {
            Err(Error::Guest {
                vm, vcpu, failure, ..
            }) => {
                assert!(vm == "vm0" || vm == "vm1");
                (vcpu, failure)
            }
            other => panic!("{other:?}"),
        }
    };
    let (vcpu, triple) = failure(Fault::Triple);
    assert!(
        matches!(triple, GuestFailure::TripleFault { .. }),
        "{triple}"
    );
    assert_eq!(vcpu, 0);
    println!("{triple}");
    let (vcpu, exception) = failure(Fault::Exception);
    assert_eq!(vcpu, 0);
    let GuestFailure::Panic {
        code, vector, rip, ..
    } = exception
    else {
        panic!("{exception}");
    };
    assert_eq!((u32::from(code), vector), (abi::UNSPIN_PANIC_EXCEPTION, 6));
    assert!(rip >= abi::UNSPIN_GUEST_IMAGE.into() && rip < abi::UNSPIN_GUEST_USER.into());
    let (_, exclusion) = failure(Fault::Exclusion);
    let GuestFailure::Panic { code, .. } = exclusion else {
        panic!("{exclusion}");
    };
    assert_eq!(u32::from(code), abi::UNSPIN_PANIC_EXCLUSION);
}

check!(KVM: an_interrupt_ends_a_run_soon);
pub fn an_interrupt_ends_a_run_soon() {
    let interrupt = Arc::new(AtomicBool::new(false));
    let set = interrupt.clone();
    let options = RunOptions {
        interrupt,
        on_phase: Some(Box::new(move |phase| {
            set.store(phase == Phase::Started, Ordering::Relaxed);
        })),
        ..Default::default()
    };
    let scenario = scenario(
        Length::DurationNs(3_600_000_000_000),
        vec![Vm { count: 2, ..vm(2) }],
    );
    let begin = Instant::now();
    let ended = run_alone(&scenario, &options);
    assert!(matches!(ended, Err(Error::Interrupted)), "{ended:?}");
    assert!(
        begin.elapsed() < Duration::from_secs(30),
        "{:?}",
        begin.elapsed()
    );
}

check!(KVM: a_guest_that_does_not_stop_is_taken_out_and_named);
pub fn a_guest_that_does_not_stop_is_taken_out_and_named() {
    let slow = Vm {
        // Seconds on any machine, without an exit.
        hold: loops(u64::from(u32::MAX)),
        tick_hz: 0,
        ..vm(2)
    };
    let options = RunOptions {
        stop_limit: Duration::from_millis(200),
        ..Default::default()
    };
    let ended = run_alone(
        &scenario(Length::DurationNs(50_000_000), vec![slow]),
        &options,
    );
    let Err(Error::NotStopped { vm, rip, .. }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!(vm, "vm0");
    let image = u64::from(abi::UNSPIN_GUEST_IMAGE)..u64::from(abi::UNSPIN_GUEST_USER);
    assert!(image.contains(&rip), "{rip:#x}");
}

check!(KVM: vms_that_cannot_be_created_take_down_those_that_were);
pub fn vms_that_cannot_be_created_take_down_those_that_were() {
    let many = Vm { count: 60, ..vm(1) };
    let limit = OpenFiles::limited_to(64);
    let ended = run_alone(&iterations(vec![many]), &RunOptions::default());
    drop(limit);
    let Err(Error::Create { vm, source, .. }) = ended else {
        panic!("{ended:?}");
    };
    assert!(vm.starts_with("vm"), "{vm}");
    assert_eq!(source.raw_os_error(), Some(libc::EMFILE), "{source}");
}

/// This process's limit of open files, hard and soft, put back at the end. Root may raise it again.
struct OpenFiles(libc::rlimit);

impl OpenFiles {
    fn limited_to(files: u64) -> OpenFiles {
        let mut before = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: a live rlimit for the kernel to fill in.
        let read = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut before) };
        assert_eq!(read, 0);
        set_open_files(libc::rlimit {
            rlim_cur: files,
            rlim_max: files,
        });
        OpenFiles(before)
    }
}

impl Drop for OpenFiles {
    fn drop(&mut self) {
        set_open_files(self.0);
    }
}

fn set_open_files(limit: libc::rlimit) {
    // SAFETY: the kernel only reads `limit`.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
    assert_eq!(set, 0, "{}", io::Error::last_os_error());
}
