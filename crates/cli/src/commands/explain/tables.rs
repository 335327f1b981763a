// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `unspin explain`.

use unspin_analysis::{
    explain::{
        attribution::{ExplainedWait, Explanation, VmExplanation},
        cause::{Cause, CauseTimes},
    },
    waits::spin_locations::Naming,
};
use unspin_report::{Cell, Column, Document, Table, Unit};

use crate::commands::explain::{run::Source, sentence as words};

/// Blame that is less than this share of a VM's spin time is not for people; percent.
const BLAME_PERCENT: f64 = 1.0;

const VMS: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("cpu_ns", "CPU time", Unit::Nanoseconds),
    Column::new("spin_ns", "spin time", Unit::Nanoseconds),
    Column::new("spin_percent", "of CPU time %", Unit::Percent),
    Column::new("holder_preempted_percent", "LHP %", Unit::Percent),
    Column::new("next_waiter_preempted_percent", "LWP %", Unit::Percent),
    Column::new("call_user_percent", "call: user %", Unit::Percent),
    Column::new("call_kernel_percent", "kernel %", Unit::Percent),
    Column::new("call_halted_percent", "halted %", Unit::Percent),
    Column::new("contention_percent", "contention %", Unit::Percent),
    Column::new("unknown_percent", "unknown %", Unit::Percent),
    Column::new("waits", "waits", Unit::Count),
];

const BLAME: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("cause", "spun for", Unit::Text),
    Column::new("vcpu", "vCPU", Unit::Count),
    Column::new("instead", "who ran instead", Unit::Text),
    Column::new("spin_ns", "spin time", Unit::Nanoseconds),
    Column::new("spin_percent", "of spin time %", Unit::Percent),
];

const LOOPS: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("location", "spin loop", Unit::Text),
    Column::new("waits_for", "waits for", Unit::Text),
    Column::new("order", "order", Unit::Text),
    Column::new("waits", "waits", Unit::Count),
    Column::new("exits", "PLE exits", Unit::Count),
    Column::new("window_ns", "window", Unit::Nanoseconds),
    Column::new("hold_ns", "held, mean", Unit::Nanoseconds),
    Column::new("spin_ns", "spin time", Unit::Nanoseconds),
    Column::new("spin_percent", "of spin time %", Unit::Percent),
];

const WAITS: &[Column] = &[
    Column::new("vm", "VM", Unit::Text),
    Column::new("vcpu", "vCPU", Unit::Count),
    Column::new("begin_ns", "at", Unit::Nanoseconds),
    Column::new("lasted_ns", "lasted", Unit::Nanoseconds),
    Column::new("spin_ns", "spin time", Unit::Nanoseconds),
    Column::new("location", "spin loop", Unit::Text),
    Column::new("cause", "for", Unit::Text),
    Column::new("blamed_vcpu", "vCPU", Unit::Count),
    Column::new("left", "which had been", Unit::Text),
    Column::new("off_cpu_ns", "off its CPU for", Unit::Nanoseconds),
    Column::new("instead", "who ran instead", Unit::Text),
];

/// Adds the sums, whom they can be blamed on, the spin loops, and the longest waits.
pub fn add(document: &mut Document, source: &Source, explanation: &Explanation, naming: &Naming) {
    let end_ns = explanation.span_ns.map_or(0, |(_, end_ns)| end_ns);
    let mut vms = Table::new("vm", "CPU time in spin loops, and for what", VMS);
    for (&vm, of) in &explanation.vms {
        vms.push(vm_row(source, vm, of));
        document.note(words::sentence(&source.facts, vm, of, end_ns));
    }
    document.table(vms);
    document.table(blame(source, explanation, end_ns));
    document.table(loops(source, explanation, naming));
    let waits = waits(source, explanation, naming);
    if !waits.is_empty() {
        document.table(waits);
    }
    notes(document, source, explanation);
}

fn notes(document: &mut Document, source: &Source, explanation: &Explanation) {
    document.note(
        "\nA wait is seen when a pause-loop window fits into it; shorter ones are not in these figures. `unknown`: the host's \
         events do not say.",
    );
    if let Some(blind) = &source.facts.ipi.blind {
        document.note(format!(
            "Inter-processor interrupts are not seen ({blind}): without symbols, locks and function calls cannot be told apart."
        ));
    }
    if explanation.losses > 0 {
        document.note(format!(
            "Events were lost {} times; spin time just before is unknown.",
            explanation.losses
        ));
    }
    for problem in &source.problems {
        document.note(problem.clone());
    }
}

/// Part of the whole in percent; unknown when there is nothing.
fn percent(part: u64, whole: u64) -> Cell {
    (whole > 0)
        .then(|| 100.0 * part as f64 / whole as f64)
        .into()
}

fn vm_row(source: &Source, vm: u32, of: &VmExplanation) -> Vec<Cell> {
    let spin_ns = of.spin_time.total();
    let mut row = vec![
        words::vm_name(&source.facts, vm).as_str().into(),
        of.cpu_ns.into(),
        spin_ns.into(),
        percent(spin_ns, of.cpu_ns),
    ];
    row.extend(Cause::ALL.map(|cause| percent(of.spin_time.of(cause), spin_ns)));
    row.push(of.waits.into());
    row
}

fn blame(source: &Source, explanation: &Explanation, end_ns: u64) -> Table {
    let title = "For whom, and who ran on the CPU that it had left (shares of 1 % and more)";
    let mut table = Table::new("blame", title, BLAME);
    for (&vm, of) in &explanation.vms {
        let spin_ns = of.spin_time.total();
        let mut blames: Vec<_> = of.blame.iter().collect();
        blames.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
        let large = |ns: u64| 100.0 * ns as f64 >= BLAME_PERCENT * spin_ns as f64;
        for (blame, &ns) in blames.into_iter().filter(|(_, ns)| large(**ns)) {
            let instead = blame
                .instead
                .map(|who| words::occupant(&source.facts, vm, who, end_ns));
            table.push(vec![
                words::vm_name(&source.facts, vm).as_str().into(),
                words::cause(blame.cause).into(),
                blame
                    .vcpu
                    .filter(|_| blame.cause.is_preemption())
                    .map(u64::from)
                    .into(),
                instead.as_deref().into(),
                ns.into(),
                percent(ns, spin_ns),
            ]);
        }
    }
    table
}

fn place(naming: &Naming, location: Option<u64>) -> Option<String> {
    let location = location?;
    let named = naming.of(location).map(|(_, name)| name.to_owned());
    Some(named.unwrap_or_else(|| format!("{location:#x}")))
}

fn loops(source: &Source, explanation: &Explanation, naming: &Naming) -> Table {
    let mut table = Table::new("loop", "Spin loops of the guests", LOOPS);
    for (&vm, of) in &explanation.vms {
        for (location, sum) in &of.loops {
            let known = &sum.spin_loop;
            let lock = known.kind == unspin_analysis::waits::spin_locations::Kind::Lock;
            let order = known.in_order.filter(|_| lock);
            let order = order.map(|in_order| if in_order { "first come" } else { "none" });
            let held =
                (order == Some("first come") && known.hold_ns > 0.0).then_some(known.hold_ns);
            table.push(vec![
                words::vm_name(&source.facts, vm).as_str().into(),
                place(naming, *location).as_deref().into(),
                known.kind.name().into(),
                order.into(),
                known.waits.into(),
                known.exits.into(),
                (known.window_ns > 0).then_some(known.window_ns).into(),
                held.into(),
                sum.spin_time.total().into(),
                percent(sum.spin_time.total(), of.spin_time.total()),
            ]);
        }
    }
    table
}

fn waits(source: &Source, explanation: &Explanation, naming: &Naming) -> Table {
    let mut table = Table::new("wait", "The longest waits", WAITS);
    let first_ns = explanation.span_ns.map_or(0, |(first_ns, _)| first_ns);
    for (&vm, of) in &explanation.vms {
        for explained in &of.longest {
            table.push(wait_row(source, naming, vm, explained, first_ns));
        }
    }
    table
}

fn wait_row(
    source: &Source,
    naming: &Naming,
    vm: u32,
    explained: &ExplainedWait,
    first_ns: u64,
) -> Vec<Cell> {
    let wait = &explained.wait;
    let absence = explained.blamed.and_then(|(_, absence)| absence);
    let off_cpu_ns = absence.and_then(|absence| Some(absence.until_ns? - absence.since_ns));
    let instead = explained
        .instead
        .map(|who| words::occupant(&source.facts, vm, who, wait.end_ns));
    vec![
        words::vm_name(&source.facts, vm).as_str().into(),
        u64::from(wait.vcpu).into(),
        wait.begin_ns.saturating_sub(first_ns).into(),
        wait.end_ns.saturating_sub(wait.begin_ns).into(),
        CauseTimes::total(&explained.spin_time).into(),
        place(naming, wait.location).as_deref().into(),
        words::cause(explained.cause).into(),
        explained.blamed.map(|(vcpu, _)| u64::from(vcpu)).into(),
        absence.map(|absence| words::left(&absence.left)).into(),
        off_cpu_ns.into(),
        instead.as_deref().into(),
    ]
}
