// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare`: a scenario as it is (*stock*) against the same work with nobody overcommitted (*ideal*), in pairs.
//!
//! DESIGN.md, "How anything is measured": the ideal is one VM with as many vCPUs as there are CPUs, alone; samples
//! alternate in ABBA order, pair k runs both columns from seed + k, and what is compared is the ratio within each pair.

use serde::{Deserialize, Serialize};
use unspin_report::{Comparison, Summary, Verdict, collapsed_share};
use unspin_scenario::{LockSharing, Scenario};

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
    let replay = replay::command(
        "compare",
        &arguments.scenario,
        &[format!("--pairs {}", arguments.pairs)],
    );
    let row = compare(&scenario, arguments.pairs, arguments.observe, replay)?;
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

/// Runs `pairs` pairs of the scenario and its ideal on this host. `replay` is the command that repeats that.
pub fn compare(
    scenario: &Scenario,
    pairs: u32,
    observe: Observe,
    replay: String,
) -> Result<Row, Failure> {
    let cpus = scenario.host.cpus.unwrap_or_else(online_cpus);
    let ideal = ideal_of(scenario, cpus);
    let mut samples: Vec<(Sample, Sample)> = Vec::new();
    for pair in 0..pairs {
        let seed = scenario.seed.wrapping_add(u64::from(pair));
        // ABBA: what drifts with time hits both columns alike.
        let (first, second) = if pair % 2 == 0 {
            (&ideal, scenario)
        } else {
            (scenario, &ideal)
        };
        let (first, second) = (
            sample(first, seed, observe)?,
            sample(second, seed, observe)?,
        );
        samples.push(if pair % 2 == 0 {
            (first, second)
        } else {
            (second, first)
        });
    }
    row(scenario, &samples, replay)
}

fn online_cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)
}

/// One run from that seed.
fn sample(scenario: &Scenario, seed: u64, observe: Observe) -> Result<Sample, Failure> {
    let mut scenario = scenario.clone();
    scenario.seed = seed;
    let run = vm_run::execute(scenario, Watch::start(observe, Events::None)?)?;
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

fn row(scenario: &Scenario, samples: &[(Sample, Sample)], replay: String) -> Result<Row, Failure> {
    let column = |of: fn(&(Sample, Sample)) -> f64| samples.iter().map(of).collect::<Vec<f64>>();
    let (ideal, stock) = (
        column(|s| s.0.ops_per_second),
        column(|s| s.1.ops_per_second),
    );
    let pairs: Vec<(f64, f64)> = stock.iter().copied().zip(ideal.iter().copied()).collect();
    let (Some(ratio), Some(ideal), Some(summary)) = (
        Comparison::of(&pairs),
        Summary::of(&ideal),
        Summary::of(&stock),
    ) else {
        return Err(anyhow::anyhow!(
            "no pair of runs of {} can be compared: one of them did no operation in its window; \
             a longer duration helps",
            scenario.name
        )
        .into());
    };
    let mean = |values: Vec<f64>| Summary::of(&values).map_or(0.0, |summary| summary.mean);
    let sum = |of: fn(&Sample) -> u64| samples.iter().map(|pair| of(&pair.1)).sum::<u64>() as f64;
    let watched = samples.iter().all(|pair| pair.1.ple_exits.is_some());
    let tried = sum(|sample| sample.yields_tried);
    let vms = &scenario.vms;
    Ok(Row {
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
        ideal_spin_share_percent: mean(column(|s| s.0.spin_share_percent)),
        stock_spin_share_percent: mean(column(|s| s.1.spin_share_percent)),
        stock_ple_exits_per_op: watched.then(|| {
            sum(|sample| sample.ple_exits.unwrap_or(0)) / sum(|sample| sample.operations).max(1.0)
        }),
        stock_yields_boosted_percent: (watched && tried > 0.0)
            .then(|| sum(|sample| sample.yields_boosted) * 100.0 / tried),
        ple_window: samples[0].1.ple_window,
        seed: scenario.seed,
        scenario_sha256: scenario.hash(),
        replay,
    })
}
