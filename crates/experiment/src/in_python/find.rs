// SPDX-License-Identifier: MIT OR Apache-2.0
//! Scenarios in which a policy harms (`unspin lab find`), which Python's `unspin_lab` searches for.

use std::path::Path;

use serde::{Deserialize, Serialize};
use unspin_report::row;
use unspin_scenario::{Overrides, ScenarioText};

use super::{Varied, call};
use crate::{Error, Session, sweep::axes_of};

/// How the search is done; see `unspin_lab.find`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FindPlan<'a> {
    /// The policy, as `lab compare` takes it.
    pub policy: &'a str,
    /// Points that are looked at.
    pub trials: u32,
    /// Seeds of each.
    pub seeds: u32,
    /// New seeds of those that looked harmful.
    pub verify_seeds: u32,
    /// Findings at most.
    pub keep: u32,
    /// Of the search itself.
    pub search_seed: u32,
    /// Runs at a time.
    pub workers: Option<u32>,
    /// A new folder for a scenario of each finding.
    pub out: Option<&'a Path>,
}

row! {
    "search", ["lab find"];
    /// A search as a whole.
    #[derive(Clone, Debug, Deserialize)]
    pub struct SearchRow {
        /// The policy.
        policy: String = ("policy", Text),
        /// Points of the space.
        points: u64 = ("points", Count),
        /// Of them, those that were simulated.
        simulated: u64 = ("simulated", Count),
        /// Those that are no scenario: values that do not go together.
        refused: u64 = ("refused", Count),
        /// Those that looked harmful and were simulated again, from new seeds.
        verified: u64 = ("verified", Count),
        /// Those that the policy harms.
        found: u64 = ("found", Count),
    }
}

row! {
    "finding", ["lab find"];
    /// A scenario in which the policy does less than the scenario does without it, the worst first.
    #[derive(Clone, Debug, Deserialize)]
    pub struct FindingRow {
        /// Policy to stock, all VMs together, from seeds that the search did not use; 0.001 where nothing was done under it.
        throughput_ratio_to_stock: f64 = ("to stock", Ratio),
        /// Its 95 % interval; none where nothing was done.
        throughput_ratio_to_stock_low: Option<f64> = ("95 % from", Ratio),
        /// Its 95 % interval.
        throughput_ratio_to_stock_high: Option<f64> = ("to", Ratio),
        /// The same of the VM that lost most.
        worst_vm_ratio: Option<f64> = ("worst VM", Ratio),
        /// By how much the lab's ratio to stock was off in measured cells like this one, either way: the median.
        lab_error: Option<f64> = ("lab off by", Ratio),
        /// Why it is not known: what no measured cell has.
        lab_error_unknown: Option<String>,
        /// What its scenario sets: `key=value key=value`.
        set: String = ("set", Text),
        /// Its scenario's file.
        file: Option<String>,
    }
}

/// What was found.
#[derive(Debug, Deserialize)]
pub struct Found {
    /// The search as a whole.
    pub search: SearchRow,
    /// The worst first.
    pub findings: Vec<FindingRow>,
}

/// Searches the space of that scenario with the values of `set`, as of `lab sweep`.
///
/// # Errors
/// A space or a policy that cannot be, a folder that is not empty; no Python with `unspin_lab` of this build; a run that is stuck, an
/// interrupt.
pub fn find(
    text: &ScenarioText,
    overrides: &Overrides,
    set: &[String],
    plan: FindPlan<'_>,
    session: &Session<'_>,
) -> Result<Found, Error> {
    let (plain, axes) = axes_of(overrides, set)?;
    let varied = Varied::new(text, &plain, &axes);
    // As of `_find.py`: what is verified counts as well.
    let steps = plan.trials as usize + 2 * plan.keep as usize;
    call("find", &varied, plan, ("searching", steps), session)
}
