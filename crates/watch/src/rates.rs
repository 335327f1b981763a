// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happened between two views of a host.

use std::collections::HashMap;

use unspin_agent::WatchCounters;

use crate::view::{HostView, RecentView, VcpuView, ViewSource, VmView, WatchHealth};

/// A host between two views.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostRates {
    /// How long that was; s. 0 of a recording, whose figures are of all of it.
    pub seconds: f64,
    /// VMs that are there at the end.
    pub vms: Vec<VmRates>,
    /// Why nobody is watching.
    pub blind: Option<String>,
    /// What makes the figures less than they could be.
    pub limits: Vec<String>,
    /// How watching went until then.
    pub health: WatchHealth,
}

/// A VM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VmRates {
    /// In order of appearance.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// Its process.
    pub process: Option<u32>,
    /// All its vCPUs together.
    pub total: Rates,
    /// Each of them.
    pub vcpus: Vec<VcpuRates>,
    /// For whom it spun, of the last bursts.
    pub recent: RecentView,
}

/// A vCPU's thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VcpuRates {
    /// Its number.
    pub vcpu: u32,
    /// The thread.
    pub thread: u32,
    /// What it did.
    pub rates: Rates,
}

/// Rates of a VM or vCPU. `None`: not known here.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// CPU time; percent of one CPU.
    pub run_percent: f64,
    /// Time in which it could have run and had no CPU; percent of one vCPU's time.
    pub wait_percent: f64,
    /// Time halted, likewise.
    pub halted_percent: Option<f64>,
    /// CPU time wasted by spinning; percent of one CPU.
    pub waste_percent: Option<f64>,
    /// The same; percent of its CPU time.
    pub spin_percent: Option<f64>,
    /// Pause-loop exits a second.
    pub ple_exits_per_second: Option<f64>,
    /// Directed yields that succeeded; percent of those tried.
    pub yields_percent: Option<f64>,
    /// Slices a second that ended while it spun.
    pub slices_lost_per_second: Option<f64>,
}

/// What happened between two views of the same source; what has come in between is counted since then. A recording's view is taken by
/// itself: its figures are of the whole recording, and those of a second are means.
pub fn between(earlier: &HostView, later: &HostView) -> HostRates {
    let recording = later.source == ViewSource::Recording;
    let seconds = later.time_ns.saturating_sub(earlier.time_ns) as f64 / 1e9;
    let before: HashMap<u64, &VmView> = match recording {
        true => HashMap::new(),
        false => earlier.vms.iter().map(|vm| (vm.number, vm)).collect(),
    };
    let vms = later.vms.iter().map(|vm| {
        let seconds = match recording {
            true => longest_seconds(vm),
            false => seconds,
        };
        vm_rates(before.get(&vm.number).copied(), vm, later, seconds)
    });
    HostRates {
        seconds: if recording { 0.0 } else { seconds },
        vms: vms.collect(),
        blind: later.blind.clone(),
        limits: later.limits.clone(),
        health: later.health.clone(),
    }
}

/// How long its vCPUs were seen at most.
fn longest_seconds(vm: &VmView) -> f64 {
    let seen = vm.vcpus.iter().map(|vcpu| {
        let counters = &vcpu.counters;
        counters.run_ns + counters.wait_ns + counters.halted_ns
    });
    seen.max().unwrap_or(0) as f64 / 1e9
}

fn vm_rates(earlier: Option<&VmView>, vm: &VmView, view: &HostView, seconds: f64) -> VmRates {
    let known = earlier.into_iter().flat_map(|vm| &vm.vcpus);
    let before: HashMap<(u32, u32), WatchCounters> = known
        .map(|vcpu| ((vcpu.vcpu, vcpu.thread), vcpu.counters))
        .collect();
    let vcpu_rates = |vcpu: &VcpuView| {
        let before = before.get(&(vcpu.vcpu, vcpu.thread)).copied();
        let grown = vcpu.counters.since(&before.unwrap_or_default());
        VcpuRates {
            vcpu: vcpu.vcpu,
            thread: vcpu.thread,
            rates: rates(&grown, view, seconds),
        }
    };
    let total = earlier.map(|vm| vm.total).unwrap_or_default();
    VmRates {
        number: vm.number,
        name: vm.name.clone(),
        process: vm.process,
        total: rates(&vm.total.since(&total), view, seconds),
        vcpus: vm.vcpus.iter().map(vcpu_rates).collect(),
        recent: vm.recent.clone(),
    }
}

fn rates(grown: &WatchCounters, view: &HostView, seconds: f64) -> Rates {
    let percent = |ns: u64| match seconds > 0.0 {
        true => ns as f64 / 1e7 / seconds,
        false => 0.0,
    };
    let per_second = |count: u64| match seconds > 0.0 {
        true => count as f64 / seconds,
        false => 0.0,
    };
    let share = |part: u64, whole: u64| (whole > 0).then(|| 100.0 * part as f64 / whole as f64);
    let waste_ns = view.waste_ns(grown);
    Rates {
        run_percent: percent(grown.run_ns),
        wait_percent: percent(grown.wait_ns),
        halted_percent: view.knows("halted_ns").then(|| percent(grown.halted_ns)),
        waste_percent: waste_ns.map(percent),
        // The kernel counts CPU time up to the last tick.
        spin_percent: waste_ns
            .and_then(|ns| share(ns, grown.run_ns))
            .map(|percent| percent.min(100.0)),
        ple_exits_per_second: view.knows("ple_exits").then(|| per_second(grown.ple_exits)),
        yields_percent: share(grown.yields_succeeded, grown.yields_tried)
            .filter(|_| view.knows("yields_tried")),
        slices_lost_per_second: view
            .knows("slices_lost")
            .then(|| per_second(grown.slices_lost)),
    }
}

impl VmRates {
    /// What most of its spin time was for, of the last bursts, and that share in percent; `None`: nothing was sampled.
    pub fn mostly(&self) -> Option<(&str, f64)> {
        let spin = &self.recent.sampled.spin_ns;
        let total = self.recent.sampled.total_ns();
        let (cause, ns) = spin.iter().max_by_key(|(_, ns)| **ns)?;
        (total > 0).then(|| (cause.as_str(), 100.0 * *ns as f64 / total as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(run_ms: u64, spin_ms: u64) -> WatchCounters {
        WatchCounters {
            run_ns: run_ms * 1_000_000,
            spin_ns: spin_ms * 1_000_000,
            ple_exits: spin_ms * 10,
            yields_tried: 4 * spin_ms,
            yields_succeeded: spin_ms,
            ..WatchCounters::default()
        }
    }

    fn view(time_ms: u64, vms: &[(u64, u64, u64)]) -> HostView {
        let vms = vms.iter().map(|&(number, run_ms, spin_ms)| VmView {
            number,
            total: counters(run_ms, spin_ms),
            vcpus: vec![VcpuView {
                counters: counters(run_ms, spin_ms),
                ..VcpuView::default()
            }],
            ..VmView::default()
        });
        HostView {
            time_ns: time_ms * 1_000_000,
            vms: vms.collect(),
            ..HostView::default()
        }
    }

    #[test]
    fn figures_are_of_the_time_between() {
        let rates = between(
            &view(1_000, &[(1, 500, 100)]),
            &view(3_000, &[(1, 1_500, 600)]),
        );
        assert_eq!(rates.seconds, 2.0);
        let total = rates.vms[0].total;
        assert_eq!((total.run_percent, total.waste_percent), (50.0, Some(25.0)));
        assert_eq!(total.spin_percent, Some(50.0));
        assert_eq!(total.ple_exits_per_second, Some(2_500.0));
        assert_eq!(total.yields_percent, Some(25.0));
        assert_eq!(rates.vms[0].vcpus[0].rates, total);
    }

    #[test]
    fn a_vm_that_came_counts_from_then_and_one_that_went_is_gone() {
        let rates = between(&view(0, &[(1, 500, 100)]), &view(1_000, &[(2, 100, 0)]));
        assert_eq!(rates.vms.len(), 1);
        let total = rates.vms[0].total;
        assert_eq!((rates.vms[0].number, total.run_percent), (2, 10.0));
        assert_eq!(total.yields_percent, None);
    }

    #[test]
    fn what_is_not_known_is_not_zero() {
        let mut later = view(1_000, &[(1, 100, 50)]);
        later.unknown = vec!["spin_ns".to_owned(), "yields_tried".to_owned()];
        let total = between(&view(0, &[]), &later).vms[0].total;
        assert_eq!((total.waste_percent, total.spin_percent), (None, None));
        assert_eq!(total.yields_percent, None);
    }

    #[test]
    fn no_time_between_is_no_division_by_zero() {
        let total = between(&view(5, &[(1, 1, 1)]), &view(5, &[(1, 1, 1)])).vms[0].total;
        assert_eq!((total.run_percent, total.spin_percent), (0.0, None));
    }

    #[test]
    fn a_recording_is_taken_by_itself() {
        let mut recorded = view(9_000, &[(1, 2_000, 500)]);
        recorded.source = ViewSource::Recording;
        let rates = between(&recorded, &recorded);
        let total = rates.vms[0].total;
        assert_eq!(
            (total.run_percent, total.waste_percent),
            (100.0, Some(25.0))
        );
    }
}
