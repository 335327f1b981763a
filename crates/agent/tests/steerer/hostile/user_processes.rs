// SPDX-License-Identifier: MIT OR Apache-2.0
//! Processes in a guest's user mode, which speak for their kernel.

use std::{thread, time::Duration};

use unspin_testbed::check;

use super::{
    beside::Hostile,
    code::{Draws, VCPUS},
};
use crate::steerer::{
    host::{counter, still_there},
    vms::steer,
};

/// How many pv pages such a guest registers.
fn registered_by(kind: &str) -> u64 {
    let steerer = steer("loan", |_| ());
    let guest = Hostile::start(kind, &mut Draws(1));
    thread::sleep(Duration::from_millis(300));
    drop(guest);
    let pages = counter(&steerer, "pv_pages");
    println!("  {kind}: {pages} pages");
    still_there(&steerer);
    pages
}

check!(GUESTS: user_processes_register_no_page);
/// A vCPU in kernel mode registers its pv page by a hypercall; the same code in user mode does not. KVM forbids hypercalls
/// there, but only after its tracepoint.
fn user_processes_register_no_page() {
    assert_eq!(registered_by("critical"), VCPUS);
    assert_eq!(registered_by("critical-in-user-mode"), 0);
}

check!(VMX: user_processes_of_intel_guests_register_no_page);
/// KVM has read the privilege level before a hypercall. That kernels' pages are registered the other checks of this boot show.
fn user_processes_of_intel_guests_register_no_page() {
    assert_eq!(registered_by("critical-in-user-mode"), 0);
}
