// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host itself under our scheduler and under the kernel's own (`unspin bench host`): threads that sleep, call and compute,
//! no VM. They go on while schedulers come and go, as in every comparison.

mod load;
mod rows;

use std::{
    thread,
    time::{Duration, Instant},
};

use unspin_agent::ProgramHealth;

use crate::{
    Error, Session,
    plan::{self, Column, Step, steps},
    progress::Work,
    sample::Samples,
    world::{Taken, World, run, steering::Steering},
};

pub use load::{Done, Load};
pub use rows::{HostProgramRow, HostRow};

/// How it is compared: a sample is a length of time.
pub type Plan = plan::Plan<Duration>;

/// One sample.
#[derive(Clone, Debug)]
pub struct Sample {
    /// What the load did.
    done: Done,
    /// In which time.
    time: Duration,
    /// Our scheduler's programs meanwhile; empty where they are not counted.
    programs: Vec<ProgramHealth>,
}

/// What is printed of a load.
#[derive(Default)]
pub struct Compared {
    /// One for each scheduler.
    pub rows: Vec<HostRow>,
    /// What our scheduler's programs took, where that was asked for.
    pub programs: Vec<HostProgramRow>,
}

impl crate::Sample for Sample {
    fn per_second(&self) -> f64 {
        self.done.operations as f64 / self.time.as_secs_f64()
    }
}

impl Sample {
    /// The latency that this share of all do not exceed, ns; at least 1: a ratio needs one.
    fn latency_ns(&self, share: f64) -> Option<f64> {
        let mut sorted = self.done.latencies_ns.clone();
        sorted.sort_unstable();
        rows::percentile(&sorted, share).map(|ns| ns.max(1) as f64)
    }
}

/// Runs a load under each scheduler, ours without a policy and the plan's rivals among them. Needs root. `programs`: runs and time of our scheduler's
/// programs are counted, which costs some of it.
///
/// # Errors
/// When a thread or the scheduler cannot be had, the kernel sends the scheduler away, or the session is interrupted.
pub fn compare(
    load: Load,
    plan: &Plan,
    programs: bool,
    session: &Session,
) -> Result<Compared, Error> {
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let mut world = Host {
        load,
        plan,
        session,
        cpus,
        running: None,
        steering: Steering::of(plan, session)?.with_run_statistics(programs),
    };
    let columns = plan::Columns {
        // There is no smaller load in which no task waits.
        ideal: false,
        steer: true,
        ..plan.columns()
    };
    session.progress.begin(load.name(), Work::Unknown);
    let samples: Result<Samples<Sample>, Error> =
        run(&mut world, &steps(plan.pairs as usize, columns));
    session.progress.end();
    let samples = samples?;
    Ok(Compared {
        rows: rows::rows(load, cpus, plan, &samples),
        programs: rows::program_rows(load, cpus, plan, &samples),
    })
}

struct Host<'a> {
    load: Load,
    plan: &'a Plan,
    session: &'a Session<'a>,
    cpus: usize,
    // Dropped in this order on an error: the load first, under whatever scheduler there is.
    running: Option<load::Running>,
    steering: Steering<'a>,
}

impl World for Host<'_> {
    type Sample = Sample;

    fn change(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::Load(plan::Programs::Scheduler) => self.steering.load(),
            // `record` says who runs when.
            Step::Load(plan::Programs::Observer) => Ok(()),
            Step::Start(_, seed) => {
                self.running = Some(load::Running::start(self.load, self.cpus, seed)?);
                self.pass(self.plan.discard)
            }
            Step::Steer(to) => self.steering.to(to),
            Step::Discard => self.pass(self.plan.discard),
            Step::Explain | Step::Stop => {
                self.running = None;
                Ok(())
            }
            Step::Measure(..) => unreachable!("measure() is for that"),
        }
    }

    fn measure(&mut self, column: Column, pair: usize) -> Result<Taken<Sample>, Error> {
        let (pairs, name) = (self.plan.pairs, self.plan.column_name(column));
        let say = format!("{}: pair {} of {pairs}, {name}", self.load, pair + 1);
        self.session.progress.say(&say);
        let before = self.steering.programs()?;
        let begin = Instant::now();
        self.running().begin();
        self.pass(self.plan.sample)?;
        let done = self.running().end();
        let time = begin.elapsed();
        self.steering.still_attached()?;
        let programs = since(&before, self.steering.programs()?);
        let sample = Sample {
            done,
            time,
            programs,
        };
        let per_second = crate::Sample::per_second(&sample);
        let late = sample.latency_ns(0.5).map_or(String::new(), |ns| {
            format!(", median latency {:.0} us", ns / 1e3)
        });
        let line = format!("{say}: {per_second:.0} operations/s{late}");
        self.session.progress.line(&line);
        Ok(Taken::Sample(sample))
    }
}

/// What programs did since then, where they are counted.
fn since(before: &[ProgramHealth], now: Vec<ProgramHealth>) -> Vec<ProgramHealth> {
    let mut since = Vec::new();
    for mut program in now {
        if let Some(then) = before.iter().find(|then| then.name == program.name) {
            program.run_count -= then.run_count;
            program.run_time_ns -= then.run_time_ns;
        }
        if program.run_count > 0 {
            since.push(program);
        }
    }
    since
}

impl Host<'_> {
    /// The running load; the steps see to it that there is one.
    fn running(&mut self) -> &mut load::Running {
        self.running.as_mut().expect("a load was started before")
    }

    fn pass(&self, time: Duration) -> Result<(), Error> {
        self.session.sleep(time)
    }
}
