// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab compare`: the scenario as it is (*stock*), each policy, and the same work where nobody is overcommitted
//! (*ideal*), from the same seeds.

use unspin_lab::{Lab, Outcome, change::Change, pool as lab_pool};
use unspin_report::{
    Cell, Column, Comparison, Document, GapClosed, Harm, Interval, Summary, Table, Unit,
};
use unspin_scenario::{Scenario, limits::SEED_MAX};

use crate::{
    commands::{
        compare::measure::ideal_of,
        lab::{args::LabCompareArguments, load},
    },
    terminal::{failure::Failure, interrupt, options::ScenarioArguments, output, progress::Steps},
};

const ROWS: &[Column] = &[
    Column::new("policy", "policy", Unit::Text),
    Column::json_only("set", Unit::Text),
    Column::json_only("scenario", Unit::Text),
    Column::json_only("scenario_sha256", Unit::Text),
    Column::json_only("stock_sha256", Unit::Text),
    Column::new("seeds", "seeds", Unit::Count),
    Column::new("operations_per_second", "ops/s", Unit::Count),
    Column::new("deviation_per_second", "deviation", Unit::Count),
    Column::new("ratio_to_stock", "to stock", Unit::Ratio),
    Column::new("ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("verdict", "is", Unit::Text),
    Column::new("gap_closed", "gap closed", Unit::Ratio),
    Column::new("gap_closed_low", "95 % from", Unit::Ratio),
    Column::new("gap_closed_high", "to", Unit::Ratio),
    Column::new("harm", "harm", Unit::Text),
    Column::new("worst_vm_ratio", "worst VM", Unit::Ratio),
    Column::json_only("unusable_pairs", Unit::Count),
];
const SAMPLES: &[Column] = &[
    Column::json_only("policy", Unit::Text),
    Column::json_only("seed", Unit::Count),
    Column::json_only("operations_per_second", Unit::Count),
    Column::json_only("window_ns", Unit::Nanoseconds),
    Column::json_only("events", Unit::Count),
];

/// A column of the comparison: a scenario, and what each seed came to.
struct Compared {
    name: String,
    set: String,
    scenario: Scenario,
    runs: Vec<Run>,
}

/// What one seed came to.
struct Run {
    seed: u64,
    per_second: f64,
    /// Of each VM.
    each_vm: Vec<f64>,
    window_ns: u64,
    trace_events: u64,
}

/// Compares and prints the tables.
pub fn run(arguments: &LabCompareArguments) -> Result<(), Failure> {
    let (mut all, note) = columns(arguments)?;
    let seeds = u64::from(arguments.seeds);
    let jobs: Vec<(usize, Scenario)> = (0..seeds)
        .flat_map(|seed| {
            all.iter()
                .enumerate()
                .map(move |(of, column)| (of, seed, column))
        })
        .map(|(of, seed, column)| {
            let mut scenario = column.scenario.clone();
            scenario.seed += seed;
            (of, scenario)
        })
        .collect();
    let steps = Steps::with_rest(jobs.len(), "comparing");
    let mut results: Vec<Option<Run>> = jobs.iter().map(|_| None).collect();
    let mut finished = 0;
    lab_pool::each(
        &jobs,
        lab_pool::workers(arguments.workers),
        &*interrupt::flag()?,
        |(_, scenario)| Ok::<_, Failure>(run_of(scenario, &lab_pool::run_one(scenario)?)),
        |place, run| {
            results[place] = Some(run);
            finished += 1;
            steps.done(finished);
            Ok(())
        },
    )?;
    drop(steps);
    for ((of, _), run) in jobs.iter().zip(results) {
        all[*of].runs.extend(run);
    }
    let mut document = output::document("lab compare");
    document.table(rows(&all));
    document.table(samples(&all));
    if let Some(note) = note {
        document.note(note);
    }
    say_what(&mut document, &all);
    Ok(output::print(&document, arguments.output)?)
}

/// Stock, the policies, ideal; all checked. And why there is no ideal, if there is none.
fn columns(arguments: &LabCompareArguments) -> Result<(Vec<Compared>, Option<String>), Failure> {
    let (stock, lab) = load::load(&arguments.scenario)?;
    if stock.seed > SEED_MAX - u64::from(arguments.seeds) {
        let (seed, seeds) = (stock.seed, arguments.seeds);
        return Err(Failure::Usage(format!(
            "there are no {seeds} seeds from {seed} on"
        )));
    }
    let column = |name: &str, set: &[String], scenario| Compared {
        name: name.to_owned(),
        set: set.join(" "),
        scenario,
        runs: Vec::new(),
    };
    let mut all = vec![column("stock", &[], stock.clone())];
    for words in &arguments.policies {
        let refused =
            |error: &dyn std::fmt::Display| Failure::Usage(format!("--policy {words}: {error}"));
        let change = Change::parse(words).map_err(|error| refused(&error))?;
        let mut given: ScenarioArguments = arguments.scenario.clone();
        given.overrides.set.extend(change.set.iter().cloned());
        let scenario = given.load()?;
        Lab::new(&scenario).map_err(|error| refused(&error))?;
        all.push(column(words, &change.set, scenario));
    }
    let cpus = lab.host().topology.cpus();
    let note = match ideal(&stock, cpus) {
        Some(ideal) => {
            all.push(column("ideal", &[], ideal));
            None
        }
        None => Some(format!(
            "no ideal: a VM has at most {} vCPUs, and the host has {cpus} pCPUs",
            unspin_scenario::limits::VCPUS_MAX
        )),
    };
    Ok((all, note))
}

/// The first VM with as many vCPUs as there are pCPUs, alone.
pub fn ideal(stock: &Scenario, cpus: u32) -> Option<Scenario> {
    if cpus > unspin_scenario::limits::VCPUS_MAX {
        return None;
    }
    let mut ideal = ideal_of(stock, cpus);
    if let Some(lab) = &mut ideal.lab {
        lab.cpu_hogs = 0;
        lab.weights.clear();
        lab.pins.clear();
    }
    if cpus == 1 {
        // Nobody is there to be called.
        ideal.vms[0].shootdown_every_iterations = 0;
        ideal.vms[0].wakeup_every_iterations = 0;
    }
    Some(ideal)
}

fn run_of(scenario: &Scenario, outcome: &Outcome) -> Run {
    let per_second = |operations: u64| match outcome.window_ns {
        0 => f64::NAN,
        ns => operations as f64 * 1e9 / ns as f64,
    };
    let vms: u32 = scenario.vms.iter().map(|vm| vm.count).sum();
    Run {
        seed: scenario.seed,
        per_second: per_second(outcome.operations(None)),
        each_vm: (0..vms)
            .map(|vm| per_second(outcome.operations(Some(vm))))
            .collect(),
        window_ns: outcome.window_ns,
        trace_events: outcome.trace_events,
    }
}

fn rates(column: &Compared) -> Vec<f64> {
    column.runs.iter().map(|run| run.per_second).collect()
}

fn rows(all: &[Compared]) -> Table {
    let mut table = Table::new("policy", "", ROWS);
    let stock = &all[0];
    let stock_rates = rates(stock);
    let ideal = all.iter().find(|column| column.name == "ideal");
    for column in all {
        let rates = rates(column);
        let is_policy = column.name != "stock" && column.name != "ideal";
        let summary = Summary::of(&rates);
        let ratio = match column.name.as_str() {
            "stock" => None,
            _ => Comparison::of(&pairs(&rates, &stock_rates)),
        };
        let gap = ideal
            .filter(|_| is_policy)
            .and_then(|ideal| GapClosed::of(&self::rates(ideal), &stock_rates, &rates));
        let interval = ratio.map(|ratio| ratio.interval);
        let gap_interval = gap.and_then(|gap| gap.interval);
        let harm = ratio
            .filter(|_| is_policy)
            .map(|ratio| Harm::of(&ratio, Harm::CELL).name());
        table.push(vec![
            column.name.clone().into(),
            column.set.clone().into(),
            column.scenario.name.clone().into(),
            column.scenario.hash().into(),
            stock.scenario.hash().into(),
            column.runs.len().into(),
            summary.map(|summary| summary.mean).into(),
            summary.map(|summary| summary.deviation).into(),
            ratio.map(|ratio| ratio.ratio).into(),
            bound(interval, |interval| interval.low),
            bound(interval, |interval| interval.high),
            ratio.map(|ratio| ratio.verdict.name()).into(),
            gap.map(|gap| gap.share).into(),
            bound(gap_interval, |interval| interval.low),
            bound(gap_interval, |interval| interval.high),
            harm.into(),
            is_policy.then(|| worst_vm(stock, column)).flatten().into(),
            ratio.map(|ratio| ratio.unusable_pairs).into(),
        ]);
    }
    table
}

fn pairs(policy: &[f64], stock: &[f64]) -> Vec<(f64, f64)> {
    policy.iter().copied().zip(stock.iter().copied()).collect()
}

/// A bound of an interval; none where one value gives no interval.
fn bound(interval: Option<Interval>, which: fn(Interval) -> f64) -> Cell {
    let known = interval.filter(|interval| interval.high.is_finite());
    known.map(which).into()
}

/// The least ratio to stock of a VM, each a geometric mean over the seeds; none where some VM did nothing.
fn worst_vm(stock: &Compared, policy: &Compared) -> Option<f64> {
    let of = |column: &Compared, vm: usize| -> Vec<f64> {
        let each = column.runs.iter();
        each.filter_map(|run| run.each_vm.get(vm).copied())
            .collect()
    };
    let vms = stock.runs.first()?.each_vm.len();
    let ratios = (0..vms).map(|vm| {
        let compared = Comparison::of(&pairs(&of(policy, vm), &of(stock, vm)))?;
        (compared.unusable_pairs == 0).then_some(compared.ratio)
    });
    let ratios: Option<Vec<f64>> = ratios.collect();
    ratios?.into_iter().reduce(f64::min)
}

/// One for each seed and column, for programs.
fn samples(all: &[Compared]) -> Table {
    let mut table = Table::new("sample", "", SAMPLES);
    for column in all {
        for run in &column.runs {
            table.push(vec![
                column.name.clone().into(),
                run.seed.into(),
                run.per_second.into(),
                run.window_ns.into(),
                run.trace_events.into(),
            ]);
        }
    }
    table
}

/// What the columns are.
fn say_what(document: &mut Document, all: &[Compared]) {
    let stock = &all[0].scenario;
    let lab = stock.lab.clone().unwrap_or_default();
    let scheduler = lab
        .scheduler
        .as_deref()
        .unwrap_or(unspin_lab::DEFAULT_SCHEDULER);
    let last = stock.seed + all[0].runs.len().saturating_sub(1) as u64;
    document.note(format!(
        "stock is {} as it is, under {scheduler}; seeds {} to {last}, the same for all; ratios pair by pair",
        stock.name, stock.seed
    ));
    let rates = rates(&all[0]);
    if rates.len() > 1 && rates.iter().all(|rate| *rate == rates[0]) {
        document.note(
            "every seed gave the same: this scenario draws nothing, so its intervals say nothing; draw its times, as in \
             hold = { exponential = \"1us\" }",
        );
    }
}
