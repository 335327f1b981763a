// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench threads`: the locks between threads of this process, on this machine's own CPUs.
//!
//! A cell is a lock at a point: a number of threads, what they do inside and outside, and who runs beside them. Which cell is
//! measured when is the caller's.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use unspin_abi::unspin_guest_statistics;
use unspin_scenario::{Length, LockSharing};

use crate::{
    affinity,
    baselines::Contender,
    clock::{ClockSample, in_loops, loops_per_ns, tau_ns, tau_spins},
    error::Error,
    ffi::DriverOutcome,
    group::{Group, Phase, Work},
    latency::Latencies,
    neighbours,
    plan::{self, Plan},
    summary::{Cell, Sample, ThreadsReport},
    table::{RunStates, WAITERS_MAX, take_page},
};

pub use crate::plan::ThreadsOptions;

/// One group of one sample.
struct Member {
    lock: Contender,
    threads: u32,
    group: Group,
    work: Work,
}

/// Locks at points, ready to be measured.
pub struct Bench<'a> {
    options: ThreadsOptions<'a>,
    plans: Vec<Plan>,
    cpus: affinity::Cpus,
    loops_per_ns: Option<f64>,
}

impl<'a> Bench<'a> {
    /// Checks the scenario, and measures how fast a loop of work is where work is given in time.
    ///
    /// # Errors
    /// A scenario that threads cannot do, affinity that the system refuses.
    pub fn prepare(options: ThreadsOptions<'a>) -> Result<Bench<'a>, Error> {
        plan::check(&options)?;
        Ok(Bench {
            loops_per_ns: plan::needs_rate(&options).then(loops_per_ns),
            cpus: affinity::allowed(options.scenario.host.cpus)?,
            plans: plan::plans(&options),
            options,
        })
    }

    /// The point of each cell, by the cell's number: for each lock, all points.
    pub fn points(&self) -> impl ExactSizeIterator<Item = usize> {
        self.plans.iter().map(|plan| plan.point)
    }

    /// Measures a cell once. The first repetition also tells what the lock costs when nobody else wants it.
    ///
    /// # Errors
    /// Threads or affinity that the system refuses, two threads inside one lock, an interrupt.
    ///
    /// # Panics
    /// When there is no cell of that number.
    pub fn sample(&self, cell: usize, repetition: u32) -> Result<Sample, Error> {
        let (options, plan) = (&self.options, &self.plans[cell]);
        let mut members = members(options, plan, self.loops_per_ns.unwrap_or(0.0));
        let run = Run {
            repetition,
            neighbours: plan.neighbours,
            stretch: stretch(options, &members, self.cpus.len()),
        };
        sample(options, &mut members, &self.cpus, &run)
    }

    /// What the samples say; `samples` has a cell's, in order of repetitions.
    pub fn report(self, mut samples: impl FnMut(usize) -> Vec<Sample>) -> ThreadsReport {
        let scenario = self.options.scenario;
        let plans = self.plans.iter().enumerate();
        let cells = plans.map(|(number, plan)| Cell {
            samples: samples(number),
            ..plan::describe(scenario, plan)
        });
        ThreadsReport {
            cells: cells.collect(),
            cpus: self.cpus.len(),
            tau_spins: tau_spins(),
            tau_ns: tau_ns(scenario.vms[0].pause_every_spins),
            loops_per_ns: self.loops_per_ns,
        }
    }
}

fn members(options: &ThreadsOptions<'_>, plan: &Plan, loops_per_ns: f64) -> Vec<Member> {
    let scenario = options.scenario;
    let vms = scenario
        .vms
        .iter()
        .flat_map(|vm| (0..vm.count).map(move |_| vm));
    vms.enumerate()
        .map(|(number, vm)| {
            let lock = plan.lock.unwrap_or(vm.lock.into());
            let threads = plan.threads.unwrap_or(vm.vcpus);
            let work = Work {
                user_work: in_loops(plan.think.as_ref().unwrap_or(&vm.user_work), loops_per_ns),
                kernel_work: match plan.think {
                    Some(_) => unspin_abi::unspin_distribution {
                        quantile_loops: [0; unspin_abi::UNSPIN_QUANTILES as usize],
                    },
                    None => in_loops(&vm.kernel_work, loops_per_ns),
                },
                hold: in_loops(plan.hold.as_ref().unwrap_or(&vm.hold), loops_per_ns),
                locks: match vm.locks {
                    LockSharing::Shared(locks) => locks,
                    LockSharing::Private => 0,
                },
                iterations: match scenario.length {
                    Length::Iterations(iterations) => iterations,
                    Length::DurationNs(_) => 0,
                },
                pause_every_spins: vm.pause_every_spins,
                seed: scenario.seed.wrapping_add(number as u64),
            };
            let group = Group::new(lock, threads, work.locks);
            // SAFETY: `options` borrows the page for longer than the threads run.
            unsafe {
                group
                    .table()
                    .set_run_states(options.run_states, number as u32 * WAITERS_MAX)
            };
            if options.slice_extension {
                group.table().want_slice();
            }
            Member {
                lock,
                threads,
                group,
                work,
            }
        })
        .collect()
}

/// How one sample is run.
struct Run {
    repetition: u32,
    neighbours: u32,
    /// Times the scenario's duration.
    stretch: u32,
}

fn stretch(options: &ThreadsOptions<'_>, members: &[Member], cpus: usize) -> u32 {
    let threads: u32 = members.iter().map(|member| member.threads).sum();
    let rounds = threads.div_ceil(cpus as u32);
    if options.stretch { rounds.max(1) } else { 1 }
}

/// What one thread brings back.
type Outcome = (Box<unspin_guest_statistics>, Box<DriverOutcome>);

/// Runs all groups once.
fn sample(
    options: &ThreadsOptions<'_>,
    members: &mut [Member],
    cpus: &affinity::Cpus,
    run: &Run,
) -> Result<Sample, Error> {
    let uncontended_cycles =
        (run.repetition == 0).then(|| members[0].group.uncontended_cycles_per_pair());
    let clock = ClockSample::now();
    let (window, results) = run_threads(options, members, cpus, run)?;
    if options.interrupt.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    check_exclusion(members, &results)?;
    let mut acquire = Latencies::default();
    for (_, outcome) in &results {
        acquire.add(outcome);
    }
    Ok(Sample {
        repetition: run.repetition,
        window_ns: window.as_nanos() as u64,
        fixed_spins: matches!(options.scenario.length, Length::Iterations(_)),
        cycles_per_ns: clock.cycles_per_ns(ClockSample::now()),
        uncontended_cycles,
        acquire,
        cpu_ns: results.iter().map(|(_, outcome)| outcome.cpu_ns).sum(),
        parks: results.iter().map(|(_, outcome)| outcome.parks).sum(),
        threads: results
            .into_iter()
            .map(|(statistics, _)| statistics)
            .collect(),
    })
}

/// The measured time, and what each thread brought back, in order of groups and numbers.
fn run_threads(
    options: &ThreadsOptions<'_>,
    members: &[Member],
    cpus: &affinity::Cpus,
    run: &Run,
) -> Result<(Duration, Vec<Outcome>), Error> {
    let warm_up = Duration::from_nanos(options.scenario.warm_up_ns);
    let phase = Phase::new(!warm_up.is_zero());
    thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut refused = None;
        let burning = neighbours::Burning::start(scope, run.neighbours, cpus);
        for (number, member) in members.iter().enumerate() {
            for thread in 0..member.threads {
                let phase = &phase;
                let page_number = number as u32 * WAITERS_MAX + thread;
                let body = move || {
                    cpus.confine_this_thread()?;
                    if let RunStates::Page(page) = options.run_states {
                        page.register_this_thread(page_number)
                            .map_err(Error::RunStates)?;
                    }
                    if let Some(pages) = options.grants {
                        take_page(pages, page_number).map_err(Error::Grants)?;
                    }
                    Ok(member.group.run_iterations(&member.work, phase, thread))
                };
                let name = format!("group{number}/{thread}");
                match thread::Builder::new().name(name).spawn_scoped(scope, body) {
                    Ok(handle) => handles.push(handle),
                    Err(error) => refused = Some(Error::Spawn(error)),
                }
            }
        }
        let begin = wait_for(warm_up, &handles, options.interrupt);
        phase.measure();
        let measured = match options.scenario.length {
            Length::DurationNs(ns) => Duration::from_nanos(ns) * run.stretch,
            Length::Iterations(_) => Duration::MAX,
        };
        let end = match refused {
            None => wait_for(measured, &handles, options.interrupt),
            Some(_) => Instant::now(),
        };
        phase.stop();
        let results: Result<Vec<_>, Error> = handles
            .into_iter()
            .map(|handle| handle.join().expect("a driver does not panic"))
            .collect();
        burning?.stop();
        refused.map_or(Ok(()), Err)?;
        Ok((end.duration_since(begin), results?))
    })
}

/// Returns when the time is over, all threads have ended or the user interrupts; and when that was.
fn wait_for<T>(
    duration: Duration,
    handles: &[thread::ScopedJoinHandle<'_, T>],
    interrupt: &AtomicBool,
) -> Instant {
    const LOOK: Duration = Duration::from_millis(5);
    let begin = Instant::now();
    loop {
        let left = duration.saturating_sub(begin.elapsed());
        let ended = handles.iter().all(|handle| handle.is_finished());
        if left.is_zero() || ended || interrupt.load(Ordering::Relaxed) {
            return Instant::now();
        }
        thread::sleep(left.min(LOOK));
    }
}

/// Nobody met anybody inside, no entry was lost, and every lock is free again.
fn check_exclusion(members: &mut [Member], results: &[Outcome]) -> Result<(), Error> {
    let mut results = results.iter().map(|(_, outcome)| outcome);
    for member in members {
        let own: Vec<_> = results.by_ref().take(member.threads as usize).collect();
        let violations: u64 = own.iter().map(|outcome| outcome.violations).sum();
        let counted: u64 = own.iter().map(|outcome| outcome.entries).sum();
        let entries = member.group.entries();
        let still_locked = member.group.still_locked();
        if violations > 0 || counted != entries || still_locked > 0 {
            return Err(Error::Exclusion {
                lock: member.lock.name(),
                violations,
                lost: counted.abs_diff(entries),
                still_locked,
            });
        }
    }
    Ok(())
}
