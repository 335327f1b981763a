// SPDX-License-Identifier: MIT OR Apache-2.0
//! What this machine's CPUs and kernel cost, timed by threads that share no lock: loops, switches, wake-ups, interrupts,
//! cache lines. While one or two CPUs are measured all others are kept busy, as they do on a host that is overcommitted.

mod cpus;
mod distance;
mod interrupts;
mod lines;
mod loops;
mod switches;

pub use cpus::{CpuHogs, pin_to};
pub use distance::{Near, near_cpus};
pub use switches::switches_of_this_thread;

use crate::{affinity, error::Error};

/// How often each thing is timed.
pub const SAMPLES: usize = 15;

/// What was measured, ns unless the name says otherwise; one entry for each try. Empty: it could not be measured here.
#[derive(Clone, Debug, Default)]
pub struct ThreadCosts {
    /// An iteration of the work loop.
    pub work_loop_ns: Vec<f64>,
    /// A spin of the threads' waiting loop without PAUSE.
    pub wait_spin_ns: Vec<f64>,
    /// What a PAUSE adds to it.
    pub pause_ns: Vec<f64>,
    /// Ticks of the TSC per microsecond.
    pub tsc_mhz: Vec<f64>,
    /// From one thread to another on one CPU, beyond a call of `sched_yield()` that stays.
    pub switch_ns: Vec<f64>,
    /// The host's timer interrupt, as a gap in a loop that looks at the TSC.
    pub tick_ns: Vec<f64>,
    /// An atomic addition to a word that nobody else has.
    pub line_hit_ns: Vec<f64>,
    /// A word handed over to another CPU, by distance.
    pub line_ns: Vec<(Near, Vec<f64>)>,
    /// An interrupt to another busy CPU and the news that it was handled, beyond a call that sends none.
    pub ipi_ns: Vec<f64>,
    /// Waking a sleeping thread, the waker's side, beyond a call that wakes nobody.
    pub wakeup_ns: Vec<f64>,
}

/// Measures all of them on the CPUs that this process may use; takes some 2 s.
///
/// # Errors
/// When the affinity mask cannot be read or a thread cannot be pinned.
pub fn measure() -> Result<ThreadCosts, Error> {
    let cpus = &cpus()?[..];
    let here = cpus[0];
    let on_thread = |measure: &(dyn Fn() -> Result<ThreadCosts, Error> + Sync)| {
        // A thread of its own: its mask goes with it.
        std::thread::scope(|scope| scope.spawn(measure).join().expect("it does not panic"))
    };
    let alone = on_thread(&|| {
        pin_to(here)?;
        let _cpu_hogs = CpuHogs::start(cpus, &[here]);
        Ok(ThreadCosts {
            work_loop_ns: loops::work(),
            wait_spin_ns: loops::wait(),
            pause_ns: loops::pause(),
            tsc_mhz: loops::tsc_mhz(),
            line_hit_ns: lines::own(),
            switch_ns: switches::switch(here)?,
            tick_ns: interrupts::tick(),
            ..ThreadCosts::default()
        })
    })?;
    let pairs = on_thread(&|| {
        pin_to(here)?;
        let mut costs = ThreadCosts::default();
        let near = near_cpus(here, cpus);
        for &(distance, other) in &near {
            let _cpu_hogs = CpuHogs::start(cpus, &[here, other]);
            costs.line_ns.push((distance, lines::hand_over(other)?));
        }
        if let Some(&(_, other)) = near.first() {
            let _cpu_hogs = CpuHogs::start(cpus, &[here, other]);
            costs.ipi_ns = interrupts::ipi(other)?;
            costs.wakeup_ns = switches::wakeup(other)?;
        }
        Ok(costs)
    })?;
    Ok(ThreadCosts {
        line_ns: pairs.line_ns,
        ipi_ns: pairs.ipi_ns,
        wakeup_ns: pairs.wakeup_ns,
        ..alone
    })
}

/// The CPUs that this process may use, ascending; at least one.
///
/// # Errors
/// When the affinity mask cannot be read.
pub fn cpus() -> Result<Vec<usize>, Error> {
    Ok(affinity::allowed(None)?.numbers().to_vec())
}

/// So many tries.
fn tries(mut one: impl FnMut() -> f64) -> Vec<f64> {
    (0..SAMPLES).map(|_| one()).collect()
}

/// The middle one; 0 of none.
fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or(0.0)
}
