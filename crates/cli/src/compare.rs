// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare`: a scenario as it is (*stock*) against the same work with nobody overcommitted (*ideal*), in pairs; with
//! a policy, also against our scheduler with every directed yield refused (*none*) and with that policy.
//!
//! DESIGN.md, "How anything is measured": the ideal is one VM with as many vCPUs as there are CPUs, alone; samples
//! alternate in ABBA order, pair k runs all columns from seed + k, and what is compared is the ratio within each pair.

use anyhow::anyhow;
use serde::{Deserialize, Serialize};
use unspin_agent::{SteerOptions, Steerer};
use unspin_report::{Comparison, Summary, Verdict, collapsed_share};
use unspin_scenario::{LockSharing, Scenario};
use unspin_steering::Policies;

use crate::{
    arguments::{CompareArguments, Observe},
    compare_table,
    failure::Failure,
    observe::{Events, Watch},
    output, replay,
    shares::Shares,
    vm_run,
};

/// A sample below this fraction of the ideal's mean counts as collapsed: stock is bimodal, and a mean hides that.
const COLLAPSED_BELOW: f64 = 0.5;

/// One scenario, compared. The keys of the JSON row; rates are those of all VMs together.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    /// VMs x vCPUs, as in `2x4`.
    pub shape: String,
    /// The lock's name.
    pub lock: String,
    /// Pairs run.
    pub pairs: u64,
    /// Acquisitions per second of the ideal, mean over the pairs.
    pub ideal_ops_per_second: f64,
    /// Standard deviation of its samples.
    pub ideal_deviation_ops_per_second: f64,
    /// The same of the scenario as it is.
    pub stock_ops_per_second: f64,
    /// Standard deviation of its samples.
    pub stock_deviation_ops_per_second: f64,
    /// Geometric mean of stock / ideal, pair by pair.
    pub ratio: f64,
    /// Its 95 % interval; none for a single pair.
    pub ratio_low: Option<f64>,
    /// Its 95 % interval.
    pub ratio_high: Option<f64>,
    /// `lower`, `higher` or `not resolved`.
    pub verdict: String,
    /// Stock samples below half of the ideal's mean.
    pub collapsed_share_percent: f64,
    /// Share of the vCPUs' CPU time that the ideal's guests spent spinning for locks and answers.
    pub ideal_spin_share_percent: f64,
    /// The same of stock.
    pub stock_spin_share_percent: f64,
    /// Stock's pause-loop exits per acquisition; none when nobody watched.
    pub stock_ple_exits_per_op: Option<f64>,
    /// Stock's directed yields that KVM's scheduler took, of all that were tried.
    pub stock_yields_boosted_percent: Option<f64>,
    /// KVM's pause-loop window, in PAUSEs (AMD) or cycles (Intel).
    pub ple_window: Option<u64>,
    /// vCPUs per CPU.
    #[serde(default)]
    pub overcommit: f64,
    /// The policy that steered; none when nobody did, and then nothing follows either.
    #[serde(default)]
    pub policy: Option<String>,
    /// Acquisitions per second with our scheduler and every directed yield refused.
    #[serde(default)]
    pub none_per_s: Option<f64>,
    /// The same with the policy.
    #[serde(default)]
    pub steer_per_s: Option<f64>,
    /// Geometric mean of policy / stock, pair by pair.
    #[serde(default)]
    pub throughput_ratio_to_stock: Option<f64>,
    /// Its 95 % interval; none for a single pair.
    #[serde(default)]
    pub throughput_ratio_to_stock_low: Option<f64>,
    /// Its 95 % interval.
    #[serde(default)]
    pub throughput_ratio_to_stock_high: Option<f64>,
    /// (policy - stock) / (ideal - stock), of the means; none where ideal is not above stock.
    #[serde(default)]
    pub gap_closed: Option<f64>,
    /// Samples with the policy below half of the ideal's mean.
    #[serde(default)]
    pub steer_collapsed_share_percent: Option<f64>,
    /// First seed.
    pub seed: u64,
    /// Of the scenario's canonical text.
    pub scenario_sha256: String,
    /// The command that repeats the row byte for byte.
    pub replay: String,
}

/// One run of one column.
struct Sample {
    ops_per_second: f64,
    spin_share_percent: f64,
    operations: u64,
    ple_exits: Option<u64>,
    yields_boosted: u64,
    yields_tried: u64,
    ple_window: Option<u64>,
}

/// Runs the pairs and prints the table.
pub fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    let scenario = arguments.scenario.load()?;
    let mut words = vec![format!("--pairs {}", arguments.pairs)];
    if let Some(policy) = arguments.policy {
        words.push(format!("--policy {policy}"));
    }
    let replay = replay::command("compare", &arguments.scenario, &words);
    let how = How {
        pairs: arguments.pairs,
        observe: arguments.observe,
        policy: arguments.policy,
    };
    let row = compare(&scenario, how, replay)?;
    let mut document = output::document("compare");
    compare_table::add(&mut document, std::slice::from_ref(&row));
    document.note(compare_table::sentence(&row));
    document.note(format!("repeat it byte for byte: {}", row.replay));
    Ok(output::print(&document, arguments.output)?)
}

/// The same work where nobody waits for a CPU: one VM of the first group, as many vCPUs as CPUs.
fn ideal_of(scenario: &Scenario, cpus: u32) -> Scenario {
    let mut ideal = scenario.clone();
    ideal.vms.truncate(1);
    for vm in &mut ideal.vms {
        vm.count = 1;
        vm.vcpus = cpus;
    }
    ideal
}

/// How a scenario is compared.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Pairs of runs.
    pub pairs: u32,
    /// Whether BPF programs watch.
    pub observe: Observe,
    /// The policy of the fourth column; none: there are only ideal and stock.
    pub policy: Option<Policies>,
}

/// One column: what runs, and who steers meanwhile.
struct Column {
    scenario: Scenario,
    policies: Option<Policies>,
}

/// Where the columns stand in a pair.
const IDEAL: usize = 0;
const STOCK: usize = 1;
const NONE: usize = 2;
const STEER: usize = 3;

fn columns(scenario: &Scenario, policy: Option<Policies>, cpus: u32) -> Vec<Column> {
    let column = |scenario: &Scenario, policies| Column {
        scenario: scenario.clone(),
        policies,
    };
    let mut columns = vec![
        column(&ideal_of(scenario, cpus), None),
        column(scenario, None),
    ];
    if let Some(policy) = policy {
        columns.push(column(scenario, Some(Policies::NONE)));
        columns.push(column(scenario, Some(policy)));
    }
    columns
}

/// Runs the scenario and what it is compared with on this host. `replay` is the command that repeats that.
pub fn compare(scenario: &Scenario, how: How, replay: String) -> Result<Row, Failure> {
    let cpus = scenario.host.cpus.unwrap_or_else(online_cpus);
    let columns = columns(scenario, how.policy, cpus);
    let mut samples: Vec<Vec<Sample>> = Vec::new();
    for pair in 0..how.pairs {
        let seed = scenario.seed.wrapping_add(u64::from(pair));
        // ABBA: what drifts with time hits all columns alike.
        let mut order: Vec<&Column> = columns.iter().collect();
        if pair % 2 == 1 {
            order.reverse();
        }
        let mut of_pair = order
            .into_iter()
            .map(|column| sample(column, seed, how.observe))
            .collect::<Result<Vec<Sample>, Failure>>()?;
        if pair % 2 == 1 {
            of_pair.reverse();
        }
        samples.push(of_pair);
    }
    row(scenario, &samples, cpus, how.policy, replay)
}

/// (A, B) of each pair.
fn paired(a: &[f64], b: &[f64]) -> Vec<(f64, f64)> {
    a.iter().copied().zip(b.iter().copied()).collect()
}

/// The share of the gap between stock and ideal that the policy closes; 1: all of it, below 0: it widens. None where there
/// is hardly a gap (ideal within 2 % of stock): it would be noise over noise.
fn gap_closed(ideal: f64, stock: f64, steer: f64) -> Option<f64> {
    (ideal > 1.02 * stock).then(|| (steer - stock) / (ideal - stock))
}

fn online_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)
}

/// One run from that seed.
fn sample(column: &Column, seed: u64, observe: Observe) -> Result<Sample, Failure> {
    let mut scenario = column.scenario.clone();
    scenario.seed = seed;
    let steerer = column.policies.map(|policies| {
        Steerer::attach(&SteerOptions {
            policies,
            ..SteerOptions::default()
        })
    });
    let steerer = steerer.transpose().map_err(anyhow::Error::from)?;
    let run = vm_run::execute(scenario, Watch::start(observe, Events::None)?)?;
    if let Some(end) = steerer.and_then(|steerer| steerer.ended().ok().flatten()) {
        return Err(anyhow!(
            "the kernel took its own scheduler back during a run: {}: {}",
            end.reason,
            end.message
        )
        .into());
    }
    let vcpus = || run.report.vms.iter().flat_map(|vm| &vm.vcpus);
    let window_ns = run.report.window_ns.max(1) as f64;
    let tsc_hz = run.report.clock.tsc_hz();
    let shares = Shares::sum(run.report.vms.iter().flat_map(|vm| {
        vm.vcpus
            .iter()
            .map(move |vcpu| Shares::of(vcpu, vm.window_ns, tsc_hz))
    }));
    let counters = run.seen.as_ref().map(|seen| &seen.counters);
    let total = |field: fn(&unspin_events::VcpuCounters) -> u64| {
        counters.map(|counters| counters.iter().map(field).sum::<u64>())
    };
    let boosted = total(|counters| counters.yield_to_boosted).unwrap_or(0);
    Ok(Sample {
        ops_per_second: vcpus().map(|vcpu| vcpu.window.operations).sum::<u64>() as f64 * 1e9
            / window_ns,
        // Every KVM since Linux 3.x keeps steal time; without it nobody knows.
        spin_share_percent: shares.spin_percent().unwrap_or(f64::NAN),
        operations: vcpus().map(|vcpu| vcpu.statistics.operations).sum(),
        ple_exits: total(|counters| counters.ple_exits),
        yields_boosted: boosted,
        yields_tried: boosted
            + total(|counters| counters.yield_to_refused + counters.yield_to_failed).unwrap_or(0),
        ple_window: run
            .report
            .pause_loop
            .as_ref()
            .map(|control| u64::from(control.window)),
    })
}

fn row(
    scenario: &Scenario,
    samples: &[Vec<Sample>],
    cpus: u32,
    policy: Option<Policies>,
    replay: String,
) -> Result<Row, Failure> {
    let column = |at: usize, of: fn(&Sample) -> f64| {
        let values = samples.iter().map(|pair| of(&pair[at]));
        values.collect::<Vec<f64>>()
    };
    let rates = |at| column(at, |sample| sample.ops_per_second);
    let (ideal, stock) = (rates(IDEAL), rates(STOCK));
    let (Some(ratio), Some(ideal), Some(summary)) = (
        Comparison::of(&paired(&stock, &ideal)),
        Summary::of(&ideal),
        Summary::of(&stock),
    ) else {
        return Err(anyhow!(
            "no pair of runs of {} can be compared: one of them did no operation in its window; \
             a longer duration helps",
            scenario.name
        )
        .into());
    };
    let mean = |values: Vec<f64>| Summary::of(&values).map_or(0.0, |summary| summary.mean);
    let sum =
        |of: fn(&Sample) -> u64| samples.iter().map(|pair| of(&pair[STOCK])).sum::<u64>() as f64;
    let watched = samples.iter().all(|pair| pair[STOCK].ple_exits.is_some());
    let tried = sum(|sample| sample.yields_tried);
    let vms = &scenario.vms;
    let steered = policy.map(|_| rates(STEER));
    let to_stock = steered
        .as_ref()
        .and_then(|steered| Comparison::of(&paired(steered, &stock)));
    let bounds = to_stock.filter(|ratio| ratio.pairs > 1);
    let steer_mean = steered.clone().map(mean);
    let vcpus: u32 = vms.iter().map(|vm| vm.count * vm.vcpus).sum();
    Ok(Row {
        overcommit: f64::from(vcpus) / f64::from(cpus),
        policy: policy.map(|policy| policy.to_string()),
        none_per_s: policy.map(|_| mean(rates(NONE))),
        steer_per_s: steer_mean,
        throughput_ratio_to_stock: to_stock.map(|ratio| ratio.ratio),
        throughput_ratio_to_stock_low: bounds.map(|ratio| ratio.interval.low),
        throughput_ratio_to_stock_high: bounds.map(|ratio| ratio.interval.high),
        gap_closed: steer_mean.and_then(|steer| gap_closed(ideal.mean, summary.mean, steer)),
        steer_collapsed_share_percent: steered
            .map(|steered| collapsed_share(&steered, ideal.mean, COLLAPSED_BELOW) * 100.0),
        shape: vms
            .iter()
            .map(|vm| format!("{}x{}", vm.count, vm.vcpus))
            .collect::<Vec<_>>()
            .join("+"),
        lock: match (vms[0].locks, vms[0].lock.name()) {
            (LockSharing::Private, name) => format!("{name}, private"),
            (LockSharing::Shared(_), name) => name.to_owned(),
        },
        pairs: samples.len() as u64,
        ideal_ops_per_second: ideal.mean,
        ideal_deviation_ops_per_second: ideal.deviation,
        stock_ops_per_second: summary.mean,
        stock_deviation_ops_per_second: summary.deviation,
        ratio: ratio.ratio,
        ratio_low: Some(ratio.interval.low).filter(|_| ratio.pairs > 1),
        ratio_high: Some(ratio.interval.high).filter(|_| ratio.pairs > 1),
        verdict: match ratio.unusable_pairs {
            0 => ratio.verdict.name().to_owned(),
            unusable => format!("{}, {unusable} pairs unusable", Verdict::NotResolved.name()),
        },
        collapsed_share_percent: collapsed_share(&stock, ideal.mean, COLLAPSED_BELOW) * 100.0,
        ideal_spin_share_percent: mean(column(IDEAL, |sample| sample.spin_share_percent)),
        stock_spin_share_percent: mean(column(STOCK, |sample| sample.spin_share_percent)),
        stock_ple_exits_per_op: watched.then(|| {
            sum(|sample| sample.ple_exits.unwrap_or(0)) / sum(|sample| sample.operations).max(1.0)
        }),
        stock_yields_boosted_percent: (watched && tried > 0.0)
            .then(|| sum(|sample| sample.yields_boosted) * 100.0 / tried),
        ple_window: samples[0][STOCK].ple_window,
        seed: scenario.seed,
        scenario_sha256: scenario.hash(),
        replay,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_is_none_is_not_closed() {
        assert_eq!(gap_closed(200.0, 100.0, 150.0), Some(0.5));
        assert_eq!(gap_closed(200.0, 100.0, 50.0), Some(-0.5));
        assert_eq!(gap_closed(101.0, 100.0, 101.0), None);
        assert_eq!(gap_closed(90.0, 100.0, 95.0), None);
    }

    #[test]
    fn a_policy_adds_its_null_and_itself() {
        let text = "turns = 1\n[[vm]]\ncount = 2\nvcpus = 4\nlock = \"ticket\"\nhold = \"1us\"\n";
        let scenario = Scenario::parse(text, "s.toml").expect("a scenario");
        let loan: Policies = "loan".parse().expect("a policy");
        let columns = columns(&scenario, Some(loan), 2);
        let policies: Vec<_> = columns.iter().map(|column| column.policies).collect();
        assert_eq!(policies, [None, None, Some(Policies::NONE), Some(loan)]);
        assert_eq!(columns[IDEAL].scenario.vms[0].count, 1);
        assert_eq!(columns[IDEAL].scenario.vms[0].vcpus, 2);
        assert!(
            [STOCK, NONE, STEER]
                .iter()
                .all(|at| columns[*at].scenario == scenario)
        );
        assert_eq!(super::columns(&scenario, None, 2).len(), 2);
    }
}
