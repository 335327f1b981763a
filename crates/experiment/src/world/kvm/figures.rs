// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a row says of VMs under KVM beside what rows of all worlds say. The fields are keys of the JSON rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unspin_analysis::explain::cause::Cause;
use unspin_report::{Summary, collapsed_share};
use unspin_scenario::Scenario;

use super::{Facts, Sample};
use crate::{
    plan::{Column, Plan, nanoseconds},
    row,
    sample::{Sample as _, Samples},
};

/// A sample below this fraction of the ideal's mean counts as collapsed: stock is bimodal, and a mean hides that.
const COLLAPSED_BELOW: f64 = 0.5;

/// Rates are acquisitions of all VMs together; means over the pairs.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Figures {
    /// The lock's name.
    pub lock: String,
    /// Whether all guests say what they hold and wait for.
    pub pv_page: bool,
    /// KVM's pause-loop window, in PAUSEs (AMD) or cycles (Intel); none where KVM has no such exits.
    pub ple_window: Option<u64>,
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

impl Figures {
    /// What all policies of a cell share.
    pub(super) fn of(
        scenario: &Scenario,
        plan: &Plan,
        samples: &Samples<Sample>,
        facts: &Facts,
        replay: &str,
    ) -> Figures {
        let rates = |column| samples.rates(column);
        let (stock_mean, stock_deviation) = mean_and_deviation(&rates(Column::Stock));
        let (ideal_mean, ideal_deviation) = mean_and_deviation(&rates(Column::Ideal));
        let why = facts.why.as_ref();
        let causes = why.and_then(|why| why.causes_percent);
        let cause = |of: Cause| causes.map(|causes| causes[of.index()]);
        Figures {
            lock: row::lock(scenario),
            pv_page: scenario.vms.iter().all(|vm| vm.pv_page),
            ple_window: facts.ple_window,
            ideal_per_s: ideal_mean,
            ideal_deviation_per_s: ideal_deviation,
            stock_per_s: stock_mean,
            stock_deviation_per_s: stock_deviation,
            refuse_yields_per_s: Summary::of(&rates(Column::RefuseYields)).map(|none| none.mean),
            steer_per_s: None,
            steer_deviation_per_s: None,
            stock_collapsed_share_percent: collapsed_percent(&rates(Column::Stock), ideal_mean),
            steer_collapsed_share_percent: None,
            ideal_spin_share_percent: spin_share_percent(&samples.of(Column::Ideal)),
            stock_spin_share_percent: spin_share_percent(&samples.of(Column::Stock)),
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
            window_ns: nanoseconds(plan.sample),
            discard_ns: nanoseconds(plan.discard),
            seed: scenario.seed,
            scenario_sha256: scenario.hash(),
            replay: replay.to_owned(),
        }
    }

    /// With what these samples of a policy say.
    pub(super) fn steered(self, samples: &[&Sample]) -> Figures {
        let rates: Vec<f64> = samples.iter().map(|sample| sample.per_second()).collect();
        let summary = Summary::of(&rates);
        Figures {
            steer_per_s: summary.map(|summary| summary.mean),
            steer_deviation_per_s: summary.map(|summary| summary.deviation),
            steer_collapsed_share_percent: Some(collapsed_percent(&rates, self.ideal_per_s)),
            steer_spin_share_percent: spin_share_percent(samples),
            ..self
        }
    }
}

/// Not finite without samples; then there is no row either.
fn mean_and_deviation(rates: &[f64]) -> (f64, f64) {
    Summary::of(rates).map_or((f64::NAN, f64::NAN), |summary| {
        (summary.mean, summary.deviation)
    })
}

fn spin_share_percent(samples: &[&Sample]) -> Option<f64> {
    let shares: Vec<f64> = samples
        .iter()
        .map(|sample| sample.spin_share_percent)
        .collect();
    Summary::of(&shares)
        .map(|summary| summary.mean)
        .filter(|mean| mean.is_finite())
}

fn collapsed_percent(rates: &[f64], ideal: f64) -> f64 {
    100.0 * collapsed_share(rates, ideal, COLLAPSED_BELOW)
}
