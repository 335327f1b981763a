// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a run of threads measured, and the figures that a table shows of it.

use unspin_abi::unspin_guest_statistics;
use unspin_scenario::Distribution;

use crate::latency::{Latencies, jain, median};

/// All cells of a run.
#[derive(Debug)]
pub struct ThreadsReport {
    /// In the order asked for: for each lock, all points.
    pub cells: Vec<Cell>,
    /// CPUs that the threads shared.
    pub cpus: usize,
    /// tau of the preemptable ticket lock (ruling 8).
    pub tau_spins: u32,
    /// Nanoseconds that those spins take here, with the first group's `pause_every_spins`.
    pub tau_ns: f64,
    /// Iterations of the work loop per nanosecond; `None` when the scenario counts in loops.
    pub loops_per_ns: Option<f64>,
}

/// One lock at one point.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The lock's name; several joined by "+" when the scenario's groups differ.
    pub lock: String,
    /// Whether it is somebody else's lock.
    pub is_baseline: bool,
    /// Number of the point: cells of one point differ in their locks alone.
    pub point: usize,
    /// Work inside the lock; the first group's.
    pub hold: Distribution,
    /// Work outside; the first group's.
    pub think: Distribution,
    /// Threads beside the groups that use CPU time.
    pub neighbours: u32,
    /// Threads of all groups.
    pub threads: u32,
    /// Groups; each has its own locks.
    pub groups: u32,
    /// One per repetition, in that order.
    pub samples: Vec<Sample>,
}

/// One repetition of one cell.
#[derive(Clone, Debug)]
pub struct Sample {
    /// From 0.
    pub repetition: u32,
    /// Length of the measured part. A thread finishes its last spin after it.
    pub window_ns: u64,
    /// Whether each thread did a fixed number of spins instead of running for a time.
    pub fixed_spins: bool,
    /// Rate of the TSC.
    pub cycles_per_ns: f64,
    /// TSC cycles of a lock-unlock pair by one thread alone, the least of several batches; measured in the first repetition.
    pub uncontended_cycles: Option<f64>,
    /// Times to acquire, of all threads.
    pub acquire: Latencies,
    /// CPU time of all threads.
    pub cpu_ns: u64,
    /// Waits in the kernel that the locks' own parking made; a baseline's are not seen.
    pub parks: u64,
    /// Per thread, group after group. Fields of other worlds (ticks, IPIs) are 0; times are TSC cycles.
    pub threads: Vec<Box<unspin_guest_statistics>>,
}

impl Sample {
    fn sum(&self, of: impl Fn(&unspin_guest_statistics) -> u64) -> u64 {
        self.threads.iter().map(|thread| of(thread)).sum()
    }

    /// Acquisitions of all threads: Table 1's N.
    pub fn operations(&self) -> u64 {
        self.sum(|thread| thread.operations)
    }

    /// Nanoseconds that a thread measured, its last spin included.
    fn measured_ns(&self, thread: &unspin_guest_statistics) -> f64 {
        let cycles = thread.done_tsc.saturating_sub(thread.first_instruction_tsc);
        cycles as f64 / self.cycles_per_ns
    }

    /// Acquisitions of all threads per second. With fixed spins by the time until the last thread had ended; else the
    /// sum of the threads' own rates, so that a last spin that ends long after the others have stopped does not count
    /// as if all had run so long.
    pub fn operations_per_second(&self) -> f64 {
        if self.fixed_spins {
            return self.operations() as f64 * 1e9 / self.window_ns.max(1) as f64;
        }
        let rate = |thread: &unspin_guest_statistics| {
            thread.operations as f64 * 1e9 / self.measured_ns(thread).max(1.0)
        };
        self.threads.iter().map(|thread| rate(thread)).sum()
    }

    /// Which half of a comparison it belongs to: 0 or 1. Both halves have forward and backward repetitions from four on.
    pub fn half(&self, samples: usize) -> usize {
        let step = if samples >= 4 { 2 } else { 1 };
        (self.repetition / step % 2) as usize
    }

    /// Waiting for locks, as a share of all threads' time, descheduled or not. 0 to 100.
    pub fn waiting_share_percent(&self) -> f64 {
        let waited_ns = self.sum(|thread| thread.lock_wait_cycles) as f64 / self.cycles_per_ns;
        let measured_ns: f64 = self
            .threads
            .iter()
            .map(|thread| self.measured_ns(thread))
            .sum();
        100.0 * waited_ns / measured_ns.max(1.0)
    }
}

/// The figures of one cell over its repetitions; field names are the table's columns. Rates are in
/// [`Cell::operations_per_second`]: mean, spread and interval are `report`'s.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Mean share of the threads' time.
    pub waiting_share_percent: f64,
    /// Of all repetitions, as the five that follow: N of VEE'13, Table 1.
    pub acquisitions: u64,
    /// That found the lock taken.
    pub waits: u64,
    /// Waits of more than 2,048 spins: Nh + Nw.
    pub stalls: u64,
    /// Of them while nobody held the lock: Nw.
    pub stalls_unheld: u64,
    /// Nw / (Nh + Nw); `None` without stalls.
    pub waiter_share_of_stalls_percent: Option<f64>,
    /// PAUSE instructions.
    pub pauses: u64,
    /// Longest wait of any thread.
    pub longest_wait_us: f64,
    /// Mean time inside, unlock included.
    pub hold_mean_ns: f64,
    /// Least divided by most acquisitions of a thread, mean of the repetitions: 1 is fair.
    pub fairness: f64,
    /// Lock-unlock pair by one thread alone, least of the repetitions.
    pub uncontended_cycles: Option<f64>,
    /// Jain's index over the threads' acquisitions of all repetitions; `None` without acquisitions.
    pub jain: Option<f64>,
    /// Times to acquire of all acquisitions: 50, 95, 99 of 100, and the longest.
    pub acquire_ns: [Option<f64>; 4],
    /// CPU spin time for an operation, work included.
    pub cpu_ns_per_operation: Option<f64>,
    /// Waits in the kernel per operation.
    pub parks_per_operation: Option<f64>,
    /// Operations per second, median of the repetitions.
    pub median_rate: Option<f64>,
    /// The same lock against itself: medians of the two halves of the repetitions; `None` with one.
    pub null_ratio: Option<f64>,
}

impl Cell {
    /// Operations per second of each repetition, for intervals and comparisons.
    pub fn operations_per_second(&self) -> Vec<f64> {
        self.samples
            .iter()
            .map(Sample::operations_per_second)
            .collect()
    }

    /// The figures of a table row. All 0 without samples.
    pub fn figures(&self) -> Figures {
        let sum = |of: fn(&unspin_guest_statistics) -> u64| -> u64 {
            self.samples.iter().map(|sample| sample.sum(of)).sum()
        };
        let acquisitions = sum(|thread| thread.operations);
        let stalls = sum(|thread| thread.stalls);
        let stalls_unheld = sum(|thread| thread.stalls_unheld);
        let hold_ns: f64 = self
            .samples
            .iter()
            .map(|sample| sample.sum(|thread| thread.hold_cycles) as f64 / sample.cycles_per_ns)
            .sum();
        let uncontended = self
            .samples
            .iter()
            .filter_map(|sample| sample.uncontended_cycles);
        let mean_per_operation =
            |sum: u64| (acquisitions > 0).then(|| sum as f64 / acquisitions as f64);
        Figures {
            waiting_share_percent: mean(
                self.samples
                    .iter()
                    .map(Sample::waiting_share_percent)
                    .collect(),
            ),
            acquisitions,
            waits: sum(|thread| thread.lock_waits),
            stalls,
            stalls_unheld,
            waiter_share_of_stalls_percent: (stalls > 0)
                .then(|| 100.0 * stalls_unheld as f64 / stalls as f64),
            pauses: sum(|thread| thread.pauses),
            longest_wait_us: self.samples.iter().map(longest_wait_us).fold(0.0, f64::max),
            hold_mean_ns: hold_ns / acquisitions.max(1) as f64,
            fairness: mean(self.samples.iter().map(fairness).collect()),
            uncontended_cycles: uncontended.reduce(f64::min),
            jain: self.jain(|_| true),
            acquire_ns: self.acquire_ns(),
            cpu_ns_per_operation: mean_per_operation(self.samples.iter().map(|s| s.cpu_ns).sum()),
            parks_per_operation: mean_per_operation(self.samples.iter().map(|s| s.parks).sum()),
            median_rate: median(&self.operations_per_second()),
            null_ratio: self
                .half_rate(1)
                .zip(self.half_rate(0))
                .map(|(second, first)| second / first),
        }
    }

    /// Jain's index over the threads' acquisitions, each thread's summed over the samples that count. Threads have the same
    /// numbers in all repetitions. A window that is short against the scheduler's spins looks less fair than it is.
    pub fn jain(&self, counts: impl Fn(&Sample) -> bool) -> Option<f64> {
        let mut shares = vec![0; self.threads as usize];
        for sample in self.samples.iter().filter(|sample| counts(sample)) {
            for (share, thread) in shares.iter_mut().zip(&sample.threads) {
                *share += thread.operations;
            }
        }
        jain(&shares)
    }

    /// Median rate of one half of the repetitions.
    pub fn half_rate(&self, half: usize) -> Option<f64> {
        let of_half = |sample: &&Sample| sample.half(self.samples.len()) == half;
        let rates: Vec<f64> = self
            .samples
            .iter()
            .filter(of_half)
            .map(Sample::operations_per_second)
            .collect();
        median(&rates)
    }

    /// Jain's index over one half.
    pub fn half_jain(&self, half: usize) -> Option<f64> {
        self.jain(|sample| sample.half(self.samples.len()) == half)
    }

    fn acquire_ns(&self) -> [Option<f64>; 4] {
        let mut all = Latencies::default();
        for sample in &self.samples {
            all.merge(&sample.acquire);
        }
        // The TSC's rate does not change (constant_tsc): any sample's will do.
        let Some(rate) = self.samples.first().map(|sample| sample.cycles_per_ns) else {
            return [None; 4];
        };
        let percentile = |per_mille| all.percentile_cycles(per_mille).map(|cycles| cycles / rate);
        let longest = (all.total() > 0).then(|| all.longest_cycles() as f64 / rate);
        [percentile(500), percentile(950), percentile(990), longest]
    }
}

fn longest_wait_us(sample: &Sample) -> f64 {
    let cycles = sample
        .threads
        .iter()
        .map(|thread| thread.longest_wait_cycles)
        .max();
    cycles.unwrap_or(0) as f64 / sample.cycles_per_ns / 1e3
}

fn fairness(sample: &Sample) -> f64 {
    let operations = || sample.threads.iter().map(|thread| thread.operations);
    let most = operations().max().unwrap_or(0).max(1);
    operations().min().unwrap_or(0) as f64 / most as f64
}

fn mean(values: Vec<f64>) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
