// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `unspin explain`.

use unspin_analysis::{
    explain::{
        attribution::{ExplainedWait, Explanation, VmExplanation},
        cause::{Cause, CauseTimes},
        words,
    },
    waits::spin_locations::Naming,
};
use unspin_report::{Document, Table, row};

use crate::commands::explain::Source;

/// Blame that is less than this share of a VM's spin time is not for people; percent.
const BLAME_PERCENT: f64 = 1.0;

row! {
    "vm", ["explain"];
    /// CPU time that a VM spent in spin loops, and for what.
    struct VmRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// CPU time of its vCPUs; ns.
        cpu_ns: u64 = ("CPU time", Nanoseconds),
        /// CPU time of its vCPUs in spin loops; ns.
        spin_ns: u64 = ("spin time", Nanoseconds),
        /// Share of spin time in CPU time; percent.
        spin_percent: Option<f64> = ("of CPU time %", Percent),
        /// Share of spin time for a preempted lock holder (LHP); percent.
        holder_preempted_percent: Option<f64> = ("LHP %", Percent),
        /// Share of spin time for a preempted next waiter (LWP); percent.
        next_waiter_preempted_percent: Option<f64> = ("LWP %", Percent),
        /// Share of spin time for a function call to a vCPU preempted in user mode; percent.
        call_user_percent: Option<f64> = ("call: user %", Percent),
        /// Share of spin time for a function call to a vCPU off its CPU in its kernel; percent.
        call_kernel_percent: Option<f64> = ("kernel %", Percent),
        /// Share of spin time for a function call to a halted vCPU; percent.
        call_halted_percent: Option<f64> = ("halted %", Percent),
        /// Share of spin time with nobody preempted; percent.
        contention_percent: Option<f64> = ("contention %", Percent),
        /// Share of spin time of which the host's events do not say for what; percent.
        unknown_percent: Option<f64> = ("unknown %", Percent),
        /// Waits of a pause-loop window or longer.
        waits: u64 = ("waits", Count),
    }
}

row! {
    "blame", ["explain"];
    /// For whom a VM's vCPUs spun, and who ran instead of it; the largest first, shares of 1 % and more.
    struct BlameRow {
        /// The VM that spun.
        vm: String = ("VM", Text),
        /// What it spun for.
        cause: &'static str = ("spun for", Text),
        /// The preempted vCPU; null where nobody was preempted.
        vcpu: Option<u16> = ("vCPU", Count),
        /// Who ran on the CPU that it had left.
        instead: Option<String> = ("who ran instead", Text),
        /// CPU time spun for it; ns.
        spin_ns: u64 = ("spin time", Nanoseconds),
        /// Its share of the VM's spin time; percent.
        spin_percent: Option<f64> = ("of spin time %", Percent),
    }
}

row! {
    "loop", ["explain"];
    /// One spin loop of a guest.
    struct LoopRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// The function, or the address, of the loop.
        location: Option<String> = ("spin loop", Text),
        /// What the loop waits for: a lock, a function call, or unknown.
        waits_for: &'static str = ("waits for", Text),
        /// Of a lock: `first come` where waiters enter in order, `none` where they do not.
        order: Option<&'static str> = ("order", Text),
        /// Waits in it.
        waits: u64 = ("waits", Count),
        /// Pause-loop exits from it.
        exits: u64 = ("PLE exits", Count),
        /// The pause-loop window there, CPU time between two exits; ns.
        window_ns: Option<u64> = ("window", Nanoseconds),
        /// Mean time for which the lock is held, of locks in order; ns.
        hold_ns: Option<f64> = ("held, mean", Nanoseconds),
        /// CPU time in the loop; ns.
        spin_ns: u64 = ("spin time", Nanoseconds),
        /// Its share of the VM's spin time; percent.
        spin_percent: Option<f64> = ("of spin time %", Percent),
    }
}

row! {
    "wait", ["explain"];
    /// One of a VM's longest waits.
    struct WaitRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// The vCPU that waited.
        vcpu: u16 = ("vCPU", Count),
        /// When it began, from the recording's first event; ns.
        begin_ns: u64 = ("at", Nanoseconds),
        /// How long it lasted; ns.
        lasted_ns: u64 = ("lasted", Nanoseconds),
        /// CPU time that it spun; ns.
        spin_ns: u64 = ("spin time", Nanoseconds),
        /// The function, or the address, of the spin loop.
        location: Option<String> = ("spin loop", Text),
        /// What it spun for.
        cause: &'static str = ("for", Text),
        /// The vCPU whose absence is the cause.
        blamed_vcpu: Option<u16> = ("vCPU", Count),
        /// How that vCPU had left its CPU.
        left: Option<&'static str> = ("which had been", Text),
        /// For how long it was off its CPU; ns.
        off_cpu_ns: Option<u64> = ("off its CPU for", Nanoseconds),
        /// Who ran on the CPU that it had left.
        instead: Option<String> = ("who ran instead", Text),
    }
}

/// Adds the sums, whom they can be blamed on, the spin loops, and the longest waits.
pub fn add(document: &mut Document, source: &Source, explanation: &Explanation, naming: &Naming) {
    let end_ns = explanation.span_ns.map_or(0, |(_, end_ns)| end_ns);
    let mut vms = Vec::new();
    for (&vm, of) in &explanation.vms {
        vms.push(vm_row(source, vm, of));
        document.note(words::sentence(&source.facts, vm, of, end_ns));
    }
    document.table(Table::of("CPU time in spin loops, and for what", vms));
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
fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn vm_row(source: &Source, vm: u32, of: &VmExplanation) -> VmRow {
    let spin_ns = of.spin_time.total();
    let share = |cause| percent(of.spin_time.of(cause), spin_ns);
    VmRow {
        vm: words::vm_name(&source.facts, vm),
        cpu_ns: of.cpu_ns,
        spin_ns,
        spin_percent: percent(spin_ns, of.cpu_ns),
        holder_preempted_percent: share(Cause::HolderPreempted),
        next_waiter_preempted_percent: share(Cause::NextWaiterPreempted),
        call_user_percent: share(Cause::CallUser),
        call_kernel_percent: share(Cause::CallKernel),
        call_halted_percent: share(Cause::CallHalted),
        contention_percent: share(Cause::Contention),
        unknown_percent: share(Cause::Unknown),
        waits: of.waits,
    }
}

fn blame(source: &Source, explanation: &Explanation, end_ns: u64) -> Table {
    let title = "For whom, and who ran on the CPU that it had left (shares of 1 % and more)";
    let mut rows = Vec::new();
    for (&vm, of) in &explanation.vms {
        let spin_ns = of.spin_time.total();
        let mut blames: Vec<_> = of.blame.iter().collect();
        blames.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
        let large = |ns: u64| 100.0 * ns as f64 >= BLAME_PERCENT * spin_ns as f64;
        for (blame, &ns) in blames.into_iter().filter(|(_, ns)| large(**ns)) {
            let instead = blame
                .instead
                .map(|who| words::occupant(&source.facts, vm, who, end_ns));
            rows.push(BlameRow {
                vm: words::vm_name(&source.facts, vm),
                cause: words::cause(blame.cause),
                vcpu: blame.vcpu.filter(|_| blame.cause.is_preemption()),
                instead,
                spin_ns: ns,
                spin_percent: percent(ns, spin_ns),
            });
        }
    }
    Table::of(title, rows)
}

fn place(naming: &Naming, location: Option<u64>) -> Option<String> {
    let location = location?;
    let named = naming.of(location).map(|(_, name)| name.to_owned());
    Some(named.unwrap_or_else(|| format!("{location:#x}")))
}

fn loops(source: &Source, explanation: &Explanation, naming: &Naming) -> Table {
    let mut rows = Vec::new();
    for (&vm, of) in &explanation.vms {
        for (location, sum) in &of.loops {
            let known = &sum.spin_loop;
            let lock = known.kind == unspin_analysis::waits::spin_locations::Kind::Lock;
            let order = known.in_order.filter(|_| lock);
            let order = order.map(|in_order| if in_order { "first come" } else { "none" });
            let held =
                (order == Some("first come") && known.hold_ns > 0.0).then_some(known.hold_ns);
            rows.push(LoopRow {
                vm: words::vm_name(&source.facts, vm),
                location: place(naming, *location),
                waits_for: known.kind.name(),
                order,
                waits: known.waits,
                exits: known.exits,
                window_ns: (known.window_ns > 0).then_some(known.window_ns),
                hold_ns: held,
                spin_ns: sum.spin_time.total(),
                spin_percent: percent(sum.spin_time.total(), of.spin_time.total()),
            });
        }
    }
    Table::of("Spin loops of the guests", rows)
}

fn waits(source: &Source, explanation: &Explanation, naming: &Naming) -> Table {
    let mut rows = Vec::new();
    let first_ns = explanation.span_ns.map_or(0, |(first_ns, _)| first_ns);
    for (&vm, of) in &explanation.vms {
        for explained in &of.longest {
            rows.push(wait_row(source, naming, vm, explained, first_ns));
        }
    }
    Table::of("The longest waits", rows)
}

fn wait_row(
    source: &Source,
    naming: &Naming,
    vm: u32,
    explained: &ExplainedWait,
    first_ns: u64,
) -> WaitRow {
    let wait = &explained.wait;
    let absence = explained.blamed.and_then(|(_, absence)| absence);
    let off_cpu_ns = absence.and_then(|absence| Some(absence.until_ns? - absence.since_ns));
    let instead = explained
        .instead
        .map(|who| words::occupant(&source.facts, vm, who, wait.end_ns));
    WaitRow {
        vm: words::vm_name(&source.facts, vm),
        vcpu: wait.vcpu,
        begin_ns: wait.begin_ns.saturating_sub(first_ns),
        lasted_ns: wait.end_ns.saturating_sub(wait.begin_ns),
        spin_ns: CauseTimes::total(&explained.spin_time),
        location: place(naming, wait.location),
        cause: words::cause(explained.cause),
        blamed_vcpu: explained.blamed.map(|(vcpu, _)| vcpu),
        left: absence.map(|absence| words::left(&absence.left)),
        off_cpu_ns,
        instead,
    }
}
