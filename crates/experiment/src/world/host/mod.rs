// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host itself under our scheduler and under the kernel's own (`unspin bench host`): threads that sleep, call and compute,
//! no VM; they go on while schedulers come and go, as in every comparison. Or somebody's own command.

mod command;
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

pub use command::Command;
pub use load::{Done, Load};
pub use rows::{HostProgramRow, HostRow};

/// How it is compared: a sample is a length of time.
pub type Plan = plan::Plan<Duration>;

/// What is measured.
#[derive(Clone, Debug)]
pub enum Measured {
    /// Threads of ours that go on while schedulers come and go; a sample is a time.
    Load(Load),
    /// Somebody's command; a sample is one run of it, and before each change of scheduler it has ended.
    Command(Command),
}

impl Measured {
    /// How a row names it: a load by its word, a command by its program.
    pub fn name(&self) -> String {
        match self {
            Measured::Load(load) => load.name().to_owned(),
            Measured::Command(command) => command.name(),
        }
    }
}

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
    /// A load's rate, and its median latency if it has latencies.
    fn words(&self) -> String {
        let per_second = crate::Sample::per_second(self);
        let late = self.latency_ns(0.5).map_or(String::new(), |ns| {
            format!(", median latency {:.0} us", ns / 1e3)
        });
        format!("{} operations/s{late}", unspin_report::rate(per_second))
    }

    /// The latency that this share of all do not exceed, ns; at least 1: a ratio needs one.
    fn latency_ns(&self, share: f64) -> Option<f64> {
        let mut sorted = self.done.latencies_ns.clone();
        sorted.sort_unstable();
        rows::percentile(&sorted, share).map(|ns| ns.max(1) as f64)
    }
}

/// Measures each under each scheduler, ours without a policy and the plan's rivals among them. Needs root. `programs`: runs and time of our scheduler's
/// programs are counted, which costs some of it.
///
/// # Errors
/// When a thread or the scheduler cannot be had, a command fails, the kernel sends the scheduler away, or the session is interrupted.
pub fn compare(
    measured: &[Measured],
    plan: &Plan,
    programs: bool,
    session: &Session,
) -> Result<Compared, Error> {
    let mut together = Compared::default();
    for measured in measured {
        let compared = compare_one(measured, plan, programs, session)?;
        together.rows.extend(compared.rows);
        together.programs.extend(compared.programs);
    }
    Ok(together)
}

fn compare_one(
    measured: &Measured,
    plan: &Plan,
    programs: bool,
    session: &Session,
) -> Result<Compared, Error> {
    let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let name = measured.name();
    let mut world = Host {
        measured,
        name: &name,
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
    session.progress.begin(&name, Work::Unknown);
    let samples: Result<Samples<Sample>, Error> =
        run(&mut world, &steps(plan.pairs as usize, columns));
    session.progress.end();
    let samples = samples?;
    Ok(Compared {
        rows: rows::rows(&name, cpus, plan, &samples),
        programs: rows::program_rows(&name, cpus, plan, &samples),
    })
}

struct Host<'a> {
    measured: &'a Measured,
    name: &'a str,
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
            Step::Start(_, seed) => match self.measured {
                Measured::Load(load) => {
                    self.running = Some(load::Running::start(*load, self.cpus, seed)?);
                    self.pass(self.plan.discard)
                }
                // What it reads is in memory from then on.
                Measured::Command(command) => command.run(self.session).map(drop),
            },
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
        let say = format!("{}: pair {} of {pairs}, {name}", self.name, pair + 1);
        self.session.progress.say(&say);
        let before = self.steering.programs()?;
        let (done, time) = match self.measured {
            Measured::Load(_) => self.sample_load()?,
            Measured::Command(command) => {
                let time = command.run(self.session)?;
                (Done::one(time), time)
            }
        };
        self.steering.still_attached()?;
        let programs = since(&before, self.steering.programs()?);
        let sample = Sample {
            done,
            time,
            programs,
        };
        let line = match self.measured {
            Measured::Load(_) => sample.words(),
            Measured::Command(_) => format!("{:.3} s", time.as_secs_f64()),
        };
        self.session.progress.line(&format!("{say}: {line}"));
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
    /// What the running load does in a sample's time, and that time.
    fn sample_load(&mut self) -> Result<(Done, Duration), Error> {
        let begin = Instant::now();
        self.running().begin();
        self.pass(self.plan.sample)?;
        let done = self.running().end();
        Ok((done, begin.elapsed()))
    }

    /// The running load; the steps see to it that there is one.
    fn running(&mut self) -> &mut load::Running {
        self.running.as_mut().expect("a load was started before")
    }

    fn pass(&self, time: Duration) -> Result<(), Error> {
        self.session.sleep(time)
    }
}
