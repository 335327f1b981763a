// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules between keys: what each key allows by itself stands at its field.

use unspin_abi::{UNSPIN_GUEST_LOG_BYTES, unspin_guest_wait};
use unspin_strict_toml::Breach;

use crate::{
    file::{File, VMS_WORDS},
    forms::EACH_VM,
    lab::LabSettings,
    limits::{TASKS_MAX, TASKS_PER_VCPU_MAX, VMS_MAX},
    model::{Length, PvPageMemory, Vm, Workload},
    quantity::format_duration,
};

fn breach(path: &str, message: impl Into<String>, allowed: impl Into<String>) -> Breach {
    Breach {
        path: path.to_owned(),
        message: message.into(),
        allowed: allowed.into(),
    }
}

/// All rules, and when the run ends.
pub(crate) fn file(file: &File) -> Result<Length, Breach> {
    let length = length(file)?;
    warm_up(file, length)?;
    if file.vm.is_empty() {
        return Err(breach(
            "vm",
            "`vm` cannot be an empty array",
            format!("expected {VMS_WORDS}"),
        ));
    }
    let total: u64 = file.vm.iter().map(|vm| u64::from(vm.count)).sum();
    if total > u64::from(VMS_MAX) {
        return Err(breach(
            "",
            format!("{total} VMs in all are too many"),
            format!("at most {VMS_MAX}"),
        ));
    }
    for (number, vm) in file.vm.iter().enumerate() {
        group(vm).map_err(|breach| Breach {
            path: format!("vm.{number}.{}", breach.path),
            ..breach
        })?;
    }
    file.lab
        .as_ref()
        .map_or(Ok(()), |lab| each_group(lab, file.vm.len()))?;
    Ok(length)
}

/// `duration` or `iterations`, exactly one of them.
fn length(file: &File) -> Result<Length, Breach> {
    match (file.duration, file.iterations) {
        (Some(ns), None) => Ok(Length::DurationNs(ns)),
        (None, Some(iterations)) => Ok(Length::Iterations(iterations)),
        (Some(_), Some(_)) => Err(breach(
            "iterations",
            "`iterations` and `duration` exclude each other",
            "keep the one that should end the run",
        )),
        (None, None) => Err(breach(
            "",
            "neither `duration` nor `iterations` says when the run ends",
            "add duration = \"2s\", or iterations = 1000 for so many iterations of each vCPU",
        )),
    }
}

/// Shorter than the run, and only with `duration`.
fn warm_up(file: &File, length: Length) -> Result<(), Breach> {
    let warm_up_ns = file.warm_up.unwrap_or(0);
    match length {
        Length::DurationNs(run_ns) if warm_up_ns >= run_ns => Err(breach(
            "warm_up",
            format!(
                "a warm-up of {} leaves nothing of a run of {}",
                format_duration(warm_up_ns),
                format_duration(run_ns)
            ),
            "make `warm_up` shorter than `duration`",
        )),
        Length::Iterations(_) if warm_up_ns > 0 => Err(breach(
            "warm_up",
            "`warm_up` needs `duration`: a run of `iterations` is counted from its first iteration",
            "leave `warm_up` out",
        )),
        _ => Ok(()),
    }
}

/// `lab.weights` and `lab.pins` have a value for each group, or none.
fn each_group(lab: &LabSettings, groups: usize) -> Result<(), Breach> {
    for (key, values) in [("weights", lab.weights.len()), ("pins", lab.pins.len())] {
        if values != 0 && values != groups {
            return Err(breach(
                &format!("lab.{key}"),
                format!("`{key}` has {values} values"),
                format!("expected {EACH_VM}, {groups} in all"),
            ));
        }
    }
    Ok(())
}

fn group(vm: &Vm) -> Result<(), Breach> {
    between_vcpus(vm)?;
    log_records(vm)?;
    tasks(vm)?;
    load_that_changes(vm)?;
    if vm.pv_page_memory == PvPageMemory::Map && !vm.pv_page {
        return Err(breach(
            "pv_page_memory",
            "`pv_page_memory` says where the pv page lies, and this guest has none",
            "\"guest\", or `pv_page = true`",
        ));
    }
    Ok(())
}

/// A load changes between locks and shootdowns, which other workloads have beside their own.
fn load_that_changes(vm: &Vm) -> Result<(), Breach> {
    if vm.load_changes_every_ms > 0 && vm.workload != Workload::Iterations {
        return Err(breach(
            "load_changes_every_ms",
            "only the workload \"iterations\" has a load that changes",
            "0 (never), or `workload = \"iterations\"`",
        ));
    }
    Ok(())
}

/// What crosses from one vCPU to others needs others.
fn between_vcpus(vm: &Vm) -> Result<(), Breach> {
    for (key, every) in [
        ("shootdown_every_iterations", vm.shootdown_every_iterations),
        ("wakeup_every_iterations", vm.wakeup_every_iterations),
    ] {
        if every > 0 && vm.vcpus == 1 {
            return Err(breach(
                key,
                format!("`{key}` needs another vCPU, and this VM has one"),
                "0 (never), or `vcpus` of at least 2",
            ));
        }
    }
    Ok(())
}

/// The log of all vCPUs must fit into the guest's memory.
fn log_records(vm: &Vm) -> Result<(), Breach> {
    let Vm {
        vcpus, log_records, ..
    } = vm;
    let room = UNSPIN_GUEST_LOG_BYTES / size_of::<unspin_guest_wait>() as u32 / vcpus;
    if *log_records <= room {
        return Ok(());
    }
    let plural = if *vcpus == 1 { "" } else { "s" };
    Err(breach(
        "log_records",
        format!(
            "the guest's log has no room for {log_records} records of each of {vcpus} vCPU{plural}"
        ),
        format!("from 0 to {room} with so many vCPUs"),
    ))
}

/// Tasks of each vCPU. A wake-up between vCPUs halts the whole vCPU until its token comes: other tasks of it might be what
/// the sender waits for.
fn tasks(vm: &Vm) -> Result<(), Breach> {
    let most = TASKS_PER_VCPU_MAX.min(TASKS_MAX / vm.vcpus);
    let tasks = vm.tasks_per_vcpu;
    if tasks > most {
        return Err(breach(
            "tasks_per_vcpu",
            format!(
                "{tasks} tasks on each of {} vCPUs are more than {TASKS_MAX}",
                vm.vcpus
            ),
            format!("at most {most}"),
        ));
    }
    if tasks > 1 && vm.wakeup_every_iterations > 0 {
        return Err(breach(
            "tasks_per_vcpu",
            "`wakeup_every_iterations` halts a vCPU, and it has other tasks",
            "1, or `wakeup_every_iterations = 0`",
        ));
    }
    Ok(())
}
