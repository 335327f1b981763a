// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab predicts for each cell, beside what was measured there.
//!
//! The same scenario runs in the lab with the costs of the machine that was measured, once for each column and seed: the
//! host's own scheduler for *stock*, the model of ours for *refuse-yields* and for each policy, whose functions are the same C.

use std::path::Path;

use serde::Deserialize;
use unspin_agent::PolicyChoice;
use unspin_lab::pool;
use unspin_policy::{
    Control,
    steering::{REFUSE_YIELDS, WindowPolicy},
};
use unspin_report::{GapClosed, Summary};
use unspin_scenario::{Length, Overrides, Scenario, format_duration, limits::SEED_MAX};

use crate::{
    Error, Row, Session, costs, kvm,
    lab::ideal_of_host,
    plan::{Plan, nanoseconds},
    progress::Work,
};

/// The least that the lab runs.
const ANY: &str = "iterations = 1\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\nhold = \"1us\"\n";

/// A prediction hits within this ratio, either way: `lab conform` has the same.
pub const HIT_RATIO: f64 = 1.5;

/// A scenario that was compared, how, and what came of it: a row for each policy.
pub struct Compared<'a> {
    /// With all overrides in it.
    pub scenario: &'a Scenario,
    /// How it was compared.
    pub plan: &'a Plan,
    /// Its rows.
    pub rows: Vec<&'a Row<kvm::Figures>>,
}

unspin_report::row! {
    "lab", ["compare", "demo"];
    /// What the lab predicts of one column of a scenario, beside what was measured.
    #[derive(Clone, Debug, Deserialize)]
    pub struct PredictionRow {
        /// VMs x vCPUs.
        pub shape: String = ("VMs x vCPUs", Text),
        /// The first group's lock.
        pub lock: String = ("lock", Text),
        /// Whether all guests say what they hold and wait for.
        pub pv_page: bool = ("pv_page", Text),
        /// KVM's pause-loop window, in PAUSEs (AMD) or cycles (Intel).
        pub ple_window: Option<u64> = ("PLE window", Count),
        /// `ideal`, `stock`, `refuse-yields` or the policy.
        pub column: String = ("scheduled by", Text),
        /// Acquisitions per second of all VMs together.
        pub measured_per_s: Option<f64> = ("measured ops/s", Count),
        /// The lab's, mean over the seeds.
        pub predicted_per_s: Option<f64> = ("lab's ops/s", Count),
        /// The least of a seed.
        pub predicted_least_per_s: Option<f64>,
        /// The most of a seed.
        pub predicted_most_per_s: Option<f64>,
        /// The ratio of the two.
        pub measured_to_predicted: Option<f64> = ("measured / lab", Ratio),
        /// What the policy closes of the measured gap.
        pub measured_gap_closed: Option<f64> = ("gap closed", Ratio),
        /// What it closes of the lab's own gap.
        pub predicted_gap_closed: Option<f64> = ("lab's", Ratio),
        /// Seeds that the lab ran.
        pub seeds: u64,
        /// Why the lab cannot run it; none when it can.
        pub not_predicted: Option<String> = ("not predicted", Text),
        /// Of the scenario's canonical text.
        pub scenario_sha256: String,
    }
}

impl PredictionRow {
    /// Whether the prediction hits; `None` where there is none.
    pub fn hits(&self) -> Option<bool> {
        let ratio = self.measured_to_predicted?;
        Some((1.0 / HIT_RATIO..=HIT_RATIO).contains(&ratio))
    }
}

/// Whether the lab knows every one of these costs, each an override of a scenario.
///
/// # Errors
/// [`Error::Usage`] names the one that it does not.
fn check_costs(costs: &[String]) -> Result<(), Error> {
    let any = Scenario::parse(ANY, "the costs")?;
    changed(&any, costs, &[]).map_err(Error::Usage)?;
    Ok(())
}

/// What things cost where it is measured, as overrides: those of that file of `lab calibrate`, or of the testbed.
///
/// # Errors
/// [`Error::Usage`]: a file that cannot be read, a cost that the lab does not know; or no file is named, and it is not the
/// testbed that is measured.
pub fn costs(file: Option<&Path>, in_testbed: bool) -> Result<Vec<String>, Error> {
    let costs = match file {
        Some(file) => costs::overrides_of(file)?,
        None if in_testbed => costs::overrides_in(costs::TESTBED).map_err(Error::Usage)?,
        None => {
            return Err(Error::Usage(
                "--lab knows what things cost in the testbed, not on this host: say --lab-costs FILE; `unspin lab \
                 calibrate kvm --out FILE` measures it"
                    .into(),
            ));
        }
    };
    // Before anything is measured.
    check_costs(&costs)?;
    Ok(costs)
}

/// Predicts everything that was compared, from so many seeds each.
///
/// # Errors
/// Costs that are not of the lab, an interrupt.
pub fn predict(
    all: &[Compared],
    costs: &[String],
    seeds: u32,
    session: &Session,
) -> Result<Vec<PredictionRow>, Error> {
    let (mut rows, mut plans, mut groups) = (Vec::new(), Vec::new(), Vec::new());
    for compared in all.iter().filter(|compared| !compared.rows.is_empty()) {
        let ple_window = compared.rows[0].world.ple_window;
        let of_group = planned(compared.scenario, compared.plan, ple_window, costs);
        groups.push(rows.len()..rows.len() + of_group.len());
        rows.extend(of_group.iter().map(|planned| measured(compared, planned)));
        plans.extend(of_group);
    }
    let rates = rates(&plans, seeds, session)?;
    for (row, rates) in rows.iter_mut().zip(&rates) {
        let mean = Summary::of(rates).map(|summary| summary.mean);
        row.predicted_per_s = mean;
        row.predicted_least_per_s = rates.iter().copied().reduce(f64::min);
        row.predicted_most_per_s = rates.iter().copied().reduce(f64::max);
        let mean = mean.filter(|mean| *mean > 0.0);
        row.measured_to_predicted = row.measured_per_s.zip(mean).map(|(of, to)| of / to);
        row.seeds = rates.len() as u64;
    }
    for group in groups {
        close(&mut rows[group.clone()], &rates[group]);
    }
    Ok(rows)
}

/// What was measured of a column, without a prediction yet.
fn measured(compared: &Compared, (column, scenario): &Planned) -> PredictionRow {
    let first = compared.rows[0];
    let of_policy = |row: &&&Row<kvm::Figures>| row.policy.as_deref() == Some(column.as_str());
    let row = compared.rows.iter().find(of_policy);
    PredictionRow {
        shape: first.shape.clone(),
        lock: first.world.lock.clone(),
        pv_page: first.world.pv_page,
        ple_window: first.world.ple_window,
        column: column.clone(),
        measured_per_s: match column.as_str() {
            "ideal" => Some(first.world.ideal_per_s),
            "stock" => Some(first.world.stock_per_s),
            REFUSE_YIELDS => first.world.refuse_yields_per_s,
            _ => row.and_then(|row| row.world.steer_per_s),
        },
        predicted_per_s: None,
        predicted_least_per_s: None,
        predicted_most_per_s: None,
        measured_to_predicted: None,
        measured_gap_closed: row.and_then(|row| row.gap_closed).map(|gap| gap.value),
        predicted_gap_closed: None,
        seeds: 0,
        not_predicted: scenario.as_ref().err().cloned(),
        scenario_sha256: first.world.scenario_sha256.clone(),
    }
}

/// A column that the lab is to predict: its name, and what is to run there, or why it cannot.
pub type Planned = (String, Result<Scenario, String>);

/// Ideal, stock, refuse-yields (where anything of ours steers), each policy and each rival.
pub fn planned(
    scenario: &Scenario,
    plan: &Plan,
    ple_window: Option<u64>,
    costs: &[String],
) -> Vec<Planned> {
    let mut common: Vec<String> = costs.to_vec();
    if let Length::DurationNs(_) = scenario.length {
        let length_ns = scenario.warm_up_ns.saturating_add(nanoseconds(plan.sample));
        common.push(format!("duration={}", format_duration(length_ns)));
    }
    if let Some(window) = ple_window {
        common.push(format!("host.ple_window={window}"));
    }
    let changed = |more: &[String]| changed(scenario, &common, more);
    let stock = changed(&[]);
    let ideal = stock.clone().and_then(|stock| ideal(&stock));
    let mut planned = vec![("ideal".into(), ideal), ("stock".into(), stock)];
    if plan.steers() {
        let refused = steered(&PolicyChoice::default()).and_then(|words| changed(&words));
        planned.push((REFUSE_YIELDS.into(), refused));
    }
    for policy in &plan.policies {
        let predicted = steered(policy).and_then(|words| changed(&words));
        planned.push((policy.names(), predicted));
    }
    for rival in &plan.rivals {
        let why = "the lab has no model of it".to_owned();
        planned.push((rival.name().to_owned(), Err(why)));
    }
    planned
}

/// The policy in the lab's words: under the model of our scheduler, if it steers.
fn steered(policy: &PolicyChoice) -> Result<Vec<String>, String> {
    policy.without_auto("the lab")?;
    policy.without_tune("the lab")?;
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
    ideal_of_host(stock, cpus).ok_or_else(|| "no VM has as many vCPUs as CPUs".to_owned())
}

/// Runs everything that can run from each of so many seeds, on all cores: operations per second of all VMs, by seed.
///
/// # Errors
/// An interrupt.
pub fn rates(planned: &[Planned], seeds: u32, session: &Session) -> Result<Vec<Vec<f64>>, Error> {
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
    let work = Work::EvenSteps(jobs.len());
    session.progress.begin("predicting", work);
    let mut results = vec![f64::NAN; jobs.len()];
    let mut finished = 0;
    let interrupt = &session.interrupt;
    let rate = |(_, scenario): &(usize, Scenario)| -> Result<f64, Error> {
        let outcome = pool::run_one(scenario, interrupt)?;
        Ok(outcome.operations(None) as f64 * 1e9 / outcome.window_ns.max(1) as f64)
    };
    let workers = pool::workers(None);
    let ended = pool::each(&jobs, workers, interrupt, rate, |job, per_s| {
        results[job] = per_s;
        finished += 1;
        session.progress.done(finished);
        Ok(())
    });
    session.progress.end();
    ended?;
    let mut rates = vec![Vec::new(); planned.len()];
    for ((place, _), per_s) in jobs.iter().zip(results) {
        rates[*place].push(per_s);
    }
    Ok(rates)
}

/// What each policy closes of the gap between stock and ideal in the lab, of one scenario.
fn close(rows: &mut [PredictionRow], rates: &[Vec<f64>]) {
    // Ideal and stock come first.
    let (ideal, stock) = (&rates[0], &rates[1]);
    // Then none, where there is one.
    let none = rows.get(2).is_some_and(|row| row.column == REFUSE_YIELDS);
    let first = 2 + usize::from(none);
    for (row, policy) in rows.iter_mut().zip(rates).skip(first) {
        let gap = GapClosed::of(ideal, stock, policy);
        row.predicted_gap_closed = gap.map(|gap| gap.share);
    }
}

#[cfg(test)]
mod tests;
