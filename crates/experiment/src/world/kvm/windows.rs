// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare --policy window=...` and `apple`: who sets the pause-loop windows of the compared VMs, and what the windows
//! cost (APPLE's inefficiency, ruling 17).
//!
//! vCPUs keep the window that they had last, so where windows are compared every column has somebody who sets them: columns
//! without a policy for it have the window that KVM was loaded with, which is what KVM itself would leave alone.

use serde::Deserialize;
use unspin_agent::{WindowEpoch, WindowOptions, WindowSteerer, WindowSums};
use unspin_policy::{Epoch, PAUSE_LEAST_PS, steering::WindowPolicy, window_unit_ps};
use unspin_report::Summary;
use unspin_scenario::Scenario;

use super::Sample;
use crate::{
    Error,
    plan::{Column, Plan},
    row::{lock, shape},
    sample::Samples,
};

/// Who sets the windows of the VMs that run.
pub struct Windows {
    wanted: bool,
    /// What KVM was loaded with; `None`: not known.
    base: Option<u32>,
    steerer: Option<WindowSteerer>,
}

impl Windows {
    /// `wanted`: some column has a policy for windows. Without one nothing is ever set.
    pub fn new(wanted: bool) -> Windows {
        Windows {
            wanted,
            base: None,
            steerer: None,
        }
    }

    /// New VMs run, and begin with that window of KVM's.
    ///
    /// # Errors
    /// As [`WindowSteerer::attach`].
    pub fn start(&mut self, base: Option<u32>) -> Result<(), Error> {
        self.base = base;
        self.set(None)
    }

    /// The VMs have ended.
    pub fn stop(&mut self) {
        self.steerer = None;
    }

    /// From now on windows are that policy's; `None`: KVM's own.
    ///
    /// # Errors
    /// As [`WindowSteerer::attach`]; when KVM's own is not known, and so could not be told from what a policy left behind.
    pub fn set(&mut self, policy: Option<WindowPolicy>) -> Result<(), Error> {
        if !self.wanted {
            return Ok(());
        }
        // One at a time: who comes takes the module that who goes has taken out.
        self.stop();
        let kvms_own = self.base.map(WindowPolicy::Fixed);
        let policy = policy.or(kvms_own).ok_or_else(no_window)?;
        let options = WindowOptions {
            processes: vec![std::process::id()],
            ..WindowOptions::new(policy)
        };
        let steerer = WindowSteerer::attach(&options)?;
        self.steerer = Some(steerer);
        Ok(())
    }

    /// A sample begins; `None`: nobody sets windows.
    ///
    /// # Errors
    /// When the kernel does not let it be read.
    pub fn begin(&self) -> Result<Option<WindowSums>, Error> {
        let Some(steerer) = &self.steerer else {
            return Ok(None);
        };
        steerer.drain()?;
        let sums = steerer.sums()?;
        Ok(Some(sums))
    }

    /// It ends.
    ///
    /// # Errors
    /// As [`Windows::begin`]; when a window was refused or an epoch lost.
    pub fn end(&self, begin: &WindowSums) -> Result<Option<WindowSample>, Error> {
        let Some(steerer) = &self.steerer else {
            return Ok(None);
        };
        let sums = steerer.sums()?;
        let epochs = steerer.drain()?;
        let totals = steerer.totals()?;
        if totals.refusals + totals.lost_epochs + totals.left_alone > 0 {
            return Err(anyhow::anyhow!("windows were not set as they should: {totals:?}").into());
        }
        Ok(Some(WindowSample {
            sums: since(begin, &sums),
            epochs: epochs.iter().map(mean_of).collect(),
        }))
    }
}

fn no_window() -> Error {
    Error::Usage(
        "windows cannot be compared: KVM does not say which window it was loaded with. Load kvm_amd or kvm_intel with \
         pause-loop exits (`unspin doctor` says whether this CPU has them)"
            .into(),
    )
}

fn since(begin: &WindowSums, end: &WindowSums) -> WindowSums {
    WindowSums {
        exits: end.exits - begin.exits,
        window_units: end.window_units - begin.window_units,
        mean_units: end.mean_units - begin.mean_units,
        handling_ns: end.handling_ns - begin.handling_ns,
        cpu_ns: end.cpu_ns - begin.cpu_ns,
        // The quickest window, whenever it was.
        spun_ns: end.spun_ns,
        spun_units: end.spun_units,
    }
}

/// An epoch's VM and its mean window (ruling 19).
fn mean_of(epoch: &WindowEpoch) -> (u32, f64) {
    (epoch.vm, epoch.mean_units as f64 / epoch.exits as f64)
}

/// One sample's pause-loop exits.
#[derive(Clone, Debug, Default)]
pub struct WindowSample {
    /// Of all VMs.
    pub sums: WindowSums,
    /// VM and mean window of each epoch that ended in it.
    pub epochs: Vec<(u32, f64)>,
}

impl WindowSample {
    /// The time of one unit of the window.
    fn unit_ps(&self) -> Option<u64> {
        window_unit_ps(self.sums.spun_ns, self.sums.spun_units, PAUSE_LEAST_PS)
    }

    /// Inefficiency; `None`: no exits that tell how long a window takes.
    pub fn inefficiency_percent(&self) -> Option<f64> {
        let sums = &self.sums;
        let epoch = Epoch::of_sums(sums.exits, sums.window_units, sums.handling_ns, sums.cpu_ns);
        let ppm = epoch.inefficiency_ppm(self.unit_ps())?;
        Some(ppm as f64 / 1e4)
    }

    /// The VM's mean window at its exits.
    pub fn mean_window(&self) -> Option<f64> {
        let exits = self.sums.exits;
        (exits > 0).then(|| self.sums.mean_units as f64 / exits as f64)
    }

    /// Squares of what its epochs' windows are from the mean of their VM's, and degrees of freedom.
    fn spread(&self) -> (f64, usize) {
        let mut sum = (0.0, 0);
        let last = self.epochs.iter().map(|(vm, _)| *vm).max();
        for vm in 0..=last.unwrap_or(0) {
            let of_vm = self.epochs.iter().filter(|(of, _)| *of == vm);
            let means: Vec<f64> = of_vm.map(|(_, mean)| *mean).collect();
            let Some(summary) = Summary::of(&means) else {
                continue;
            };
            let squares = means.iter().map(|mean| (mean - summary.mean).powi(2));
            sum.0 += squares.sum::<f64>();
            sum.1 += means.len() - 1;
        }
        sum
    }
}

unspin_report::row! {
    "windows", ["compare"];
    /// The pause-loop windows of one column, where windows are compared.
    #[derive(Clone, Debug, Deserialize)]
    pub struct WindowRow {
        /// VMs x vCPUs of the scenario.
        pub shape: String = ("VMs x vCPUs", Text),
        /// The first group's lock.
        pub lock: String = ("lock", Text),
        /// `stock`, `refuse-yields` or the policy.
        pub column: String = ("window by", Text),
        /// Acquisitions per second of all VMs together, mean over the samples.
        pub operations_per_s: f64 = ("ops/s", Count),
        /// Standard deviation between samples.
        pub operations_deviation_per_s: f64 = ("+-", Count),
        /// Mean over the samples; none when it is not known of one.
        pub inefficiency_percent: Option<f64> = ("inefficiency %", Percent),
        /// Standard deviation between samples.
        pub inefficiency_deviation_percent: Option<f64> = ("+-", Percent),
        /// The mean window at the exits, mean over the samples.
        pub window_mean: Option<f64> = ("window, mean", Count),
        /// Epochs of 1,000 exits that ended in a sample.
        pub epochs: u64 = ("epochs", Count),
        /// Standard deviation of the VM's mean window in its epochs, within samples; none without two in any.
        pub window_deviation: Option<f64> = ("+- between epochs", Count),
        /// Time of one unit of the window, mean over the samples.
        pub unit_ns: Option<f64> = ("of each", Nanoseconds),
        /// Pause-loop exits in all samples.
        pub exits: u64 = ("PLE exits", Count),
        /// Samples.
        pub samples: u64 = ("samples", Count),
        /// Of the scenario's canonical text.
        pub scenario_sha256: String,
    }
}

/// A row for each column whose windows were set.
pub fn rows(scenario: &Scenario, plan: &Plan, samples: &Samples<Sample>) -> Vec<WindowRow> {
    let fixed = [Column::Stock, Column::StockAgain, Column::RefuseYields].into_iter();
    let columns = fixed.chain(plan.judged().into_iter().map(|(column, _)| column));
    columns
        .filter_map(|column| {
            let windows = samples.of(column).into_iter();
            let windows: Vec<WindowSample> = windows
                .map(|sample| sample.windows.clone())
                .collect::<Option<_>>()?;
            let rates = samples.rates(column);
            row(scenario, plan.column_name(column), &rates, &windows)
        })
        .collect()
}

fn row(
    scenario: &Scenario,
    column: String,
    rates: &[f64],
    windows: &[WindowSample],
) -> Option<WindowRow> {
    let summary = |of: &dyn Fn(&WindowSample) -> Option<f64>| {
        let values: Option<Vec<f64>> = windows.iter().map(of).collect();
        values.and_then(|values| Summary::of(&values))
    };
    let operations = Summary::of(rates)?;
    let inefficiency = summary(&WindowSample::inefficiency_percent);
    let spreads = windows.iter().map(WindowSample::spread);
    let (squares, freedom) = spreads.fold((0.0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    Some(WindowRow {
        shape: shape(scenario),
        lock: lock(scenario),
        column,
        operations_per_s: operations.mean,
        operations_deviation_per_s: operations.deviation,
        inefficiency_percent: inefficiency.map(|of| of.mean),
        inefficiency_deviation_percent: inefficiency.map(|of| of.deviation),
        window_mean: summary(&WindowSample::mean_window).map(|of| of.mean),
        epochs: windows.iter().map(|one| one.epochs.len() as u64).sum(),
        window_deviation: (freedom > 0).then(|| (squares / freedom as f64).sqrt()),
        unit_ns: summary(&|one| one.unit_ps().map(|ps| ps as f64 / 1e3)).map(|of| of.mean),
        exits: windows.iter().map(|one| one.sums.exits).sum(),
        samples: rates.len() as u64,
        scenario_sha256: scenario.hash(),
    })
}

#[cfg(test)]
mod tests;
