// SPDX-License-Identifier: MIT OR Apache-2.0
//! A VMM that is stopped under real KVM: what its vCPUs' last exits say, and that its process is known as a VM's.

use std::{env, path::Path, process::Command, thread, time::Duration};

use unspin_agent::{EventMask, Recorder};
use unspin_analysis::{
    verdict::{decide::Finding, study::study_events, words::verdicts},
    waits::spin_locations::Naming,
};
use unspin_events::facts::Facts;
use unspin_testbed::check;
use unspin_vms::{has_vm, running};

use crate::{
    checks::attach,
    vms::{run_for, vm},
};

const MS: u64 = 1_000_000;

/// What this binary does as a VMM that can be stopped.
pub fn be_a_vmm() -> ! {
    run_for(1_500, vec![vm(3)]);
    std::process::exit(0)
}

fn signal(process: u32, number: libc::c_int) {
    // SAFETY: a number.
    let sent = unsafe { libc::kill(process as libc::pid_t, number) };
    assert_eq!(sent, 0);
}

check!(INTERRUPTED: a_stopped_vmm_is_told_from_one_that_waits);
fn a_stopped_vmm_is_told_from_one_that_waits() {
    let observer = attach(EventMask::SWITCHES.and(EventMask::PAUSE_LOOPS));
    let recorder =
        Recorder::start(observer, Duration::from_millis(20), 2_000_000).expect("a thread");
    let own = env::current_exe().expect("procfs is mounted");
    let mut vmm = Command::new(own).arg("vmm").spawn().expect("it starts");
    thread::sleep(Duration::from_millis(600));
    let proc = Path::new("/proc");
    assert_eq!(has_vm(proc, vmm.id()), Some(true));
    let found = running(proc);
    assert!(
        found.vms.iter().any(|vm| vm.process == vmm.id()),
        "{found:?}"
    );
    signal(vmm.id(), libc::SIGSTOP);
    thread::sleep(Duration::from_millis(800));
    signal(vmm.id(), libc::SIGCONT);
    assert!(vmm.wait().expect("it ends").success());
    let mut events = recorder.finish().expect("the ring").events;
    events.sort_by_key(|event| event.time_ns);
    let study = study_events(&Facts::default(), Naming::default(), events);
    let figures = &study.vms[&0].figures;
    let stopped_ns = figures.longest_stop_ns;
    assert!((700 * MS..900 * MS).contains(&stopped_ns), "{figures:?}");
    let verdict = &verdicts(&Facts::default(), &study)[0];
    let said = verdict.finding == Finding::Stopped || verdict.others.contains(&Finding::Stopped);
    assert!(said, "{verdict:?}");
}
