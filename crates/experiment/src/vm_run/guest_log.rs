// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests' own logs, apart from everything that the host saw.

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::Context;
use unspin_events::guest_log::{GuestLog, GuestLogVm};
use unspin_vmm::VmReport;

use super::{Run, ground_truth};
use crate::Error;

/// Writes the logs of all VMs that were observed.
///
/// # Errors
/// When the run was not observed, or the file cannot be written.
pub fn write(path: &Path, run: &Run) -> Result<(), Error> {
    let failed = || format!("{}: the guest log cannot be written", path.display());
    let log = collect(run)?;
    let mut out = BufWriter::new(File::create(path).with_context(failed)?);
    log.write(&mut out).with_context(failed)?;
    out.flush().with_context(failed)?;
    Ok(())
}

fn collect(run: &Run) -> Result<GuestLog, Error> {
    let clock = &run.report.clock;
    let vms = run.report.vms.iter();
    let vms = vms.filter_map(|vm| of_vm(run, vm)).collect();
    Ok(GuestLog::new([clock.first(), clock.last()], vms))
}

/// `None` when the host saw nothing of it.
fn of_vm(run: &Run, vm: &VmReport) -> Option<GuestLogVm> {
    let seen = run.seen.as_ref()?;
    let thread = |thread| seen.of_thread(thread);
    let number = vm.vcpus.iter().find_map(|vcpu| thread(vcpu.thread_id))?.vm;
    let (waits, refused) = ground_truth::waits(vm);
    let group = run.scenario.vms.get(vm.group)?;
    let dropped = vm.vcpus.iter().any(|vcpu| vcpu.statistics.log_dropped > 0);
    Some(GuestLogVm {
        vm: number,
        name: vm.name.clone(),
        lock: group.lock.name().to_owned(),
        vcpus: vm.vcpus.len() as u16,
        complete: group.log_minimum_spins == 0 && !dropped,
        refused,
        waits,
    })
}
