// SPDX-License-Identifier: MIT OR Apache-2.0
//! `[lab]`: the host that the lab simulates.

use std::{collections::BTreeMap, fmt::Write};

use toml::de::{DeArray, DeTable, DeValue};

use crate::{
    error::ScenarioError,
    lab::{LabEcs, LabGroups, LabSettings, LabTopology, LabVendor},
    limits::{
        COST_MAX, CPU_HOGS_MAX, CPUS_MAX, FACTS_AGE_MAX_NS, GUEST_TASKS_MAX, HALT_POLL_MAX_NS,
        PPM_MAX, WEIGHT_MAX, WORD_MAX,
    },
    quantity::{duration, format_duration},
    section::{Found, Section, Source},
};

/// Keys of `[lab]`.
pub(crate) const LAB_KEYS: &[&str] = &[
    "scheduler",
    "policy",
    "topology",
    "vendor",
    "window_control",
    "spin_count",
    "candidates",
    "ignore_reschedules",
    "ecs",
    "facts_age",
    "lost_ppm",
    "tick_only",
    "poll_period",
    "halt_poll",
    "guest_tasks",
    "page_fault_every_iterations",
    "page_fetch",
    "async_page_faults",
    "pv_tlb_flush",
    "pv_sched_yield",
    "pv_send_ipi",
    "cpu_hogs",
    "groups",
    "weights",
    "pins",
    "costs",
];
/// Words for `lab.vendor`.
const VENDORS: &[(&str, LabVendor)] = &[("amd", LabVendor::Amd), ("intel", LabVendor::Intel)];
/// Words for `lab.groups`.
const GROUPS: &[(&str, LabGroups)] = &[("vm", LabGroups::Vm), ("vcpu", LabGroups::Vcpu)];

/// `[lab]`, if it is there. `groups`: how many `[[vm]]` there are.
pub(crate) fn lab(
    source: Source<'_>,
    top: &Section<'_, '_>,
    groups: usize,
) -> Result<Option<LabSettings>, ScenarioError> {
    let Some(found) = top.find("lab") else {
        return Ok(None);
    };
    let DeValue::Table(table) = found.value else {
        return Err(found.wrong("a table: [lab]"));
    };
    let lab = Section::open(source, "[lab]", found.span.clone(), table, LAB_KEYS)?;
    Ok(Some(LabSettings {
        scheduler: name(&lab, "scheduler")?,
        policy: name(&lab, "policy")?,
        topology: topology(&lab)?,
        vendor: lab.word("vendor", VENDORS, LabVendor::default())?,
        window_control: name(&lab, "window_control")?,
        spin_count: name(&lab, "spin_count")?,
        candidates: name(&lab, "candidates")?,
        ignore_reschedules: lab.boolean("ignore_reschedules", false)?,
        ecs: lab.word("ecs", &LabEcs::WORDS, LabEcs::default())?,
        facts_age_ns: time(&lab, "facts_age", 0, FACTS_AGE_MAX_NS)?.unwrap_or(0),
        lost_ppm: lab.number("lost_ppm", 0, PPM_MAX, 0)?,
        tick_only: lab.boolean("tick_only", false)?,
        poll_period_ns: time(&lab, "poll_period", 1, FACTS_AGE_MAX_NS)?,
        halt_poll_ns: time(&lab, "halt_poll", 0, HALT_POLL_MAX_NS)?.unwrap_or(0),
        guest_tasks: lab.number("guest_tasks", 1, GUEST_TASKS_MAX, 1)?,
        page_fault_every_iterations: lab.number("page_fault_every_iterations", 0, u32::MAX, 0)?,
        page_fetch_ns: time(&lab, "page_fetch", 1, FACTS_AGE_MAX_NS)?,
        async_page_faults: lab.boolean("async_page_faults", true)?,
        pv_tlb_flush: lab.boolean("pv_tlb_flush", false)?,
        pv_sched_yield: lab.boolean("pv_sched_yield", false)?,
        pv_send_ipi: lab.boolean("pv_send_ipi", false)?,
        cpu_hogs: lab.number("cpu_hogs", 0, CPU_HOGS_MAX, 0)?,
        groups: lab.word("groups", GROUPS, LabGroups::default())?,
        weights: each_group(&lab, "weights", groups, |found| {
            let weight = found.integer(1, u64::from(WEIGHT_MAX))?;
            Ok(u32::try_from(weight).unwrap_or(WEIGHT_MAX))
        })?,
        pins: each_group(&lab, "pins", groups, pins)?,
        costs: costs(source, &lab)?,
    }))
}

/// A name of the lab's: which there are, the lab says.
fn name(lab: &Section<'_, '_>, key: &'static str) -> Result<Option<String>, ScenarioError> {
    let Some(found) = lab.find(key) else {
        return Ok(None);
    };
    let allowed = format!("1 to {WORD_MAX} of the characters A-Z a-z 0-9 . _ - + = , /");
    let text = found.text(&allowed)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-+=,/".contains(c);
    if text.is_empty() || text.len() > WORD_MAX || !text.chars().all(fits) {
        return Err(found.wrong(allowed));
    }
    Ok(Some(text.to_owned()))
}

/// "SOCKETSxCACHESxCORESxTHREADS".
fn topology(lab: &Section<'_, '_>) -> Result<Option<LabTopology>, ScenarioError> {
    let Some(found) = lab.find("topology") else {
        return Ok(None);
    };
    let allowed = format!(
        "sockets x caches of each x cores of each x threads of each, as in \"2x4x8x2\", of at most {CPUS_MAX} pCPUs"
    );
    let text = found.text(&allowed)?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse::<u32>().ok()).flatten();
        number.filter(|number| (1..=CPUS_MAX).contains(number))
    };
    let counts: Option<Vec<u32>> = text.split('x').map(number).collect();
    let counts = counts.and_then(|counts| <[u32; 4]>::try_from(counts).ok());
    let product = |counts: [u32; 4]| {
        counts
            .iter()
            .map(|count| u64::from(*count))
            .product::<u64>()
    };
    match counts {
        Some(counts) if product(counts) <= u64::from(CPUS_MAX) => {
            let [sockets, caches, cores, threads] = counts;
            Ok(Some(LabTopology {
                sockets,
                caches,
                cores,
                threads,
            }))
        }
        _ => Err(found.wrong(allowed)),
    }
}

/// A time between these, if it is there.
fn time(
    lab: &Section<'_, '_>,
    key: &'static str,
    least_ns: u32,
    most_ns: u32,
) -> Result<Option<u32>, ScenarioError> {
    let Some(found) = lab.find(key) else {
        return Ok(None);
    };
    let ns = found.quantity("a time such as \"50us\"", duration)?;
    let fits = u32::try_from(ns)
        .ok()
        .filter(|ns| (least_ns..=most_ns).contains(ns));
    fits.map(Some).ok_or_else(|| {
        let [least, most] = [least_ns, most_ns].map(|ns| format_duration(ns.into()));
        found.refuse(
            format!("`{key}` cannot be {}", format_duration(ns)),
            format!("from {least} to {most}"),
        )
    })
}

/// An array with one value for each `[[vm]]`; empty when absent.
fn each_group<T>(
    lab: &Section<'_, '_>,
    key: &'static str,
    groups: usize,
    read: impl Fn(&Found<'_, '_>) -> Result<T, ScenarioError>,
) -> Result<Vec<T>, ScenarioError> {
    let Some(found) = lab.find(key) else {
        return Ok(Vec::new());
    };
    let expected = format!("an array with one value for each [[vm]], {groups} in all");
    let DeValue::Array(array) = found.value else {
        return Err(found.wrong(expected));
    };
    let array: &DeArray<'_> = array;
    if array.len() != groups {
        return Err(found.refuse(
            format!("`{key}` has {} values", array.len()),
            format!("expected {expected}"),
        ));
    }
    array
        .iter()
        .map(|element| read(&found.inner(element)))
        .collect()
}

/// "0-3,6": ascending.
fn pins(found: &Found<'_, '_>) -> Result<Vec<u32>, ScenarioError> {
    let expected = format!("pCPUs below {CPUS_MAX}, ascending, as in \"0-3,6\"");
    let text = found.text(&expected)?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse::<u32>().ok()).flatten();
        number.filter(|number| *number < CPUS_MAX)
    };
    let mut cpus: Vec<u32> = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        match (number(low), number(high)) {
            (Some(low), Some(high))
                if low <= high && cpus.last().is_none_or(|last| *last < low) =>
            {
                cpus.extend(low..=high);
            }
            _ => return Err(found.wrong(expected)),
        }
    }
    Ok(cpus)
}

/// pCPUs as `pins` reads them.
pub(crate) fn print_pins(cpus: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = cpus;
    while let Some(first) = rest.first() {
        let run = rest
            .iter()
            .zip(*first..)
            .take_while(|(cpu, next)| **cpu == *next)
            .count();
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = match run {
            1 => write!(text, "{comma}{first}"),
            _ => write!(text, "{comma}{first}-{}", rest[run - 1]),
        };
        rest = &rest[run..];
    }
    text
}

/// `costs = { switch_ns = 1200 }`: names as they come, in order of the alphabet.
fn costs(
    source: Source<'_>,
    lab: &Section<'_, '_>,
) -> Result<BTreeMap<String, u32>, ScenarioError> {
    let Some(found) = lab.find("costs") else {
        return Ok(BTreeMap::new());
    };
    let DeValue::Table(table) = found.value else {
        return Err(found.wrong("a table, as in { switch_ns = 1200 }"));
    };
    let table: &DeTable<'_> = table;
    let mut costs = BTreeMap::new();
    for (key, value) in table.iter() {
        let name = key.get_ref().as_ref();
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if name.is_empty() || name.len() > WORD_MAX || !name.chars().all(fits) {
            let message = format!("there is no cost `{}`", name.escape_debug());
            return Err(source.error(key.span(), message, "names such as `switch_ns`"));
        }
        let cost = found.inner(value).integer(0, u64::from(COST_MAX));
        let expected = format!("a whole number from 0 to {COST_MAX}");
        let cost = cost.map_err(|_| {
            let message = format!("the cost `{name}` is not {expected}");
            source.error(value.span(), message, format!("expected {expected}"))
        })?;
        costs.insert(name.to_owned(), u32::try_from(cost).unwrap_or(COST_MAX));
    }
    Ok(costs)
}
