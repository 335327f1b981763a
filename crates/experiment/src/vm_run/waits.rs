// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each VM waited for in the window, as its guest saw it: spinlocks and TLB shootdowns, in all, in the mean, and the
//! wait that 95 of 100 do not exceed (VEE'21, Figures 5 and 6, has these of Linux guests).

use unspin_abi::unspin_guest_statistics;
use unspin_report::row;
use unspin_vmm::VmReport;

use super::Run;
use crate::buckets::{add_buckets, percentile_cycles};

row! {
    "waits", ["vm run"];
    /// What a VM waited for in the window, by its own guest; a row for each kind of wait.
    pub struct WaitsRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// `spinlock`: acquisitions that found the lock taken; `shootdown`: TLB shootdowns sent.
        kind: &'static str = ("for", Text),
        /// Waits that ended in the window.
        waits: u64 = ("waits", Count),
        /// Their time, on a pCPU or off it; ns.
        wait_total_ns: f64 = ("total", Nanoseconds),
        /// Of that, time off its pCPU; ns.
        wait_stolen_ns: u64 = ("of that off its CPU", Nanoseconds),
        /// The mean wait; ns.
        wait_mean_ns: f64 = ("mean", Nanoseconds),
        /// The wait that 95 of 100 do not exceed, the upper bound of a bucket by powers of two; ns.
        wait_p95_ns: Option<f64> = ("p95", Nanoseconds),
    }
}

/// Waits of one kind, of all vCPUs of a VM.
#[derive(Debug, Default)]
struct Waits {
    count: u64,
    cycles: u64,
    stolen_ns: u64,
    buckets: Vec<u64>,
}

impl Waits {
    fn add(&mut self, count: u64, cycles: u64, stolen_ns: u64, buckets: &[u64]) {
        self.count = self.count.saturating_add(count);
        self.cycles = self.cycles.saturating_add(cycles);
        self.stolen_ns = self.stolen_ns.saturating_add(stolen_ns);
        add_buckets(&mut self.buckets, buckets);
    }
}

impl Run {
    /// A row for each VM and kind of wait; none of a kind that nobody waited for.
    pub fn wait_rows(&self) -> Vec<WaitsRow> {
        let tsc_hz = self.report.clock.tsc_hz().max(1) as f64;
        let ns = |cycles: f64| cycles * 1e9 / tsc_hz;
        let mut rows = Vec::new();
        for vm in &self.report.vms {
            for (kind, of) in KINDS {
                let waits = waits_of(vm, of);
                if waits.count > 0 {
                    rows.push(WaitsRow {
                        vm: vm.name.clone(),
                        kind,
                        waits: waits.count,
                        wait_total_ns: ns(waits.cycles as f64),
                        wait_stolen_ns: waits.stolen_ns,
                        wait_mean_ns: ns(waits.cycles as f64 / waits.count as f64),
                        wait_p95_ns: percentile_cycles(&waits.buckets, 950).map(ns),
                    });
                }
            }
        }
        rows
    }
}

/// What a vCPU's statistics say of one kind: waits, cycles, of that off its CPU (ns), histogram.
type Kind = fn(&unspin_guest_statistics) -> (u64, u64, u64, &[u64]);

const KINDS: [(&str, Kind); 2] = [
    ("spinlock", |of| {
        let cycles = of.lock_wait_cycles;
        (
            of.lock_waits,
            cycles,
            of.lock_wait_stolen_ns,
            &of.lock_wait.count,
        )
    }),
    ("shootdown", |of| {
        let (cycles, stolen_ns) = (of.shootdown_wait_cycles, of.shootdown_wait_stolen_ns);
        (of.shootdowns, cycles, stolen_ns, &of.shootdown_wait.count)
    }),
];

fn waits_of(vm: &VmReport, kind: Kind) -> Waits {
    let mut waits = Waits::default();
    for vcpu in &vm.vcpus {
        let (count, cycles, stolen_ns, buckets) = kind(&vcpu.window);
        waits.add(count, cycles, stolen_ns, buckets);
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vcpus_waits_add_up_and_never_wrap() {
        let mut waits = Waits::default();
        waits.add(2, 100, 10, &[0, 2]);
        waits.add(1, u64::MAX, 5, &[1, 0, 7]);
        assert_eq!(
            (waits.count, waits.cycles, waits.stolen_ns),
            (3, u64::MAX, 15)
        );
        assert_eq!(waits.buckets, [1, 2, 7]);
    }
}
