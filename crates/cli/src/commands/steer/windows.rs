// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer --policy window=...` and `apple`: the windows of VMs, by epochs of 1,000 pause-loop exits; or, without the module
//! that sets windows, the spin thresholds of guests, by epochs of as many waits that the guest ended.

use std::collections::BTreeMap;

use unspin_agent::{
    Disclosures, PleSource, WindowBound, WindowEpoch, WindowOptions, WindowSteerer, WindowTotals,
    WindowVendor,
};
use unspin_policy::steering::WindowPolicy;
use unspin_report::{Document, Table, row};

use crate::{commands::steer::args::SteerArguments, terminal::failure::Failure};

row! {
    "windows", ["steer"];
    /// The pause-loop window, or the spin threshold, of a VM.
    #[derive(Debug, PartialEq)]
    struct VmRow {
        /// The VM's number.
        vm: u32 = ("VM", Count),
        /// Its process.
        process: String = ("process", Text),
        /// What is set: `window`, or `threshold` in guests with a pv page.
        sets: &'static str = ("sets", Text),
        /// Its vCPUs.
        vcpus: u32 = ("vCPUs", Count),
        /// Epochs of 1,000 pause-loop exits (threshold: of 1,000 waits that the guest ended).
        epochs: usize = ("epochs", Count),
        /// Mean over epochs; PAUSEs (AMD), TSC cycles (Intel) or spins (threshold).
        window_mean: Option<f64> = ("window, mean", Count),
        /// Standard deviation over epochs, same unit; null below two.
        window_deviation: Option<f64> = ("std deviation", Count),
        /// That of the last epoch, same unit.
        window_last: Option<f64> = ("last", Count),
        /// How long one such unit takes; ns.
        unit_ns: Option<f64> = ("of each", Nanoseconds),
        /// Mean share of CPU time spun through windows and handling exits (APPLE, ruling 17); percent.
        inefficiency_percent: Option<f64> = ("inefficiency %", Percent),
    }
}

row! {
    "window_epochs", ["steer"];
    /// One epoch of a VM.
    struct EpochRow {
        /// The VM's number.
        vm: u32 = ("VM", Count),
        /// When it began, host's monotonic clock; ns.
        begin_ns: u64 = ("begin", Nanoseconds),
        /// When it ended, same clock; ns.
        end_ns: u64 = ("end", Nanoseconds),
        /// The window that was set at its end; units as in `windows`.
        window: u64 = ("window", Count),
        /// Mean window of its exits (ruling 19).
        window_mean: f64 = ("mean", Count),
        /// Time in which its exits were handled; ns.
        handling_ns: u64 = ("handling", Nanoseconds),
        /// CPU time of the VM's vCPUs in it; ns.
        cpu_ns: u64 = ("CPU time", Nanoseconds),
        /// Share of that spun through windows and handling exits; percent.
        inefficiency_percent: Option<f64> = ("inefficiency %", Percent),
    }
}

/// What sets windows, if anything, and the epochs so far.
pub struct Windows {
    steerer: Option<WindowSteerer>,
    epochs: Vec<WindowEpoch>,
}

/// The same when it is over.
pub struct WindowsDone {
    epochs: Vec<WindowEpoch>,
    /// `None`: nothing set windows.
    seen: Option<(WindowTotals, WindowBound)>,
}

impl Windows {
    /// Sets windows, or thresholds, from now on where a policy does.
    ///
    /// # Errors
    /// What is missing or in the way.
    pub fn attach(
        arguments: &SteerArguments,
        policy: Option<WindowPolicy>,
        disclosures: &Disclosures,
    ) -> Result<Windows, Failure> {
        if policy.is_some() && !arguments.cgroups.is_empty() {
            return Err(Failure::Usage(
                "pause-loop windows are set for --vm PROCESS or for everyone, not by --cgroup"
                    .into(),
            ));
        }
        let options = policy.map(|policy| WindowOptions {
            policy,
            processes: arguments.vms.clone(),
            module: source(arguments),
            disclosures: disclosures.clone(),
        });
        let steerer = options.as_ref().map(WindowSteerer::attach).transpose();
        Ok(Windows {
            steerer: steerer.map_err(anyhow::Error::from)?,
            epochs: Vec::new(),
        })
    }

    /// Whether the thresholds of guests are set in place of windows.
    pub fn sets_thresholds(&self) -> bool {
        let bound = self.steerer.as_ref().map(WindowSteerer::bound);
        bound == Some(WindowBound::Threshold)
    }

    /// Takes over what has ended since the last call.
    ///
    /// # Errors
    /// When the kernel does not let it be read.
    pub fn look(&mut self) -> Result<(), Failure> {
        if let Some(steerer) = &self.steerer {
            self.epochs
                .extend(steerer.drain().map_err(anyhow::Error::from)?);
        }
        Ok(())
    }

    /// Windows are set no more.
    ///
    /// # Errors
    /// As `look`.
    pub fn detach(mut self) -> Result<WindowsDone, Failure> {
        self.look()?;
        let totals = self.steerer.as_ref().map(WindowSteerer::totals).transpose();
        let totals = totals.map_err(anyhow::Error::from)?;
        let bound = self.steerer.as_ref().map(WindowSteerer::bound);
        Ok(WindowsDone {
            epochs: self.epochs,
            seen: totals.zip(bound),
        })
    }
}

/// What `--ple-module` says.
fn source(arguments: &SteerArguments) -> PleSource {
    match &arguments.ple_module {
        _ if arguments.sets_thresholds() => PleSource::Nowhere,
        Some(file) => PleSource::File(file.clone()),
        None => PleSource::Installed,
    }
}

/// What is set, in one word, and the table's title.
fn title_and_unit(bound: WindowBound) -> (&'static str, &'static str) {
    match bound {
        WindowBound::Window(WindowVendor::Amd) => (
            "window",
            "Windows in PAUSEs, by epochs of 1,000 pause-loop exits",
        ),
        WindowBound::Window(WindowVendor::Intel) => (
            "window",
            "Windows in TSC cycles, by epochs of 1,000 pause-loop exits",
        ),
        WindowBound::Threshold => (
            "threshold",
            "Guests' spin thresholds in spins, by epochs of 1,000 waits that ended in a halt, a yield or a call for help",
        ),
    }
}

impl WindowsDone {
    /// A row for each VM; with `each_epoch` also one for each epoch.
    pub fn add_tables(&self, document: &mut Document, each_epoch: bool) {
        let Some((totals, bound)) = &self.seen else {
            return;
        };
        let mut vms: BTreeMap<u32, Vec<&WindowEpoch>> = BTreeMap::new();
        for epoch in &self.epochs {
            vms.entry(epoch.vm).or_default().push(epoch);
        }
        let (sets, title) = title_and_unit(*bound);
        let rows = vms.iter().map(|(vm, epochs)| row(*vm, sets, epochs));
        document.table(Table::of(title, rows));
        if each_epoch {
            document.table(Table::of("Epochs", self.epochs.iter().map(epoch_row)));
        }
        document.note(match bound {
            WindowBound::Window(_) => format!(
                "{} pause-loop exits, {} windows changed, {} not let be changed, {} epochs lost, {} exits of unknown vCPUs",
                totals.exits, totals.changes, totals.refusals, totals.lost_epochs, totals.left_alone
            ),
            WindowBound::Threshold => format!(
                "{} waits, {} vCPUs with a page to be told in, {} times told another threshold, {} pages not to be read or written, \
                 {} epochs lost, {} exits of unknown vCPUs",
                totals.exits,
                totals.pv_page,
                totals.changes,
                totals.lost_pv_pages,
                totals.lost_epochs,
                totals.left_alone
            ),
        });
    }
}

/// Ruling 19: the mean over the VM's vCPUs, and that over the epoch's exits.
fn mean_window(epoch: &WindowEpoch) -> f64 {
    epoch.mean_units as f64 / epoch.exits as f64
}

fn inefficiency_percent(epoch: &WindowEpoch) -> Option<f64> {
    let known = epoch.inefficiency_ppm != u64::MAX;
    known.then_some(epoch.inefficiency_ppm as f64 / 1e4)
}

fn row(vm: u32, sets: &'static str, epochs: &[&WindowEpoch]) -> VmRow {
    let windows: Vec<f64> = epochs.iter().map(|epoch| mean_window(epoch)).collect();
    let known: Vec<f64> = epochs
        .iter()
        .filter_map(|epoch| inefficiency_percent(epoch))
        .collect();
    let last = epochs.last().expect("a VM is there for its epochs");
    let unit_ns = (last.unit_ps != u64::MAX).then_some(last.unit_ps as f64 / 1e3);
    VmRow {
        vm,
        process: last.process.to_string(),
        sets,
        vcpus: last.vcpus,
        epochs: epochs.len(),
        window_mean: mean(&windows),
        window_deviation: deviation(&windows),
        window_last: windows.last().copied(),
        unit_ns,
        inefficiency_percent: mean(&known),
    }
}

fn epoch_row(epoch: &WindowEpoch) -> EpochRow {
    EpochRow {
        vm: epoch.vm,
        begin_ns: epoch.begin_ns,
        end_ns: epoch.end_ns,
        window: epoch.window.into(),
        window_mean: mean_window(epoch),
        handling_ns: epoch.handling_ns,
        cpu_ns: epoch.cpu_ns,
        inefficiency_percent: inefficiency_percent(epoch),
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Of a sample: `None` below two.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vms_row_is_of_its_epochs() {
        let epoch = |window: u64, inefficiency_ppm| WindowEpoch {
            exits: 1_000,
            mean_units: window * 1_000,
            unit_ps: 130_000,
            inefficiency_ppm,
            vcpus: 4,
            ..WindowEpoch::default()
        };
        let epochs = [
            epoch(200, 100_000),
            epoch(400, u64::MAX),
            epoch(600, 300_000),
        ];
        let row = row(3, "window", &epochs.iter().collect::<Vec<_>>());
        let expected = VmRow {
            vm: 3,
            process: "0".into(),
            sets: "window",
            vcpus: 4,
            epochs: 3,
            window_mean: Some(400.0),
            window_deviation: Some(200.0),
            window_last: Some(600.0),
            unit_ns: Some(130.0),
            inefficiency_percent: Some(20.0),
        };
        assert_eq!(row, expected);
        assert_eq!((mean(&[]), deviation(&[1.0])), (None, None));
    }
}
