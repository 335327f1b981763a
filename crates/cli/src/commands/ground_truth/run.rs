// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin ground-truth`: what `explain` says of a recording against what the guests logged themselves. A command of its own, so
//! that `explain` can never see the answer.

use std::{fs::File, io::BufReader, path::Path};

use anyhow::{Context, bail};
use unspin_analysis::{
    explain::{
        attribution::{EVENTS_MAX, Explainer, Explanation, Options},
        cause::{Cause, CauseTimes},
        evaluation::Evaluation,
        ground_truth::{self, Order},
        words,
    },
    waits::{presence, spin_locations::Naming},
};
use unspin_events::{
    Event, TscClock, What,
    guest_log::{GuestLog, GuestLogVm},
};
use unspin_report::{Document, Table, row};

use crate::{
    commands::{
        explain::{Source, run::machine},
        ground_truth::args::GroundTruthArguments,
    },
    terminal::{failure::Failure, output},
};

row! {
    "evaluation", ["ground-truth"];
    /// How often `explain` names the cause of a wait that the guest's own log shows, of one VM or of `all`.
    struct EvaluationRow {
        /// The VM, or `all`.
        vm: String = ("VM", Text),
        /// Its lock, as in a scenario; `-` for all.
        lock: String = ("lock", Text),
        /// Waits that spun for `minimum_ns` or more.
        waits: u64 = ("waits that matter", Count),
        /// Of these, waits for which a cause was named.
        attributed: u64 = ("attributed", Count),
        /// Of these, waits whose named cause is the true one.
        right: u64 = ("right", Count),
        /// `right` / `attributed`, 0 to 1.
        precision: Option<f64> = ("precision", Ratio),
        /// `attributed` / `waits`, 0 to 1.
        coverage: Option<f64> = ("coverage", Ratio),
        /// The precision of always naming the most frequent true cause, 0 to 1.
        always_majority: Option<f64> = ("always the majority", Ratio),
        /// CPU time spun, by the guest's log; ns.
        true_spin_ns: u64 = ("spin time, true", Nanoseconds),
        /// CPU time spun, as explained; ns.
        explained_spin_ns: u64 = ("as explained", Nanoseconds),
        /// How far `explained_spin_ns` is above (below: negative) `true_spin_ns`; percent.
        spin_error_percent: Option<f64> = ("error %", Percent),
        /// Spin time from which on a wait counts, two pause-loop windows; ns.
        minimum_ns: Option<u64> = ("matters from", Nanoseconds),
    }
}

row! {
    "confusion", ["ground-truth"];
    /// Waits of one true cause, by the cause that `explain` names.
    struct ConfusionRow {
        /// The VM, or `all`.
        vm: String = ("VM", Text),
        /// The cause by the guest's log.
        true_cause: String = ("true cause", Text),
        /// Waits of this cause.
        waits: u64 = ("waits", Count),
        /// Their share of all waits; percent.
        waits_percent: Option<f64> = ("%", Percent),
        /// Waits explained by a preempted lock holder (LHP).
        holder_preempted: u64 = ("said: LHP", Count),
        /// Waits explained by a preempted next waiter (LWP).
        next_waiter_preempted: u64 = ("LWP", Count),
        /// Waits explained by a function call to a vCPU preempted in user mode.
        call_user: u64 = ("call: user", Count),
        /// Waits explained by a function call to a vCPU off its CPU in its kernel.
        call_kernel: u64 = ("kernel", Count),
        /// Waits explained by a function call to a halted vCPU.
        call_halted: u64 = ("halted", Count),
        /// Waits explained by contention alone: nobody was preempted.
        contention: u64 = ("contention", Count),
        /// Waits for which no cause was named.
        unknown: u64 = ("unknown", Count),
    }
}

/// Judges and prints.
pub fn run(arguments: &GroundTruthArguments) -> Result<(), Failure> {
    let log = read(&arguments.guest_log)?;
    let mut source = Source::open(&arguments.recording)?;
    let mut events = Vec::new();
    source.each(|event| {
        if !(arguments.no_pv_pages && matches!(event.what, What::PvPage { .. })) {
            events.push(event);
        }
    });
    let explanation = explain(&events, source.sees_ipis());
    let clock = TscClock::new(log.clock[0], log.clock[1])
        .context("the guest log's clock cannot be joined with the recording's")?;
    let mut document = Document::new("ground-truth", machine(&source));
    let (mut evaluations, mut confusion) = (Vec::new(), Vec::new());
    let mut all = Evaluation::default();
    for vm in &log.vms {
        let (evaluation, minimum_ns) = judge(vm, &events, &clock, &explanation)?;
        let name = words::vm_name(&source.facts, vm.vm);
        let known = (minimum_ns < u64::MAX).then_some(minimum_ns);
        evaluations.push(row(&name, &vm.lock, &evaluation, known));
        confusion.extend(confusion_rows(&name, &evaluation));
        all.merge(&evaluation);
    }
    if log.vms.len() > 1 {
        evaluations.push(row("all", "-", &all, None));
        confusion.extend(confusion_rows("all", &all));
    }
    let title = "Explained causes of waits against true ones; a wait matters when it spun for two pause-loop windows or more";
    document.table(Table::of(title, evaluations));
    document.table(Table::of("By true cause", confusion));
    for problem in &source.problems {
        document.note(problem.clone());
    }
    output::print(&document, arguments.output)?;
    Ok(())
}

fn read(path: &Path) -> Result<GuestLog, Failure> {
    let file = File::open(path).with_context(|| path.display().to_string())?;
    let log = GuestLog::read(&mut BufReader::new(file));
    Ok(log.with_context(|| path.display().to_string())?)
}

fn explain(events: &[Event], ipis_seen: bool) -> Explanation {
    let mut explainer = Explainer::new(Options {
        naming: Naming::default(),
        ipis_seen,
        minimum_wait_ns: u64::MAX,
        waits_max: 0,
        events_max: EVENTS_MAX,
        keep_slices: true,
    });
    events.iter().for_each(|event| explainer.push(*event));
    explainer.finish()
}

/// The evaluation of one VM, and from how much spin time on a wait counts: two windows, since only a wait of two is sure to
/// hold a whole one even if something starts the count anew in its middle.
fn judge(
    vm: &GuestLogVm,
    events: &[Event],
    clock: &TscClock,
    explanation: &Explanation,
) -> anyhow::Result<(Evaluation, u64)> {
    if !vm.complete {
        bail!(
            "{}: its log is not whole, so the holder of a lock is not always known; set log_records higher, log_minimum_spins to 0, or run shorter",
            vm.name
        );
    }
    let presence = presence::of_vm(vm.vm, events);
    let waits = ground_truth::ground_truth(&vm.waits, clock, Order::of_lock(&vm.lock), &presence);
    let Some(explained) = explanation.vms.get(&vm.vm) else {
        bail!("{}: the recording has no events of it", vm.name);
    };
    // Without a window that is known, none is long enough for sure.
    let minimum_ns = match explained.window_ns {
        0 => u64::MAX,
        window_ns => 2 * window_ns,
    };
    let margin_ns = CauseTimes::margin_ns(explained.window_ns);
    let evaluation = Evaluation::new(&waits, &explained.slices, minimum_ns, margin_ns);
    Ok((evaluation, minimum_ns))
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn row(name: &str, lock: &str, of: &Evaluation, minimum_ns: Option<u64>) -> EvaluationRow {
    let error = ratio(of.explained_spin_ns, of.true_spin_ns);
    EvaluationRow {
        vm: name.into(),
        lock: lock.into(),
        waits: of.waits(),
        attributed: of.attributed(),
        right: of.right(),
        precision: ratio(of.right(), of.attributed()),
        coverage: ratio(of.attributed(), of.waits()),
        always_majority: ratio(of.always_majority(), of.waits()),
        true_spin_ns: of.true_spin_ns,
        explained_spin_ns: of.explained_spin_ns,
        spin_error_percent: error.map(|ratio| 100.0 * (ratio - 1.0)),
        minimum_ns,
    }
}

fn confusion_rows(name: &str, of: &Evaluation) -> Vec<ConfusionRow> {
    let by_cause = Cause::ALL.iter().zip(&of.confusion);
    by_cause
        .filter(|(_, said)| said.iter().any(|&waits| waits > 0))
        .map(|(cause, said)| {
            let waits: u64 = said.iter().sum();
            let said = |cause: Cause| said[cause as usize];
            ConfusionRow {
                vm: name.into(),
                true_cause: words::cause(*cause).into(),
                waits,
                waits_percent: ratio(waits, of.waits()).map(|ratio| 100.0 * ratio),
                holder_preempted: said(Cause::HolderPreempted),
                next_waiter_preempted: said(Cause::NextWaiterPreempted),
                call_user: said(Cause::CallUser),
                call_kernel: said(Cause::CallKernel),
                call_halted: said(Cause::CallHalted),
                contention: said(Cause::Contention),
                unknown: said(Cause::Unknown),
            }
        })
        .collect()
}
