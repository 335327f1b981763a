// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host does besides running vCPUs (OS noise): the profiles that scenarios name by a word, each figure with its source.
//!
//! Measured by benchmarks/host-noise/measure.py on a virtual machine of 2 CPUs (AMD EPYC of family 26, Linux 6.18, 250 ticks a
//! second) on 26 November 2026, in samples of 3 s. Lengths are wall time, so they contain what that machine's own host took. The
//! tick is a cost of its own (`tick_ns`).
//!
//! pCPUs tick at the same instants. That is what Linux does: `tick_setup_sched_timer()` (kernel/time/tick-sched.c,
//! Linux 7.2) takes the first tick's time from a period that all CPUs share, `tick_nohz_restart()` goes on in steps of it, and
//! only the parameter `skew_tick=1` (here `lab.skew_tick`) separates them. Measured: of 750 ticks in 3 s, half were
//! less than 0.4 us apart on both CPUs.

use unspin_scenario::{Distribution, HostNoise, NoiseRates, NoiseSource, Shape, WorkUnit};

/// What a host does besides running vCPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseModel {
    /// How often and how long.
    pub rates: NoiseRates,
    /// Whether its threads are tasks of the host scheduler; otherwise they delay a pCPU as interrupts do, which is for schedulers
    /// that have no place for a task of one pCPU (gang).
    pub threads_are_tasks: bool,
}

/// What noise must take less of all CPU time than, parts per million: half.
pub const SHARE_MAX_PPM: u64 = 500_000;

impl NoiseModel {
    /// What it takes of all CPU time on average, parts per million, without switches and exits.
    pub fn share_ppm(&self) -> u64 {
        let rates = &self.rates;
        let sources = [
            &rates.interrupts,
            &rates.bound_threads,
            &rates.unbound_threads,
        ];
        let share = |source: &NoiseSource| {
            let lengths_ns = source.lasts.quantile_table();
            let sum_ns: u128 = lengths_ns.iter().copied().map(u128::from).sum();
            // A mean of at most 100 ms (the limit of a distribution) by at least 10 us.
            (sum_ns * 1_000_000 / (lengths_ns.len() as u128 * u128::from(source.every_ns))) as u64
        };
        sources.into_iter().flatten().map(share).sum()
    }

    /// The profile that the scenario names; `None`: no noise.
    pub fn of(noise: &HostNoise, threads_are_tasks: bool) -> Option<NoiseModel> {
        let rates = match noise {
            HostNoise::Off => return None,
            HostNoise::Idle => idle(),
            HostNoise::Busy => busy(),
            HostNoise::Rates(rates) => (**rates).clone(),
        };
        Some(NoiseModel {
            rates,
            threads_are_tasks,
        })
    }
}

/// A host whose CPUs do nothing but run always busy threads, as vCPUs do: 18 CPU seconds, of which it takes 0.21 %. In the
/// example of Documentation/trace/osnoise-tracer.rst (Linux 7.2; a virtual machine of 8 CPUs) it is 0.2 % as well: 8 interrupts
/// besides ticks, 27 softirqs and 11 threads a second and CPU.
fn idle() -> NoiseRates {
    NoiseRates {
        // measured: 14.2 a second; median 3 us, 99 % below 34 us. Devices, and the softirqs TIMER and RCU.
        interrupts: source(70_600_000, 5_600),
        // measured: 2.6 a second; median 9 us, the longest 377 us. kworker/N (vmstat and the like), ksoftirqd/N, migration/N.
        bound_threads: source(383_000_000, 25_500),
        // measured: 4 a second and CPU; median 9 us, 90 % below 1 ms, the longest 8 ms: rcu_preempt, kcompactd, kdamond, kworker/u.
        unbound_threads: source(250_000_000, 484_000),
        vcpu_start: vcpu_start(),
    }
}

/// A host that also compiles, runs tests and writes their files to a virtio disk: 196 CPU seconds, of which it takes 0.58 %.
fn busy() -> NoiseRates {
    NoiseRates {
        // measured: 146 a second; median 6 us, 99 % below 53 us.
        interrupts: source(6_870_000, 8_700),
        // measured: 17.6 a second; median 18 us, 99 % below 109 us, the longest 4 ms.
        bound_threads: source(56_900_000, 27_300),
        // measured: 40.3 a second and CPU; median 8 us, 99 % below 2.5 ms, the longest 8 ms.
        unbound_threads: source(24_800_000, 100_000),
        vcpu_start: vcpu_start(),
    }
}

/// measured: 16 threads made by pthread_create() in a loop, 15 times; 13 to 17 us each where nothing else wanted a CPU. assumed:
/// in random order (world/noise.rs), as VMs of a host start, halt and wake independently.
const fn vcpu_start() -> Distribution {
    Distribution {
        unit: WorkUnit::Nanoseconds,
        shape: Shape::Constant(15_000),
    }
}

/// That mean time from one to the next. assumed: exponential lengths of that mean; the measured ones have more short and more
/// very long ones.
const fn source(every_ns: u64, mean_ns: u64) -> Option<NoiseSource> {
    Some(NoiseSource {
        every_ns,
        lasts: Distribution {
            unit: WorkUnit::Nanoseconds,
            shape: Shape::Exponential { mean: mean_ns },
        },
    })
}
