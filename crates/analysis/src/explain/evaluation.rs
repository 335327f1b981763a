// SPDX-License-Identifier: MIT OR Apache-2.0
//! How good an explanation is: cause against true cause, wait by wait, by what the guests logged themselves; also as rows.

use std::collections::BTreeMap;

use unspin_events::{
    Event, TscClock, What,
    guest_log::{GuestLog, GuestLogVm},
};
use unspin_report::row;

use crate::{
    Source, SourceError,
    explain::{
        attribution::{EVENTS_MAX, Explainer, Explanation, Options},
        cause::{Cause, CauseTimes},
        ground_truth::{self, Order, Slice, TrueWait},
        words,
    },
    waits::{presence, spin_locations::Naming},
};

/// Explained against true.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evaluation {
    /// `[true][explained]`, waits; nothing explained counts as unknown.
    pub confusion: [[u64; Cause::ALL.len()]; Cause::ALL.len()],
    /// SpinTime time of all waits, truly.
    pub true_spin_ns: u64,
    /// And as explained.
    pub explained_spin_ns: u64,
}

impl Evaluation {
    /// Compares; waits that spun for less than `minimum_ns` do not count, but for the sums of spin time. A lead of less than
    /// `margin_ns` leaves a wait unexplained.
    pub fn new(
        waits: &[TrueWait],
        slices: &[Slice],
        minimum_ns: u64,
        margin_ns: u64,
    ) -> Evaluation {
        let mut evaluation = Evaluation::default();
        let mut by_vcpu: BTreeMap<u16, Vec<&Slice>> = BTreeMap::new();
        for slice in slices {
            evaluation.explained_spin_ns += slice.end_ns - slice.begin_ns;
            by_vcpu.entry(slice.vcpu).or_default().push(slice);
        }
        for slices in by_vcpu.values_mut() {
            slices.sort_by_key(|slice| slice.begin_ns);
        }
        for wait in waits {
            evaluation.true_spin_ns += wait.spin_time.total();
            let Some(ground_truth) = wait
                .cause()
                .filter(|_| wait.spin_time.total() >= minimum_ns)
            else {
                continue;
            };
            let slices = by_vcpu.get(&wait.vcpu).map_or(&[][..], |slices| slices);
            let explained = explained(wait, slices)
                .certain(margin_ns)
                .unwrap_or(Cause::Unknown);
            evaluation.confusion[ground_truth.index()][explained.index()] += 1;
        }
        evaluation
    }

    /// Adds another VM's.
    pub fn merge(&mut self, other: &Evaluation) {
        let mine = self.confusion.iter_mut().flatten();
        for (mine, theirs) in mine.zip(other.confusion.iter().flatten()) {
            *mine += theirs;
        }
        self.true_spin_ns += other.true_spin_ns;
        self.explained_spin_ns += other.explained_spin_ns;
    }

    /// All waits that count.
    pub fn waits(&self) -> u64 {
        self.confusion.iter().flatten().sum()
    }

    /// Of them, those with a cause.
    pub fn attributed(&self) -> u64 {
        let unknown: u64 = self
            .confusion
            .iter()
            .map(|row| row[Cause::Unknown.index()])
            .sum();
        self.waits() - unknown
    }

    /// Of them, those with the true one.
    pub fn right(&self) -> u64 {
        Cause::ALL
            .iter()
            .filter(|&&cause| cause != Cause::Unknown)
            .map(|cause| self.confusion[cause.index()][cause.index()])
            .sum()
    }

    /// Waits of the most frequent true cause: what always guessing that one gets right.
    pub fn always_majority(&self) -> u64 {
        self.confusion
            .iter()
            .map(|row| row.iter().sum())
            .max()
            .unwrap_or(0)
    }
}

/// Explained time within that wait.
pub fn explained(wait: &TrueWait, slices: &[&Slice]) -> CauseTimes {
    let mut times = CauseTimes::default();
    let first = slices.partition_point(|slice| slice.end_ns <= wait.begin_ns);
    for slice in slices[first..]
        .iter()
        .take_while(|slice| slice.begin_ns < wait.end_ns)
    {
        let begin_ns = slice.begin_ns.max(wait.begin_ns);
        times.add(
            slice.cause,
            slice.end_ns.min(wait.end_ns).saturating_sub(begin_ns),
        );
    }
    times
}

row! {
    "evaluation", ["ground-truth"];
    /// How often `explain` names the cause of a wait that the guest's own log shows, of one VM or of `all`.
    pub struct EvaluationRow {
        /// The VM, or `all`.
        pub vm: String = ("VM", Text),
        /// Its lock, as in a scenario; `-` for all.
        pub lock: String = ("lock", Text),
        /// Waits that spun for `minimum_ns` or more.
        pub waits: u64 = ("waits that matter", Count),
        /// Of these, waits for which a cause was named.
        pub attributed: u64 = ("attributed", Count),
        /// Of these, waits whose named cause is the true one.
        pub right: u64 = ("right", Count),
        /// `right` / `attributed`, 0 to 1.
        pub precision: Option<f64> = ("precision", Ratio),
        /// `attributed` / `waits`, 0 to 1.
        pub coverage: Option<f64> = ("coverage", Ratio),
        /// The precision of always naming the most frequent true cause, 0 to 1.
        pub always_majority: Option<f64> = ("always the majority", Ratio),
        /// CPU time spun, by the guest's log; ns.
        pub true_spin_ns: u64 = ("spin time, true", Nanoseconds),
        /// CPU time spun, as explained; ns.
        pub explained_spin_ns: u64 = ("as explained", Nanoseconds),
        /// How far `explained_spin_ns` is above (below: negative) `true_spin_ns`; percent.
        pub spin_error_percent: Option<f64> = ("error %", Percent),
        /// Spin time from which on a wait counts, two pause-loop windows; ns.
        pub minimum_ns: Option<u64> = ("matters from", Nanoseconds),
    }
}

row! {
    "confusion", ["ground-truth"];
    /// Waits of one true cause, by the cause that `explain` names.
    pub struct ConfusionRow {
        /// The VM, or `all`.
        pub vm: String = ("VM", Text),
        /// The cause by the guest's log.
        pub true_cause: String = ("true cause", Text),
        /// Waits of this cause.
        pub waits: u64 = ("waits", Count),
        /// Their share of all waits; percent.
        pub waits_percent: Option<f64> = ("%", Percent),
        /// Waits explained by a preempted lock holder (LHP).
        pub holder_preempted: u64 = ("said: LHP", Count),
        /// Waits explained by a preempted next waiter (LWP).
        pub next_waiter_preempted: u64 = ("LWP", Count),
        /// Waits explained by a function call to a vCPU preempted in user mode.
        pub call_user: u64 = ("call: user", Count),
        /// Waits explained by a function call to a vCPU off its CPU in its kernel.
        pub call_kernel: u64 = ("kernel", Count),
        /// Waits explained by a function call to a halted vCPU.
        pub call_halted: u64 = ("halted", Count),
        /// Waits explained by contention alone: nobody was preempted.
        pub contention: u64 = ("contention", Count),
        /// Waits for which no cause was named.
        pub unknown: u64 = ("unknown", Count),
    }
}

/// Every VM of `log` judged, and all of them together; without `pv_pages` by host knowledge alone.
///
/// # Errors
/// When the log's clock cannot be joined with the events', it is not whole, or there are no events of one of its VMs.
pub fn judge(
    source: &mut Source,
    log: &GuestLog,
    pv_pages: bool,
) -> Result<(Vec<EvaluationRow>, Vec<ConfusionRow>), SourceError> {
    let mut events = Vec::new();
    source.each(|event| {
        if pv_pages || !matches!(event.what, What::PvPage { .. }) {
            events.push(event);
        }
    });
    let explanation = explanation_of(&events, source.sees_ipis());
    let clock = TscClock::new(log.clock[0], log.clock[1]).map_err(|error| {
        SourceError::NotEnough(format!(
            "the guest log's clock cannot be joined with the recording's: {error}"
        ))
    })?;
    let (mut evaluations, mut confusion) = (Vec::new(), Vec::new());
    let mut all = Evaluation::default();
    for vm in &log.vms {
        let (evaluation, minimum_ns) = judge_vm(vm, &events, &clock, &explanation)?;
        let name = words::vm_name(&source.facts, vm.vm);
        let known = (minimum_ns < u64::MAX).then_some(minimum_ns);
        evaluations.push(evaluation_row(&name, &vm.lock, &evaluation, known));
        confusion.extend(confusion_rows(&name, &evaluation));
        all.merge(&evaluation);
    }
    if log.vms.len() > 1 {
        evaluations.push(evaluation_row("all", "-", &all, None));
        confusion.extend(confusion_rows("all", &all));
    }
    Ok((evaluations, confusion))
}

fn explanation_of(events: &[Event], ipis_seen: bool) -> Explanation {
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
fn judge_vm(
    vm: &GuestLogVm,
    events: &[Event],
    clock: &TscClock,
    explanation: &Explanation,
) -> Result<(Evaluation, u64), SourceError> {
    if !vm.complete {
        return Err(SourceError::NotEnough(format!(
            "{}: its log is not whole, so the holder of a lock is not always known; set log_records higher, log_minimum_spins to 0, or run shorter",
            vm.name
        )));
    }
    let presence = presence::of_vm(vm.vm, events);
    let waits = ground_truth::ground_truth(&vm.waits, clock, Order::of_lock(&vm.lock), &presence);
    let Some(explained) = explanation.vms.get(&vm.vm) else {
        return Err(SourceError::NotEnough(format!(
            "{}: the recording has no events of it",
            vm.name
        )));
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

fn evaluation_row(
    name: &str,
    lock: &str,
    of: &Evaluation,
    minimum_ns: Option<u64>,
) -> EvaluationRow {
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
