// SPDX-License-Identifier: MIT OR Apache-2.0
//! Windows of VMs, by epochs of 1,000 pause-loop exits; or, without the module that sets windows, the spin thresholds of guests,
//! by epochs of as many waits that the guest ended.

use std::collections::BTreeMap;

use unspin_report::row;

use crate::{WindowBound, WindowEpoch, WindowError, WindowOptions, WindowSteerer, WindowTotals};

row! {
    "windows", ["steer"];
    /// The pause-loop window, or the spin threshold, of a VM.
    #[derive(Debug, PartialEq)]
    pub struct WindowVmRow {
        /// The VM's number.
        pub vm: u32 = ("VM", Count),
        /// Its process.
        pub process: String = ("process", Text),
        /// What is set: `window`, or `threshold` in guests with a pv page.
        pub sets: &'static str = ("sets", Text),
        /// Its vCPUs.
        pub vcpus: u32 = ("vCPUs", Count),
        /// Epochs of 1,000 pause-loop exits (threshold: of 1,000 waits that the guest ended).
        pub epochs: usize = ("epochs", Count),
        /// Mean over epochs; PAUSEs (AMD), TSC cycles (Intel) or spins (threshold).
        pub window_mean: Option<f64> = ("window, mean", Count),
        /// Standard deviation over epochs, same unit; null below two.
        pub window_deviation: Option<f64> = ("std deviation", Count),
        /// That of the last epoch, same unit.
        pub window_last: Option<f64> = ("last", Count),
        /// How long one such unit takes; ns.
        pub unit_ns: Option<f64> = ("of each", Nanoseconds),
        /// Mean share of CPU time spun through windows and handling exits (APPLE, ruling 17); percent.
        pub inefficiency_percent: Option<f64> = ("inefficiency %", Percent),
    }
}

row! {
    "window_epochs", ["steer"];
    /// One epoch of a VM.
    pub struct WindowEpochRow {
        /// The VM's number.
        pub vm: u32 = ("VM", Count),
        /// When it began, host's monotonic clock; ns.
        pub begin_ns: u64 = ("begin", Nanoseconds),
        /// When it ended, same clock; ns.
        pub end_ns: u64 = ("end", Nanoseconds),
        /// The window that was set at its end; units as in `windows`.
        pub window: u64 = ("window", Count),
        /// Mean window of its exits (ruling 19).
        pub window_mean: f64 = ("mean", Count),
        /// Time in which its exits were handled; ns.
        pub handling_ns: u64 = ("handling", Nanoseconds),
        /// CPU time of the VM's vCPUs in it; ns.
        pub cpu_ns: u64 = ("CPU time", Nanoseconds),
        /// Share of that spun through windows and handling exits; percent.
        pub inefficiency_percent: Option<f64> = ("inefficiency %", Percent),
    }
}

/// Who sets windows, and the epochs so far.
pub(super) struct Windows {
    steerer: WindowSteerer,
    epochs: Vec<WindowEpoch>,
}

/// The same when it is over.
pub struct WindowFigures {
    /// In the order in which they ended.
    pub epochs: Vec<WindowEpoch>,
    /// Sums since attach.
    pub totals: WindowTotals,
    /// What was set.
    pub bound: WindowBound,
}

impl Windows {
    pub(super) fn attach(options: &WindowOptions) -> Result<Windows, WindowError> {
        Ok(Windows {
            steerer: WindowSteerer::attach(options)?,
            epochs: Vec::new(),
        })
    }

    pub(super) fn sets_thresholds(&self) -> bool {
        self.steerer.bound() == WindowBound::Threshold
    }

    /// Takes over what has ended since the last call.
    pub(super) fn poll(&mut self) -> Result<(), WindowError> {
        self.epochs.extend(self.steerer.drain()?);
        Ok(())
    }

    /// Windows are set no more.
    pub(super) fn detach(mut self) -> Result<WindowFigures, WindowError> {
        self.poll()?;
        Ok(WindowFigures {
            totals: self.steerer.totals()?,
            bound: self.steerer.bound(),
            epochs: self.epochs,
        })
    }
}

impl WindowFigures {
    /// A row for each VM.
    pub fn vms(&self) -> Vec<WindowVmRow> {
        let mut vms: BTreeMap<u32, Vec<&WindowEpoch>> = BTreeMap::new();
        for epoch in &self.epochs {
            vms.entry(epoch.vm).or_default().push(epoch);
        }
        let sets = match self.bound {
            WindowBound::Window(_) => "window",
            WindowBound::Threshold => "threshold",
        };
        let rows = vms.iter().map(|(vm, epochs)| row(*vm, sets, epochs));
        rows.collect()
    }

    /// A row for each epoch.
    pub fn epochs(&self) -> impl Iterator<Item = WindowEpochRow> {
        self.epochs.iter().map(epoch_row)
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

fn row(vm: u32, sets: &'static str, epochs: &[&WindowEpoch]) -> WindowVmRow {
    let windows: Vec<f64> = epochs.iter().map(|epoch| mean_window(epoch)).collect();
    let known: Vec<f64> = epochs
        .iter()
        .filter_map(|epoch| inefficiency_percent(epoch))
        .collect();
    let last = epochs.last().expect("a VM is there for its epochs");
    let unit_ns = (last.unit_ps != u64::MAX).then_some(last.unit_ps as f64 / 1e3);
    WindowVmRow {
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

fn epoch_row(epoch: &WindowEpoch) -> WindowEpochRow {
    WindowEpochRow {
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
        let expected = WindowVmRow {
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
