// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[[vm]]`: groups of equal VMs, what they do and what cannot be.

use toml::de::DeValue;
use unspin_abi::{LockKind, UNSPIN_GUEST_LOG_BYTES, unspin_guest_wait};

use crate::{
    error::ScenarioError,
    limits::{
        LOCKS_MAX, PAUSE_EVERY_MAX, TASKS_MAX, TASKS_PER_VCPU_MAX, TICK_HZ_MAX, VCPUS_MAX, VMS_MAX,
        WORK_MAX_LOOPS, WORK_MAX_NS,
    },
    model::{Distribution, EcsAblation, LockSharing, PvPageMemory, Shape, Vm, WorkUnit, Workload},
    quantity::{format_work, work},
    section::{Found, Section, Source},
};

/// Keys of `[[vm]]`.
pub(crate) const VM_KEYS: &[&str] = &[
    "count",
    "vcpus",
    "lock",
    "locks",
    "user_work",
    "kernel_work",
    "hold",
    "shootdown_every_iterations",
    "wakeup_every_iterations",
    "tick_hz",
    "pause_every_spins",
    "pause_exits",
    "halt_exits",
    "log_records",
    "log_minimum_spins",
    "pv_page",
    "pv_page_memory",
    "help_after_spins",
    "tasks_per_vcpu",
    "workload",
    "reader_percent",
    "ecs_ablation",
];
/// Keys of a distribution.
pub(crate) const DISTRIBUTION_KEYS: &[&str] = &["exponential", "uniform"];

const WORK_FORM: &str = "work such as \"300 loops\" or \"6us\" (units: loops, ns, us, ms, s), \
                         { exponential = \"300 loops\" } or { uniform = [\"100 loops\", \"500 loops\"] }";

/// Every group of the file, in its order; at least one.
pub(crate) fn groups(source: Source<'_>, top: &Section<'_, '_>) -> Result<Vec<Vm>, ScenarioError> {
    let form = "at least one [[vm]] with `vcpus`, `lock` and `hold`";
    let found = top.require("vm", form)?;
    let DeValue::Array(array) = found.value else {
        return Err(found.wrong(form));
    };
    if array.is_empty() {
        return Err(found.wrong(form));
    }
    array
        .iter()
        .map(|element| group(source, &found.inner(element)))
        .collect()
}

fn group(source: Source<'_>, found: &Found<'_, '_>) -> Result<Vm, ScenarioError> {
    let DeValue::Table(table) = found.value else {
        return Err(found.wrong("a table: [[vm]]"));
    };
    let vm = Section::open(source, "[[vm]]", found.span.clone(), table, VM_KEYS)?;
    let vcpus = vm.require("vcpus", format!("a whole number from 1 to {VCPUS_MAX}"))?;
    let vcpus = u32::try_from(vcpus.integer(1, u64::from(VCPUS_MAX))?).unwrap_or(VCPUS_MAX);
    Ok(Vm {
        count: vm.number("count", 1, VMS_MAX, 1)?,
        vcpus,
        lock: lock(&vm)?,
        locks: locks(&vm)?,
        user_work: distribution(source, &vm, "user_work")?.unwrap_or_else(nothing),
        kernel_work: distribution(source, &vm, "kernel_work")?.unwrap_or_else(nothing),
        hold: distribution(source, &vm, "hold")?
            .ok_or_else(|| vm.error("`hold` is missing", format!("expected {WORK_FORM}")))?,
        shootdown_every_iterations: between_vcpus(&vm, "shootdown_every_iterations", vcpus)?,
        wakeup_every_iterations: between_vcpus(&vm, "wakeup_every_iterations", vcpus)?,
        tick_hz: vm.number("tick_hz", 0, TICK_HZ_MAX, 250)?,
        pause_every_spins: vm.number("pause_every_spins", 1, PAUSE_EVERY_MAX, 1)?,
        pause_exits: vm.boolean("pause_exits", true)?,
        halt_exits: vm.boolean("halt_exits", true)?,
        log_records: log_records(&vm, vcpus)?,
        log_minimum_spins: vm.number("log_minimum_spins", 0, u32::MAX, 0)?,
        pv_page: vm.boolean("pv_page", false)?,
        pv_page_memory: pv_page_memory(&vm)?,
        help_after_spins: vm.number("help_after_spins", 0, u32::MAX, 0)?,
        tasks_per_vcpu: tasks(&vm, vcpus)?,
        workload: vm.word("workload", &Workload::WORDS, Workload::Iterations)?,
        reader_percent: vm.number("reader_percent", 0, 100, 0)?,
        ecs_ablation: vm.word("ecs_ablation", &EcsAblation::WORDS, EcsAblation::None)?,
    })
}

/// Tasks of each vCPU. A wake-up between vCPUs halts the whole vCPU until its token comes: other tasks of it might be what
/// the sender waits for.
fn tasks(vm: &Section<'_, '_>, vcpus: u32) -> Result<u32, ScenarioError> {
    let most = TASKS_PER_VCPU_MAX.min(TASKS_MAX / vcpus);
    let tasks = vm.number("tasks_per_vcpu", 1, TASKS_PER_VCPU_MAX, 1)?;
    match vm.find("tasks_per_vcpu") {
        Some(found) if tasks > most => Err(found.refuse(
            format!("{tasks} tasks on each of {vcpus} vCPUs are more than {TASKS_MAX}"),
            format!("at most {most}"),
        )),
        Some(found) if tasks > 1 && vm.number("wakeup_every_iterations", 0, u32::MAX, 0)? > 0 => {
            Err(found.refuse(
                "`wakeup_every_iterations` halts a vCPU, and it has other tasks",
                "1, or `wakeup_every_iterations = 0`",
            ))
        }
        _ => Ok(tasks),
    }
}

/// Pages of the host's are for pv pages, and there must be some.
fn pv_page_memory(vm: &Section<'_, '_>) -> Result<PvPageMemory, ScenarioError> {
    let pages = vm.word("pv_page_memory", &PvPageMemory::WORDS, PvPageMemory::Guest)?;
    match vm.find("pv_page_memory") {
        Some(found) if pages == PvPageMemory::Map && !vm.boolean("pv_page", false)? => Err(found
            .refuse(
                "`pv_page_memory` says where the pv page lies, and this guest has none",
                "\"guest\", or `pv_page = true`",
            )),
        _ => Ok(pages),
    }
}

fn nothing() -> Distribution {
    Distribution::constant(WorkUnit::Loops, 0)
}

fn lock(vm: &Section<'_, '_>) -> Result<LockKind, ScenarioError> {
    let words: Vec<_> = LockKind::all().map(|kind| (kind.name(), kind)).collect();
    let names: Vec<_> = words
        .iter()
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    vm.require("lock", format!("one of {}", names.join(", ")))?
        .word(&words)
}

/// `locks`: how many for all, or "private".
fn locks(vm: &Section<'_, '_>) -> Result<LockSharing, ScenarioError> {
    let expected = format!("a whole number from 1 to {LOCKS_MAX}, or \"private\"");
    match vm.find("locks") {
        None => Ok(LockSharing::Shared(1)),
        Some(found) if found.value.as_str() == Some("private") => Ok(LockSharing::Private),
        Some(found) => {
            let count = found
                .integer(1, u64::from(LOCKS_MAX))
                .map_err(|_| found.wrong(expected))?;
            Ok(LockSharing::Shared(
                u32::try_from(count).unwrap_or(LOCKS_MAX),
            ))
        }
    }
}

/// How often something crosses from one vCPU to others: it needs others.
fn between_vcpus(
    vm: &Section<'_, '_>,
    key: &'static str,
    vcpus: u32,
) -> Result<u32, ScenarioError> {
    let every = vm.number(key, 0, u32::MAX, 0)?;
    match vm.find(key) {
        Some(found) if every > 0 && vcpus == 1 => Err(found.refuse(
            format!("`{key}` needs another vCPU, and this VM has one"),
            "0 (never), or `vcpus` of at least 2",
        )),
        _ => Ok(every),
    }
}

/// The log of all vCPUs must fit into the guest's memory.
fn log_records(vm: &Section<'_, '_>, vcpus: u32) -> Result<u32, ScenarioError> {
    let room = UNSPIN_GUEST_LOG_BYTES / size_of::<unspin_guest_wait>() as u32 / vcpus;
    let records = vm.number("log_records", 0, u32::MAX, 0)?;
    match vm.find("log_records") {
        Some(found) if records > room => Err(found.refuse(
            format!(
                "the guest's log has no room for {records} records of each of {vcpus} vCPU{}",
                if vcpus == 1 { "" } else { "s" }
            ),
            format!("from 0 to {room} with so many vCPUs"),
        )),
        _ => Ok(records),
    }
}

/// `"300 loops"`, `{ exponential = "300 loops" }` or `{ uniform = ["100 loops", "500 loops"] }`.
fn distribution(
    source: Source<'_>,
    vm: &Section<'_, '_>,
    key: &'static str,
) -> Result<Option<Distribution>, ScenarioError> {
    let Some(found) = vm.find(key) else {
        return Ok(None);
    };
    let table = match found.value {
        DeValue::String(_) => {
            let (unit, value) = amount(&found)?;
            return Ok(Some(Distribution::constant(unit, value)));
        }
        DeValue::Table(table) => table,
        _ => return Err(found.wrong(WORK_FORM)),
    };
    let shape = Section::open(
        source,
        "a distribution",
        found.span.clone(),
        table,
        DISTRIBUTION_KEYS,
    )?;
    match (shape.find("exponential"), shape.find("uniform")) {
        (Some(mean), None) => exponential(&mean).map(Some),
        (None, Some(bounds)) => uniform(&bounds).map(Some),
        _ => Err(found.refuse(
            format!("`{key}` needs one shape"),
            format!("expected {WORK_FORM}"),
        )),
    }
}

fn exponential(found: &Found<'_, '_>) -> Result<Distribution, ScenarioError> {
    let (unit, mean) = amount(found)?;
    if mean == 0 {
        return Err(found.refuse(
            "an exponential distribution cannot have the mean 0",
            "a mean above 0, or the constant \"0 loops\"",
        ));
    }
    Ok(Distribution {
        unit,
        shape: Shape::Exponential { mean },
    })
}

fn uniform(found: &Found<'_, '_>) -> Result<Distribution, ScenarioError> {
    let expected = "two bounds, as in [\"100 loops\", \"500 loops\"]";
    let DeValue::Array(array) = found.value else {
        return Err(found.wrong(expected));
    };
    let mut bounds = array.iter();
    let (Some(low), Some(high), None) = (bounds.next(), bounds.next(), bounds.next()) else {
        return Err(found.refuse(
            format!("`uniform` has {} bounds", array.len()),
            format!("expected {expected}"),
        ));
    };
    let (low_unit, low) = amount(&found.inner(low))?;
    let high_found = found.inner(high);
    let (unit, high) = amount(&high_found)?;
    if unit != low_unit {
        return Err(high_found.refuse(
            "the bounds differ in their unit",
            "loops, or times, for both",
        ));
    }
    if low > high {
        return Err(high_found.refuse(
            format!(
                "the upper bound is below the lower one, {}",
                format_work(unit, low)
            ),
            "the lower bound first",
        ));
    }
    Ok(Distribution {
        unit,
        shape: Shape::Uniform { low, high },
    })
}

/// One amount of work, within its limit.
fn amount(found: &Found<'_, '_>) -> Result<(WorkUnit, u64), ScenarioError> {
    let (unit, value) = found.quantity(WORK_FORM, work)?;
    let most = match unit {
        WorkUnit::Loops => WORK_MAX_LOOPS,
        WorkUnit::Nanoseconds => WORK_MAX_NS,
    };
    if value > most {
        return Err(found.refuse(
            format!(
                "`{}` of {} is too long",
                found.key,
                format_work(unit, value)
            ),
            format!("at most {}", format_work(unit, most)),
        ));
    }
    Ok((unit, value))
}
