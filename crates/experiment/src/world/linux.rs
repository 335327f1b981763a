// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux guests on this host: their loads go on while our scheduler comes and goes. A sample is so many whole runs of every VM.

mod figures;

use std::time::{Duration, Instant};

use anyhow::anyhow;
use unspin_agent::Observer;
use unspin_linux_guest::{
    CountsModule, Error as GuestError, Features, Guests, Load, Outcome, Programs, Run,
};

use crate::{
    Error, Row, Session,
    plan::{self, Column, Plan, Step, Vms, steps},
    progress::Work,
    row,
    sample::Samples,
    watch::attach_counting,
    world::{
        Taken, World, run,
        steering::{self, Steering},
    },
};

pub use figures::{Figures, SampleRow};

/// Room for the threads of 64 VMs of 64 vCPUs.
pub const THREADS_MAX: u32 = 4096;

/// What is compared in one table row and its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What each guest runs, over and over.
    pub load: Load,
    /// Groups and loops of the load.
    pub size: (u32, u32),
    /// Its cell of ruling 35.
    pub features: Features,
    /// VMs.
    pub vms: u32,
    /// vCPUs of each.
    pub vcpus: u32,
}

impl Cell {
    /// `2x4`.
    pub fn shape(&self) -> String {
        format!("{}x{}", self.vms, self.vcpus)
    }
}

/// What all guests have.
#[derive(Clone, Debug)]
pub struct Settings {
    /// QEMU, the kernel and the loads.
    pub programs: Programs,
    /// Memory of each VM.
    pub memory_mib: u32,
    /// Whether guests tell of their kernel's own counts.
    pub counts: CountsModule,
    /// How long the guests of a cell may take to boot, and then each sample, by this host's clock.
    pub limit: Duration,
}

/// Whole runs of every VM under one scheduler.
#[derive(Clone, Debug)]
pub struct Sample {
    /// By VM.
    pub runs: Vec<Vec<Run>>,
    /// Pause-loop exits of all VMs while they ran, per second; none where nobody watched.
    pub ple_exits_per_s: Option<f64>,
}

impl crate::Sample for Sample {
    /// Runs of all VMs together, by the guests' own clocks.
    fn per_second(&self) -> f64 {
        let of_vm = |runs: &Vec<Run>| runs.len() as f64 * 1e9 / total_ns(runs);
        self.runs.iter().map(of_vm).sum()
    }
}

impl Sample {
    /// How long a run took in the mean of all.
    pub fn run_ns(&self) -> f64 {
        let count: usize = self.runs.iter().map(Vec::len).sum();
        let total: f64 = self.runs.iter().map(|runs| total_ns(runs)).sum();
        total / count as f64
    }

    /// Requests answered per second, of all VMs together.
    pub fn requests_per_s(&self) -> Option<f64> {
        let of_vm = |runs: &Vec<Run>| {
            let counts = runs.iter().map(|run| run.outcome.requests);
            let total: Option<u64> = counts.sum();
            Some(total? as f64 * 1e9 / total_ns(runs))
        };
        self.runs.iter().map(of_vm).sum()
    }

    /// The 99th percentile of the load's latencies, mean of all runs.
    pub fn p99_ns(&self) -> Option<f64> {
        self.mean(|outcome| outcome.p99_ns)
    }

    /// The longest of a run, mean of all.
    pub fn max_ns(&self) -> Option<f64> {
        self.mean(|outcome| outcome.max_ns)
    }

    fn mean(&self, of: impl Fn(&Outcome) -> Option<u64>) -> Option<f64> {
        let runs = self.runs.iter().flatten();
        let values: Option<Vec<u64>> = runs.map(|run| of(&run.outcome)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<u64>() as f64 / values.len() as f64)
    }

    /// Pause-loop exits for one run of one VM.
    pub fn ple_exits_per_run(&self) -> Option<f64> {
        let per_s = crate::Sample::per_second(self);
        self.ple_exits_per_s.map(|exits| exits / per_s)
    }
}

fn total_ns(runs: &[Run]) -> f64 {
    runs.iter().map(|run| run.outcome.load_ns as f64).sum()
}

/// A mean over a time: `None` when no time has passed.
pub fn per_second(count: u64, time: Duration) -> Option<f64> {
    let seconds = time.as_secs_f64();
    (seconds > 0.0).then(|| count as f64 / seconds)
}

/// The rows of compared cells.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// One for each cell and policy.
    pub rows: Vec<Row<Figures>>,
    /// One for each sample.
    pub samples: Vec<SampleRow>,
}

/// Whether a load took longer than its limit.
fn stands_still(error: &GuestError) -> bool {
    matches!(
        error,
        GuestError::TooLong {
            doing: "running",
            ..
        }
    )
}

/// Runs a cell's guests and what they are compared with. Where a load takes longer than the limit under the host's own scheduler
/// the cell's row says so. Needs root where a policy steers or BPF programs watch.
///
/// # Errors
/// When a guest or the scheduler cannot be had, no pair can be compared, or the session is interrupted.
pub fn compare(
    cell: &Cell,
    settings: &Settings,
    plan: &Plan<u32>,
    session: &Session,
) -> Result<Compared, Error> {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let mut world = Linux {
        cell,
        settings,
        plan,
        session,
        guests: None,
        steering: Steering::of(plan, session)?,
        observer: attach_counting(plan.observe, THREADS_MAX)?,
        cpus,
        command: String::new(),
    };
    session.progress.begin("Linux guests", Work::Unknown);
    let samples = run(&mut world, &steps(plan.pairs as usize, plan.columns()));
    session.progress.end();
    match samples {
        Ok(samples) => compared(cell, plan, &samples, cpus, &world.command),
        Err(Error::Failed(error))
            if error.downcast_ref::<GuestError>().is_some_and(stands_still) =>
        {
            let text = error.to_string();
            let why = text.lines().next().unwrap_or_default();
            Ok(Compared {
                rows: vec![figures::not_measured(cell, plan, why)],
                samples: Vec::new(),
            })
        }
        Err(error) => Err(error),
    }
}

/// What the samples say.
fn compared(
    cell: &Cell,
    plan: &Plan<u32>,
    samples: &Samples<Sample>,
    cpus: u32,
    command: &str,
) -> Result<Compared, Error> {
    let overcommit = f64::from(cell.vms * cell.vcpus) / f64::from(cpus);
    let judged = plan.judged();
    let rows = row::rows(&cell.shape(), overcommit, samples, &judged, |column| {
        Figures::of(cell, plan, samples, command, column)
    });
    let rows =
        rows.ok_or_else(|| anyhow!("no pair of runs of {} can be compared", cell.shape()))?;
    Ok(Compared {
        rows,
        samples: figures::sample_rows(cell, plan, samples),
    })
}

struct Linux<'a> {
    cell: &'a Cell,
    settings: &'a Settings,
    plan: &'a Plan<u32>,
    session: &'a Session<'a>,
    // Dropped in this order on an error: the guests first, under whatever scheduler there is.
    guests: Option<Guests>,
    steering: Steering<'a>,
    observer: Option<Observer>,
    cpus: u32,
    /// What each guest repeats.
    command: String,
}

impl World for Linux<'_> {
    type Sample = Sample;

    fn change(&mut self, step: Step) -> Result<(), Error> {
        match step {
            Step::Load(plan::Programs::Scheduler) => self.steering.load(),
            // `vm linux` and `record` say what stock's time goes into.
            Step::Load(plan::Programs::Observer) => Ok(()),
            // A guest has no seed: what differs from boot to boot is when the host schedules what.
            Step::Start(vms, _) => self.start(vms),
            Step::Steer(to) => {
                self.steering.to(to)?;
                let learning = self.steering.learning();
                Ok(self.guests().go_on(learning)?)
            }
            Step::Discard => {
                let time = self.plan.discard;
                Ok(self.guests().go_on(time)?)
            }
            Step::Explain | Step::Stop => {
                self.guests = None;
                Ok(())
            }
            Step::Measure(..) => unreachable!("measure() is for that"),
        }
    }

    fn measure(&mut self, column: Column, pair: usize) -> Result<Taken<Sample>, Error> {
        let (pairs, name) = (self.plan.pairs, self.plan.column_name(column));
        let say = format!("{}: pair {} of {pairs}, {name}", self.what(), pair + 1);
        let progress = self.session.progress;
        progress.say(&say);
        let (begin, before) = (Instant::now(), self.ple_exits()?);
        let count = self.plan.sample as usize;
        let runs = match self.guests().whole_runs(count) {
            Ok(runs) => runs,
            // A policy under which a load stands still is a result; under the next one it goes on.
            Err(error) if column.steers() && stands_still(&error) => {
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default();
                progress.line(&format!("{say}: {why}"));
                return Ok(Taken::StoodStill);
            }
            Err(error) => return Err(error.into()),
        };
        let (time, after) = (begin.elapsed(), self.ple_exits()?);
        self.steering.still_attached()?;
        let chosen = steering::in_words(&self.steering.chosen_by_auto());
        let ple_exits_per_s = after
            .zip(before)
            .and_then(|(after, before)| per_second(after.saturating_sub(before), time));
        let sample = Sample {
            runs,
            ple_exits_per_s,
        };
        progress.line(&format!(
            "{say}: {:.0} ms a run{chosen}",
            sample.run_ns() / 1e6
        ));
        Ok(Taken::Sample(sample))
    }
}

impl Linux<'_> {
    /// The running guests; the steps see to it that there are some.
    fn guests(&mut self) -> &mut Guests {
        self.guests.as_mut().expect("guests were started before")
    }

    fn start(&mut self, which: Vms) -> Result<(), Error> {
        let (vms, vcpus) = match which {
            Vms::Ideal => (1, self.cpus),
            Vms::Loaded => (self.cell.vms, self.cell.vcpus),
        };
        let (groups, loops) = self.cell.size;
        let options = unspin_linux_guest::Options {
            programs: self.settings.programs.clone(),
            vms,
            vcpus,
            memory_mib: self.settings.memory_mib,
            load: self.cell.load,
            groups,
            loops,
            runs: self.plan.sample,
            features: self.cell.features,
            ours: None,
            counts: self.settings.counts,
            kernel_arguments: Vec::new(),
            symbols: false,
            limit: self.settings.limit,
            interrupt: self.session.interrupt.clone(),
        };
        let what = self.what();
        let mut guests = Guests::boot(&options, |ready| {
            let say = format!("{what}: booting, {ready} of {vms} ready");
            self.session.progress.say(&say);
            Ok::<_, Error>(())
        })?;
        guests.load()?;
        self.command = guests.command().to_owned();
        self.guests = Some(guests);
        self.steering.vms_started();
        let time = self.plan.discard;
        Ok(self.guests().go_on(time)?)
    }

    fn what(&self) -> String {
        let cell = self.cell;
        let load = cell.load.name();
        format!("{load}, {}, {}", cell.shape(), cell.features)
    }

    /// Of the guests' vCPUs since they began.
    fn ple_exits(&mut self) -> Result<Option<u64>, Error> {
        let processes = self.guests().processes();
        let Some(observer) = &self.observer else {
            return Ok(None);
        };
        let counters = observer.counters()?;
        let of_guests = counters
            .iter()
            .filter(|counters| processes.contains(&counters.process));
        Ok(Some(of_guests.map(|counters| counters.ple_exits).sum()))
    }
}

#[cfg(test)]
mod tests;
