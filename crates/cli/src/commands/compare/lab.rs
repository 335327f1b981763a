// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare --lab`: what the lab predicts for each cell, beside what was measured there.
//!
//! The same scenario runs in the lab with the costs of the machine that was measured, once for each column and seed: the
//! host's own scheduler for *stock*, the model of ours for *refuse-yields* and for each policy, whose functions are the same C.

use unspin_agent::PolicyChoice;
use unspin_lab::pool as lab_pool;
use unspin_policy::{
    Control,
    steering::{REFUSE_YIELDS, WindowPolicy},
};
use unspin_report::{Cell, Column, Document, GapClosed, Summary, Table, Unit};
use unspin_scenario::{Length, Overrides, Scenario, format_duration, limits::SEED_MAX};

use crate::{
    commands::{
        compare::{args::PredictionArguments, measure::How, row::Row},
        lab::compare as lab_compare,
    },
    terminal::costs_file,
    terminal::{failure::Failure, interrupt, progress::Steps},
};

/// What the deterministic testbed's operations cost, so that the one binary is enough.
const TESTBED_COSTS: &str = include_str!("../../../../../scenarios/lab/testbed.costs.toml");

/// The least that the lab runs.
const ANY: &str = "iterations = 1\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\nhold = \"1us\"\n";

/// A prediction hits within this ratio, either way: `lab conform` has the same.
const HIT_RATIO: f64 = 1.5;

const COLUMNS: &[Column] = &[
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("lock", "lock", Unit::Text),
    Column::new("pv_page", "pv_page", Unit::Text),
    Column::new("ple_window", "PLE window", Unit::Count),
    Column::new("column", "scheduled by", Unit::Text),
    Column::new("measured_per_s", "measured ops/s", Unit::Count),
    Column::new("predicted_per_s", "lab's ops/s", Unit::Count),
    Column::json_only("predicted_least_per_s", Unit::Count),
    Column::json_only("predicted_most_per_s", Unit::Count),
    Column::new("measured_to_predicted", "measured / lab", Unit::Ratio),
    Column::new("measured_gap_closed", "gap closed", Unit::Ratio),
    Column::new("predicted_gap_closed", "lab's", Unit::Ratio),
    Column::json_only("seeds", Unit::Count),
    Column::new("not_predicted", "not predicted", Unit::Text),
    Column::json_only("scenario_sha256", Unit::Text),
];

/// A scenario that was compared, how, and what came of it: a row for each policy.
pub struct Compared<'a> {
    /// With all overrides in it.
    pub scenario: &'a Scenario,
    /// How it was compared.
    pub how: &'a How,
    /// Its rows.
    pub rows: Vec<&'a Row>,
}

/// One column of one scenario.
struct Line<'a> {
    of: &'a Row,
    column: String,
    measured_per_s: Option<f64>,
    measured_gap_closed: Option<f64>,
    /// What the lab is to run, or why it cannot.
    scenario: Result<Scenario, String>,
    /// By seed.
    predicted_per_s: Vec<f64>,
    predicted_gap_closed: Option<f64>,
}

/// The costs as overrides.
///
/// # Errors
/// A file that cannot be read; or none is named, and it is not the testbed that is measured.
pub fn costs(arguments: &PredictionArguments, in_testbed: bool) -> Result<Vec<String>, Failure> {
    let costs = match &arguments.lab_costs {
        Some(file) => costs_file::overrides_of(file)?,
        None if in_testbed => costs_file::overrides_in(TESTBED_COSTS).map_err(Failure::Usage)?,
        None => {
            return Err(Failure::Usage(
                "--lab knows what things cost in the testbed, not on this host: say --lab-costs FILE; `unspin lab \
                 calibrate kvm --out FILE` measures it"
                    .into(),
            ));
        }
    };
    // Before anything is measured: a cost that the lab does not know.
    let any = Scenario::parse(ANY, "the costs")?;
    changed(&any, &costs, &[]).map_err(Failure::Usage)?;
    Ok(costs)
}

/// Predicts everything that was compared and adds the table.
///
/// # Errors
/// Costs that are not of the lab, too few seeds, Ctrl-C.
pub fn add(
    document: &mut Document,
    all: &[Compared],
    costs: &[String],
    seeds: u32,
) -> Result<(), Failure> {
    let mut lines = Vec::new();
    let mut groups = Vec::new();
    for compared in all.iter().filter(|compared| !compared.rows.is_empty()) {
        let of_group = self::lines(compared, costs);
        groups.push(lines.len()..lines.len() + of_group.len());
        lines.extend(of_group);
    }
    let planned: Vec<Planned> = lines
        .iter()
        .map(|line| (line.column.clone(), line.scenario.clone()))
        .collect();
    for (line, rates) in lines.iter_mut().zip(rates(&planned, seeds)?) {
        line.predicted_per_s = rates;
    }
    for group in groups {
        close(&mut lines[group]);
    }
    document.table(table(&lines));
    let ratios: Vec<f64> = lines.iter().filter_map(ratio).collect();
    let hits = ratios
        .iter()
        .filter(|ratio| (1.0 / HIT_RATIO..=HIT_RATIO).contains(*ratio));
    document.note(format!(
        "{} of {} predictions within {HIT_RATIO} of what was measured; means of {seeds} seeds",
        hits.count(),
        ratios.len()
    ));
    Ok(())
}

/// A column that the lab is to predict: its name, and what is to run there, or why it cannot.
pub type Planned = (String, Result<Scenario, String>);

/// Ideal, stock, refuse-yields (where anything of ours steers), and each policy.
pub fn planned(
    scenario: &Scenario,
    how: &How,
    ple_window: Option<u64>,
    costs: &[String],
) -> Vec<Planned> {
    let mut common: Vec<String> = costs.to_vec();
    if let Length::DurationNs(_) = scenario.length {
        let window_ns = u64::try_from(how.sample.as_nanos()).unwrap_or(u64::MAX);
        let length_ns = scenario.warm_up_ns.saturating_add(window_ns);
        common.push(format!("duration={}", format_duration(length_ns)));
    }
    if let Some(window) = ple_window {
        common.push(format!("host.ple_window={window}"));
    }
    let changed = |more: &[String]| changed(scenario, &common, more);
    let stock = changed(&[]);
    let ideal = stock.clone().and_then(|stock| ideal(&stock));
    let mut planned = vec![("ideal".into(), ideal), ("stock".into(), stock)];
    if how.steers() {
        let refused = steered(&PolicyChoice::default()).and_then(|words| changed(&words));
        planned.push((REFUSE_YIELDS.into(), refused));
    }
    for policy in &how.policies {
        let predicted = steered(policy).and_then(|words| changed(&words));
        planned.push((policy.names(), predicted));
    }
    planned
}

/// What is to be predicted of one scenario, beside what was measured.
fn lines<'a>(compared: &Compared<'a>, costs: &[String]) -> Vec<Line<'a>> {
    let rows = &compared.rows;
    let first = rows[0];
    let planned = planned(compared.scenario, compared.how, first.ple_window, costs);
    let lines = planned.into_iter().map(|(column, scenario)| {
        let of_policy = |row: &&&Row| row.policy.as_deref() == Some(&*column);
        let row = rows.iter().find(of_policy);
        let measured_per_s = match &*column {
            "ideal" => Some(first.ideal_per_s),
            "stock" => Some(first.stock_per_s),
            REFUSE_YIELDS => first.refuse_yields_per_s,
            _ => row.and_then(|row| row.steer_per_s),
        };
        Line {
            of: first,
            measured_per_s,
            measured_gap_closed: row.and_then(|row| row.gap_closed),
            scenario,
            column,
            predicted_per_s: Vec::new(),
            predicted_gap_closed: None,
        }
    });
    lines.collect()
}

/// The policy in the lab's words: under the model of our scheduler, if it steers.
fn steered(policy: &PolicyChoice) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    if policy.steers() {
        words.push("lab.scheduler=steer".into());
        words.push(format!("lab.policy={}", policy.without_its_window()));
    }
    let control = match policy.window() {
        None => return Ok(words),
        Some(WindowPolicy::Fixed(window)) => {
            words.push(format!("host.ple_window={window}"));
            Control::Fixed
        }
        Some(WindowPolicy::Kvm) => Control::Kvm,
        Some(WindowPolicy::Apple(None)) => Control::Apple,
        Some(WindowPolicy::Apple(Some(_))) => {
            return Err("the lab's APPLE has the paper's numbers".into());
        }
    };
    words.push(format!("lab.window_control={}", control.name()));
    Ok(words)
}

/// The scenario with overrides, if the lab can run it.
fn changed(scenario: &Scenario, common: &[String], more: &[String]) -> Result<Scenario, String> {
    let mut overrides = Overrides::default();
    for given in common.iter().chain(more) {
        overrides.set(given).map_err(|error| error.to_string())?;
    }
    let text = scenario.to_toml();
    let changed = Scenario::parse_with(&text, &scenario.name, &scenario.name, &overrides)
        .map_err(|error| error.plain())?;
    let lab = unspin_lab::Lab::new(&changed);
    lab.map_err(|error| error.to_string())?;
    Ok(changed)
}

fn ideal(stock: &Scenario) -> Result<Scenario, String> {
    let lab = unspin_lab::Lab::new(stock).map_err(|error| error.to_string())?;
    let cpus = lab.host().topology.cpus();
    lab_compare::ideal(stock, cpus).ok_or_else(|| "no VM has as many vCPUs as CPUs".to_owned())
}

/// Runs everything that can run from each of so many seeds, on all cores: operations per second of all VMs, by seed.
///
/// # Errors
/// Ctrl-C.
pub fn rates(planned: &[Planned], seeds: u32) -> Result<Vec<Vec<f64>>, Failure> {
    let mut jobs: Vec<(usize, Scenario)> = Vec::new();
    for (place, (_, scenario)) in planned.iter().enumerate() {
        let Ok(scenario) = scenario else {
            continue;
        };
        for seed in 0..u64::from(seeds) {
            let mut scenario = scenario.clone();
            scenario.seed = (scenario.seed + seed) % (SEED_MAX + 1);
            jobs.push((place, scenario));
        }
    }
    let mut results = vec![f64::NAN; jobs.len()];
    let steps = Steps::with_rest(jobs.len(), "predicting");
    let mut finished = 0;
    let rate = |(_, scenario): &(usize, Scenario)| {
        let outcome = lab_pool::run_one(scenario)?;
        Ok::<_, Failure>(outcome.operations(None) as f64 * 1e9 / outcome.window_ns.max(1) as f64)
    };
    lab_pool::each(
        &jobs,
        lab_pool::workers(None),
        &*interrupt::flag()?,
        rate,
        |job, per_s| {
            results[job] = per_s;
            finished += 1;
            steps.done(finished);
            Ok(())
        },
    )?;
    let mut rates = vec![Vec::new(); planned.len()];
    for ((place, _), per_s) in jobs.iter().zip(results) {
        rates[*place].push(per_s);
    }
    Ok(rates)
}

/// What each policy closes of the gap between stock and ideal in the lab; `lines`: those of one scenario.
fn close(lines: &mut [Line]) {
    let (ideal, stock) = (
        lines[0].predicted_per_s.clone(),
        lines[1].predicted_per_s.clone(),
    );
    // Behind ideal and stock, and none where there is one.
    let none = lines
        .get(2)
        .is_some_and(|line| line.column == REFUSE_YIELDS);
    for line in lines.iter_mut().skip(2 + usize::from(none)) {
        let gap = GapClosed::of(&ideal, &stock, &line.predicted_per_s);
        line.predicted_gap_closed = gap.map(|gap| gap.share);
    }
}

fn mean(line: &Line) -> Option<f64> {
    Summary::of(&line.predicted_per_s).map(|summary| summary.mean)
}

fn ratio(line: &Line) -> Option<f64> {
    let predicted = mean(line).filter(|mean| *mean > 0.0)?;
    line.measured_per_s.map(|measured| measured / predicted)
}

fn table(lines: &[Line]) -> Table {
    let mut columns = COLUMNS.to_vec();
    let differs = |different: fn(&Row, &Row) -> bool| {
        lines.iter().any(|line| different(line.of, lines[0].of))
    };
    for column in &mut columns {
        column.json_only |= match column.key {
            "pv_page" => !differs(|one, other| one.pv_page != other.pv_page),
            "ple_window" => !differs(|one, other| one.ple_window != other.ple_window),
            "not_predicted" => lines.iter().all(|line| line.scenario.is_ok()),
            _ => false,
        };
    }
    let title = "What the lab predicts, beside what was measured";
    let mut table = Table::new("lab", title, &columns);
    for line in lines {
        let rates = line.predicted_per_s.iter().copied();
        table.push(vec![
            line.of.shape.clone().into(),
            line.of.lock.clone().into(),
            line.of.pv_page.into(),
            line.of.ple_window.map_or(Cell::Unknown, Cell::Integer),
            line.column.clone().into(),
            line.measured_per_s.into(),
            mean(line).into(),
            rates.clone().reduce(f64::min).into(),
            rates.reduce(f64::max).into(),
            ratio(line).into(),
            line.measured_gap_closed.into(),
            line.predicted_gap_closed.into(),
            line.predicted_per_s.len().into(),
            line.scenario.as_ref().err().cloned().into(),
            line.of.scenario_sha256.clone().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests;
