// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a comparison says: one row for each policy. The fields are the keys of the JSON rows.

use std::time::Duration;

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use unspin_agent::PolicyChoice;
use unspin_analysis::explain::cause::Cause;
use unspin_report::{Comparison, GapClosed, Harm, Summary, Verdict, collapsed_share};
use unspin_scenario::{LockSharing, Scenario};

use crate::{
    commands::compare::{
        measure::{How, Measured, Sample},
        order::Column,
    },
    terminal::failure::Failure,
};

/// A sample below this fraction of the ideal's mean counts as collapsed: stock is bimodal, and a mean hides that.
const COLLAPSED_BELOW: f64 = 0.5;

/// A scenario and a policy, compared. Rates are acquisitions of all VMs together; means over the pairs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    /// VMs x vCPUs, as in `2x4`.
    pub shape: String,
    /// The lock's name.
    pub lock: String,
    /// vCPUs per CPU.
    pub overcommit: f64,
    /// Whether all guests say what they hold and wait for.
    pub pv_page: bool,
    /// KVM's pause-loop window, in PAUSEs (AMD) or cycles (Intel); none where KVM has no such exits.
    pub ple_window: Option<u64>,
    /// The policy that steered; none when nobody did.
    pub policy: Option<String>,
    /// Of the ideal: one VM that fits, alone.
    pub ideal_per_s: f64,
    /// Standard deviation of its samples.
    pub ideal_deviation_per_s: f64,
    /// Of the scenario under the host's own scheduler.
    pub stock_per_s: f64,
    /// Standard deviation of its samples.
    pub stock_deviation_per_s: f64,
    /// With our scheduler and every directed yield refused.
    pub refuse_yields_per_s: Option<f64>,
    /// With the policy.
    pub steer_per_s: Option<f64>,
    /// Standard deviation of its samples.
    pub steer_deviation_per_s: Option<f64>,
    /// Geometric mean of policy / stock, pair by pair.
    pub throughput_ratio_to_stock: Option<f64>,
    /// Its 95 % interval; none for a single pair.
    pub throughput_ratio_to_stock_low: Option<f64>,
    /// Its 95 % interval.
    pub throughput_ratio_to_stock_high: Option<f64>,
    /// `lower`, `higher` or `not resolved`.
    pub verdict: Option<String>,
    /// `no harm` (the lower bound is above 0.90), `harm` or `not resolved`.
    pub harm: Option<String>,
    /// (policy - stock) / (ideal - stock), of the means; none where ideal is not 2 % above stock.
    pub gap_closed: Option<f64>,
    /// Its 95 % interval.
    pub gap_closed_low: Option<f64>,
    /// Its 95 % interval.
    pub gap_closed_high: Option<f64>,
    /// Geometric mean of stock / ideal, pair by pair.
    pub stock_ratio_to_ideal: f64,
    /// Its 95 % interval.
    pub stock_ratio_to_ideal_low: Option<f64>,
    /// Its 95 % interval.
    pub stock_ratio_to_ideal_high: Option<f64>,
    /// `lower`, `higher` or `not resolved`.
    pub stock_verdict: String,
    /// Stock against stock, both of the same pair: the null.
    pub stock_ratio_to_stock: f64,
    /// Its 95 % interval.
    pub stock_ratio_to_stock_low: Option<f64>,
    /// Its 95 % interval.
    pub stock_ratio_to_stock_high: Option<f64>,
    /// `includes 1` or `excludes 1`; in the long run one of 20 excludes it by chance.
    pub null_verdict: Option<String>,
    /// Stock samples below half of the ideal's mean.
    pub stock_collapsed_share_percent: f64,
    /// Samples with the policy below it.
    pub steer_collapsed_share_percent: Option<f64>,
    /// Share of the vCPUs' CPU time that the ideal's guests spent spinning, by their own word.
    pub ideal_spin_share_percent: Option<f64>,
    /// The same of stock.
    pub stock_spin_share_percent: Option<f64>,
    /// The same with the policy.
    pub steer_spin_share_percent: Option<f64>,
    /// Share of CPU time that stock spent in spin loops, by what the host saw; none when nobody watched, as all below.
    pub stock_spin_time_percent: Option<f64>,
    /// Of it, for holders off their CPU.
    pub holder_preempted_percent: Option<f64>,
    /// Of it, for next waiters off their CPU.
    pub next_waiter_preempted_percent: Option<f64>,
    /// Of it, for function calls whose receivers were off their CPU.
    pub call_preempted_percent: Option<f64>,
    /// Of it, while all concerned ran.
    pub contention_percent: Option<f64>,
    /// Of it, nobody can say.
    pub unknown_percent: Option<f64>,
    /// Stock's pause-loop exits per acquisition.
    pub stock_ple_exits_per_op: Option<f64>,
    /// Stock's directed yields that KVM's scheduler took, of all that were tried.
    pub stock_yields_boosted_percent: Option<f64>,
    /// Pairs measured.
    pub pairs: u64,
    /// Pairs in which policy or stock did nothing: left out of the ratio to stock.
    pub unusable_pairs: u64,
    /// Length of each sample.
    pub window_ns: u64,
    /// What was left out after each change.
    pub discard_ns: u64,
    /// First seed.
    pub seed: u64,
    /// Of the scenario's canonical text.
    pub scenario_sha256: String,
    /// The command that repeats the row byte for byte.
    pub replay: String,
}

/// The samples of one column, in order of pairs.
pub struct Samples<'a>(pub Vec<&'a Sample>);

impl Samples<'_> {
    /// Those of a column.
    pub fn of(measured: &Measured, column: Column) -> Samples<'_> {
        let samples = measured.samples.iter();
        Samples(
            samples
                .filter(|((of, _), _)| *of == column)
                .map(|(_, sample)| sample)
                .collect(),
        )
    }

    fn rates(&self) -> Vec<f64> {
        self.0
            .iter()
            .map(|sample| sample.operations_per_s())
            .collect()
    }

    fn spin_share_percent(&self) -> Option<f64> {
        let shares: Vec<f64> = self
            .0
            .iter()
            .map(|sample| sample.spin_share_percent)
            .collect();
        Summary::of(&shares)
            .map(|summary| summary.mean)
            .filter(|mean| mean.is_finite())
    }
}

/// A against B, pair by pair.
pub fn ratio(a: &[f64], b: &[f64]) -> Option<Comparison> {
    let pairs: Vec<(f64, f64)> = a.iter().copied().zip(b.iter().copied()).collect();
    Comparison::of(&pairs)
}

/// A comparison's bounds, where there are several pairs.
pub fn bounds(of: &Comparison) -> (Option<f64>, Option<f64>) {
    match of.pairs {
        0 | 1 => (None, None),
        _ => (Some(of.interval.low), Some(of.interval.high)),
    }
}

/// What a comparison shows; never resolved where pairs had to be left out.
pub fn verdict(of: &Comparison) -> String {
    match of.unusable_pairs {
        0 => of.verdict.name().to_owned(),
        unusable => format!("{}, {unusable} pairs unusable", Verdict::NotResolved.name()),
    }
}

/// `includes 1` or `excludes 1`; none without an interval.
pub fn null_verdict(of: &Comparison) -> Option<String> {
    let (low, high) = bounds(of);
    let (low, high) = (low?, high?);
    let includes = low <= 1.0 && 1.0 <= high;
    Some(if includes { "includes 1" } else { "excludes 1" }.to_owned())
}

/// VMs x vCPUs of all groups.
pub fn shape(scenario: &Scenario) -> String {
    let shapes = scenario.vms.iter();
    let shapes: Vec<String> = shapes
        .map(|vm| format!("{}x{}", vm.count, vm.vcpus))
        .collect();
    shapes.join("+")
}

/// The first group's lock.
pub fn lock(scenario: &Scenario) -> String {
    match (scenario.vms[0].locks, scenario.vms[0].lock.name()) {
        (LockSharing::Private, name) => format!("{name}, private"),
        (LockSharing::Shared(_), name) => name.to_owned(),
    }
}

/// A row for each policy; one row without any.
///
/// # Errors
/// When stock or ideal did nothing in all of the windows.
pub fn rows(
    scenario: &Scenario,
    how: &How,
    measured: &Measured,
    replay: &str,
) -> Result<Vec<Row>, Failure> {
    let common = common(scenario, how, measured, replay).ok_or_else(|| {
        anyhow!(
            "no pair of runs of {} can be compared: one of them did no operation in its window; \
             a longer window helps",
            scenario.name
        )
    })?;
    if how.policies.is_empty() {
        return Ok(vec![common]);
    }
    let policies = how.policies.iter().enumerate();
    Ok(policies
        .map(|(at, policy)| steered(common.clone(), measured, at, policy))
        .collect())
}

/// What all policies share.
fn common(scenario: &Scenario, how: &How, measured: &Measured, replay: &str) -> Option<Row> {
    let [ideal, stock, again, none] = [
        Column::Ideal,
        Column::Stock,
        Column::StockAgain,
        Column::RefuseYields,
    ]
    .map(|column| Samples::of(measured, column));
    let (ideal_rates, stock_rates) = (ideal.rates(), stock.rates());
    let to_ideal = ratio(&stock_rates, &ideal_rates)?;
    let null = ratio(&again.rates(), &stock_rates)?;
    let (ideal_sum, stock_sum) = (Summary::of(&ideal_rates)?, Summary::of(&stock_rates)?);
    let vcpus: u32 = scenario.vms.iter().map(|vm| vm.count * vm.vcpus).sum();
    let why = measured.why.as_ref();
    let causes = why.and_then(|why| why.causes_percent);
    let cause = |of: Cause| causes.map(|causes| causes[of.index()]);
    Some(Row {
        shape: shape(scenario),
        lock: lock(scenario),
        overcommit: f64::from(vcpus) / f64::from(measured.cpus),
        pv_page: scenario.vms.iter().all(|vm| vm.pv_page),
        ple_window: measured.ple_window,
        policy: None,
        ideal_per_s: ideal_sum.mean,
        ideal_deviation_per_s: ideal_sum.deviation,
        stock_per_s: stock_sum.mean,
        stock_deviation_per_s: stock_sum.deviation,
        refuse_yields_per_s: Summary::of(&none.rates()).map(|none| none.mean),
        steer_per_s: None,
        steer_deviation_per_s: None,
        throughput_ratio_to_stock: None,
        throughput_ratio_to_stock_low: None,
        throughput_ratio_to_stock_high: None,
        verdict: None,
        harm: None,
        gap_closed: None,
        gap_closed_low: None,
        gap_closed_high: None,
        stock_ratio_to_ideal: to_ideal.ratio,
        stock_ratio_to_ideal_low: bounds(&to_ideal).0,
        stock_ratio_to_ideal_high: bounds(&to_ideal).1,
        stock_verdict: verdict(&to_ideal),
        stock_ratio_to_stock: null.ratio,
        stock_ratio_to_stock_low: bounds(&null).0,
        stock_ratio_to_stock_high: bounds(&null).1,
        null_verdict: null_verdict(&null),
        stock_collapsed_share_percent: collapsed_percent(&stock_rates, ideal_sum.mean),
        steer_collapsed_share_percent: None,
        ideal_spin_share_percent: ideal.spin_share_percent(),
        stock_spin_share_percent: stock.spin_share_percent(),
        steer_spin_share_percent: None,
        stock_spin_time_percent: why.and_then(|why| why.spin_percent),
        holder_preempted_percent: cause(Cause::HolderPreempted),
        next_waiter_preempted_percent: cause(Cause::NextWaiterPreempted),
        call_preempted_percent: cause(Cause::CallUser)
            .zip(cause(Cause::CallKernel))
            .zip(cause(Cause::CallHalted))
            .map(|((user, kernel), halted)| user + kernel + halted),
        contention_percent: cause(Cause::Contention),
        unknown_percent: cause(Cause::Unknown),
        stock_ple_exits_per_op: why.and_then(|why| why.ple_exits_per_op),
        stock_yields_boosted_percent: why.and_then(|why| why.yields_boosted_percent),
        pairs: stock_rates.len() as u64,
        unusable_pairs: 0,
        window_ns: ns(how.sample),
        discard_ns: ns(how.discard),
        seed: scenario.seed,
        scenario_sha256: scenario.hash(),
        replay: replay.to_owned(),
    })
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn collapsed_percent(rates: &[f64], ideal: f64) -> f64 {
    100.0 * collapsed_share(rates, ideal, COLLAPSED_BELOW)
}

/// The row with what the policy of that index did.
fn steered(common: Row, measured: &Measured, at: usize, policy: &PolicyChoice) -> Row {
    let rates = |column| Samples::of(measured, column).rates();
    let (ideal, stock) = (rates(Column::Ideal), rates(Column::Stock));
    let samples = Samples::of(measured, Column::Policy(at));
    let steer = samples.rates();
    let to_stock = ratio(&steer, &stock);
    let summary = Summary::of(&steer);
    let gap = GapClosed::of(&ideal, &stock, &steer);
    let interval = gap.and_then(|gap| gap.interval);
    Row {
        policy: Some(policy.names()),
        steer_per_s: summary.map(|summary| summary.mean),
        steer_deviation_per_s: summary.map(|summary| summary.deviation),
        throughput_ratio_to_stock: to_stock.map(|ratio| ratio.ratio),
        throughput_ratio_to_stock_low: to_stock.and_then(|ratio| bounds(&ratio).0),
        throughput_ratio_to_stock_high: to_stock.and_then(|ratio| bounds(&ratio).1),
        // A policy under which nothing is ever done is no case of "not resolved".
        verdict: Some(to_stock.map_or(Verdict::Lower.name().to_owned(), |ratio| verdict(&ratio))),
        harm: Some(to_stock.map_or(Harm::Harm, |ratio| Harm::of(&ratio, Harm::CELL)))
            .map(|harm| harm.name().to_owned()),
        gap_closed: gap.map(|gap| gap.share),
        gap_closed_low: interval.map(|interval| interval.low),
        gap_closed_high: interval.map(|interval| interval.high),
        steer_collapsed_share_percent: Some(collapsed_percent(&steer, common.ideal_per_s)),
        steer_spin_share_percent: samples.spin_share_percent(),
        unusable_pairs: to_stock.map_or(steer.len(), |ratio| ratio.unusable_pairs) as u64,
        ..common
    }
}

#[cfg(test)]
pub mod tests;
