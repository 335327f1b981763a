// SPDX-License-Identifier: MIT OR Apache-2.0
//! An explanation as rows: sums, whom they can be blamed on, spin loops, the longest waits.

use unspin_report::row;

use crate::{
    Source,
    explain::{
        attribution::{ExplainedWait, Explanation, VmExplanation},
        cause::{Cause, CauseTimes},
        words,
    },
    waits::spin_locations::{Kind, Naming},
};

/// Blame that is less than this share of a VM's spin time is not for people; percent.
const BLAME_PERCENT: f64 = 1.0;

row! {
    "vm", ["explain"];
    /// CPU time that a VM spent in spin loops, and for what.
    pub struct VmRow {
        /// The VM.
        pub vm: String = ("VM", Text),
        /// CPU time of its vCPUs; ns.
        pub cpu_ns: u64 = ("CPU time", Nanoseconds),
        /// CPU time of its vCPUs in spin loops; ns.
        pub spin_ns: u64 = ("spin time", Nanoseconds),
        /// Share of spin time in CPU time; percent.
        pub spin_percent: Option<f64> = ("of CPU time %", Percent),
        /// Share of spin time for a preempted lock holder (LHP); percent.
        pub holder_preempted_percent: Option<f64> = ("LHP %", Percent),
        /// Share of spin time for a preempted next waiter (LWP); percent.
        pub next_waiter_preempted_percent: Option<f64> = ("LWP %", Percent),
        /// Share of spin time for a function call to a vCPU preempted in user mode; percent.
        pub call_user_percent: Option<f64> = ("call: user %", Percent),
        /// Share of spin time for a function call to a vCPU off its CPU in its kernel; percent.
        pub call_kernel_percent: Option<f64> = ("kernel %", Percent),
        /// Share of spin time for a function call to a halted vCPU; percent.
        pub call_halted_percent: Option<f64> = ("halted %", Percent),
        /// Share of spin time with nobody preempted; percent.
        pub contention_percent: Option<f64> = ("contention %", Percent),
        /// Share of spin time of which the host's events do not say for what; percent.
        pub unknown_percent: Option<f64> = ("unknown %", Percent),
        /// Waits of a pause-loop window or longer.
        pub waits: u64 = ("waits", Count),
    }
}

row! {
    "blame", ["explain"];
    /// For whom a VM's vCPUs spun, and who ran instead of it; the largest first, shares of 1 % and more.
    pub struct BlameRow {
        /// The VM that spun.
        pub vm: String = ("VM", Text),
        /// What it spun for.
        pub cause: &'static str = ("spun for", Text),
        /// The preempted vCPU; null where nobody was preempted.
        pub vcpu: Option<u16> = ("vCPU", Count),
        /// Who ran on the CPU that it had left.
        pub instead: Option<String> = ("who ran instead", Text),
        /// CPU time spun for it; ns.
        pub spin_ns: u64 = ("spin time", Nanoseconds),
        /// Its share of the VM's spin time; percent.
        pub spin_percent: Option<f64> = ("of spin time %", Percent),
    }
}

row! {
    "loop", ["explain"];
    /// One spin loop of a guest.
    pub struct LoopRow {
        /// The VM.
        pub vm: String = ("VM", Text),
        /// The function, or the address, of the loop.
        pub location: Option<String> = ("spin loop", Text),
        /// What the loop waits for: a lock, a function call, or unknown.
        pub waits_for: &'static str = ("waits for", Text),
        /// Of a lock: `first come` where waiters enter in order, `none` where they do not.
        pub order: Option<&'static str> = ("order", Text),
        /// Waits in it.
        pub waits: u64 = ("waits", Count),
        /// Pause-loop exits from it.
        pub exits: u64 = ("PLE exits", Count),
        /// The pause-loop window there, CPU time between two exits; ns.
        pub window_ns: Option<u64> = ("window", Nanoseconds),
        /// Mean time for which the lock is held, of locks in order; ns.
        pub hold_ns: Option<f64> = ("held, mean", Nanoseconds),
        /// CPU time in the loop; ns.
        pub spin_ns: u64 = ("spin time", Nanoseconds),
        /// Its share of the VM's spin time; percent.
        pub spin_percent: Option<f64> = ("of spin time %", Percent),
    }
}

row! {
    "wait", ["explain"];
    /// One of a VM's longest waits.
    pub struct WaitRow {
        /// The VM.
        pub vm: String = ("VM", Text),
        /// The vCPU that waited.
        pub vcpu: u16 = ("vCPU", Count),
        /// When it began, from the recording's first event; ns.
        pub begin_ns: u64 = ("at", Nanoseconds),
        /// How long it lasted; ns.
        pub lasted_ns: u64 = ("lasted", Nanoseconds),
        /// CPU time that it spun; ns.
        pub spin_ns: u64 = ("spin time", Nanoseconds),
        /// The function, or the address, of the spin loop.
        pub location: Option<String> = ("spin loop", Text),
        /// What it spun for.
        pub cause: &'static str = ("for", Text),
        /// The vCPU whose absence is the cause.
        pub blamed_vcpu: Option<u16> = ("vCPU", Count),
        /// How that vCPU had left its CPU.
        pub left: Option<&'static str> = ("which had been", Text),
        /// For how long it was off its CPU; ns.
        pub off_cpu_ns: Option<u64> = ("off its CPU for", Nanoseconds),
        /// Who ran on the CPU that it had left.
        pub instead: Option<String> = ("who ran instead", Text),
    }
}

/// Part of the whole in percent; unknown when there is nothing.
fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

/// Every VM's sums.
pub fn vms(source: &Source, explanation: &Explanation) -> impl Iterator<Item = VmRow> {
    let vms = explanation.vms.iter();
    vms.map(|(&vm, of)| vm_row(source, vm, of))
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

/// Whom each VM's spin time can be blamed on, the largest shares first; what is below 1 % is left out.
pub fn blame(source: &Source, explanation: &Explanation) -> Vec<BlameRow> {
    let end_ns = explanation.span_ns.map_or(0, |(_, end_ns)| end_ns);
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
    rows
}

fn place(naming: &Naming, location: Option<u64>) -> Option<String> {
    let location = location?;
    let named = naming.of(location).map(|(_, name)| name.to_owned());
    Some(named.unwrap_or_else(|| format!("{location:#x}")))
}

/// The spin loops of each VM.
pub fn loops(source: &Source, explanation: &Explanation, naming: &Naming) -> Vec<LoopRow> {
    let mut rows = Vec::new();
    for (&vm, of) in &explanation.vms {
        for (location, sum) in &of.loops {
            let known = &sum.spin_loop;
            let lock = known.kind == Kind::Lock;
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
    rows
}

/// The longest waits of each VM.
pub fn waits(source: &Source, explanation: &Explanation, naming: &Naming) -> Vec<WaitRow> {
    let mut rows = Vec::new();
    let first_ns = explanation.span_ns.map_or(0, |(first_ns, _)| first_ns);
    for (&vm, of) in &explanation.vms {
        for explained in &of.longest {
            rows.push(wait_row(source, naming, vm, explained, first_ns));
        }
    }
    rows
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
