// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes a comparison's steps with Linux guests: their loads go on while our scheduler comes and goes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use unspin_agent::{Observer, PolicyChoice};
use unspin_linux_guest::{Error, Guests, Options, Programs, Run};

use crate::{
    commands::{
        compare::{
            order::{self as compare_order, Column, Policies, Step, Vms, steps},
            steering::Steering,
        },
        vm::linux::{
            policies::{args::LinuxPoliciesArguments, run::Cell},
            run as linux_run,
        },
    },
    terminal::{failure::Failure, interrupt, progress::Activity},
};

/// Whole runs of every VM under one scheduler.
#[derive(Clone, Debug)]
pub struct Sample {
    /// By VM.
    pub runs: Vec<Vec<Run>>,
    /// Pause-loop exits of all VMs while they ran, per second; none where nobody watched.
    pub ple_exits_per_s: Option<f64>,
}

impl Sample {
    /// Of all VMs together, by the guests' own clocks.
    pub fn runs_per_s(&self) -> f64 {
        let of_vm = |runs: &Vec<Run>| runs.len() as f64 * 1e9 / total_ns(runs);
        self.runs.iter().map(of_vm).sum()
    }

    /// How long a run took in the mean of all.
    pub fn run_ns(&self) -> f64 {
        let count: usize = self.runs.iter().map(Vec::len).sum();
        let total: f64 = self.runs.iter().map(|runs| total_ns(runs)).sum();
        total / count as f64
    }

    /// Pause-loop exits for one run of one VM.
    pub fn ple_exits_per_run(&self) -> Option<f64> {
        self.ple_exits_per_s.map(|exits| exits / self.runs_per_s())
    }
}

fn total_ns(runs: &[Run]) -> f64 {
    runs.iter().map(|run| run.load_ns as f64).sum()
}

/// All samples of a cell.
#[derive(Debug, Default)]
pub struct Measured {
    /// By column and pair.
    pub samples: BTreeMap<(Column, usize), Sample>,
    /// Columns under which a load stood still: it took longer than the limit.
    pub stood_still: BTreeSet<Column>,
    /// CPUs of this host.
    pub cpus: u32,
    /// What each guest repeated.
    pub command: String,
}

/// What the steps are made of.
pub fn order(policies: &[PolicyChoice]) -> Policies {
    Policies {
        count: policies.len(),
        steer: policies.iter().any(PolicyChoice::steers),
    }
}

/// What rows and progress call it.
pub fn column_name(arguments: &LinuxPoliciesArguments, column: Column) -> String {
    match column {
        Column::Ideal => "ideal".to_owned(),
        Column::Stock => "stock".to_owned(),
        Column::StockAgain => "stock again".to_owned(),
        Column::RefuseYields => "refuse-yields".to_owned(),
        Column::Policy(at) => arguments.policies[at].names(),
    }
}

/// Whether a load took longer than its limit.
pub fn stands_still(error: &Error) -> bool {
    matches!(
        error,
        Error::TooLong {
            doing: "running",
            ..
        }
    )
}

/// Runs a cell's guests and what they are compared with.
///
/// # Errors
/// When a guest or the scheduler cannot be had, a load takes longer than the limit under the host's own scheduler, or Ctrl-C.
pub fn measure(
    arguments: &LinuxPoliciesArguments,
    programs: &Programs,
    cell: &Cell,
    activity: &Activity,
) -> Result<Measured, Failure> {
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    let mut world = World {
        arguments,
        programs,
        cell,
        activity,
        guests: None,
        steering: Steering::of(&arguments.policies)?,
        observer: linux_run::attach(arguments.observe)?,
        measured: Measured {
            cpus,
            ..Measured::default()
        },
    };
    for step in steps(arguments.pairs as usize, order(&arguments.policies)) {
        world.take(step)?;
    }
    Ok(world.measured)
}

struct World<'a> {
    arguments: &'a LinuxPoliciesArguments,
    programs: &'a Programs,
    cell: &'a Cell,
    activity: &'a Activity,
    // Dropped in this order on an error: the guests first, under whatever scheduler there is.
    guests: Option<Guests>,
    steering: Steering,
    observer: Option<Observer>,
    measured: Measured,
}

impl World<'_> {
    fn take(&mut self, step: Step) -> Result<(), Failure> {
        match step {
            Step::Load(compare_order::Programs::Scheduler) => self.steering.load(),
            // `vm linux` and `record` say what stock's time goes into.
            Step::Load(compare_order::Programs::Observer) => Ok(()),
            // A guest has no seed: what differs from boot to boot is when the host schedules what.
            Step::Start(vms, _) => self.start(vms),
            Step::Steer(to) => self.steering.to(to),
            Step::Discard => {
                let time = self.arguments.discard;
                Ok(self.guests().go_on(time)?)
            }
            Step::Measure(column, pair) => self.sample(column, pair),
            Step::Explain | Step::Stop => {
                self.guests = None;
                Ok(())
            }
        }
    }

    /// The running guests; the steps see to it that there are some.
    fn guests(&mut self) -> &mut Guests {
        self.guests.as_mut().expect("guests were started before")
    }

    fn start(&mut self, which: Vms) -> Result<(), Failure> {
        let arguments = self.arguments;
        let (vms, vcpus) = match which {
            Vms::Ideal => (1, self.measured.cpus),
            Vms::Loaded => (self.cell.vms, self.cell.vcpus),
        };
        let (groups, loops) = self.cell.size();
        let options = Options {
            programs: self.programs.clone(),
            vms,
            vcpus,
            memory_mib: arguments.memory_mib,
            load: self.cell.load.load(),
            groups,
            loops,
            runs: arguments.runs,
            features: self.cell.features,
            ours: None,
            counts: arguments.counts,
            kernel_arguments: Vec::new(),
            symbols: false,
            limit: arguments.limit,
            interrupt: interrupt::flag()?,
        };
        let what = self.what();
        let mut guests = Guests::boot(&options, |ready| {
            let say = format!("{what}: booting, {ready} of {vms} ready");
            self.activity.say(&say);
            Ok::<_, Failure>(())
        })?;
        guests.load()?;
        self.measured.command = guests.command().to_owned();
        self.guests = Some(guests);
        let time = arguments.discard;
        Ok(self.guests().go_on(time)?)
    }

    fn what(&self) -> String {
        let cell = self.cell;
        let load = cell.load.load().name();
        format!("{load}, {}, {}", cell.shape(), cell.features)
    }

    fn sample(&mut self, column: Column, pair: usize) -> Result<(), Failure> {
        let (pairs, name) = (self.arguments.pairs, column_name(self.arguments, column));
        let say = format!("{}: pair {} of {pairs}, {name}", self.what(), pair + 1);
        self.activity.say(&say);
        let (begin, before) = (Instant::now(), self.ple_exits()?);
        let count = self.arguments.runs as usize;
        let runs = match self.guests().whole_runs(count) {
            Ok(runs) => runs,
            // A policy under which a load stands still is a result; under the next one it goes on.
            Err(error) if column.steers() && stands_still(&error) => {
                let why = error.to_string();
                let why = why.lines().next().unwrap_or_default();
                self.activity.done(&format!("{say}: {why}"));
                self.measured.stood_still.insert(column);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let (time, after) = (begin.elapsed(), self.ple_exits()?);
        self.steering.still_attached()?;
        let per_s = |exits: u64| linux_run::per_second(exits, time);
        let ple_exits_per_s = after
            .zip(before)
            .and_then(|(after, before)| per_s(after.saturating_sub(before)));
        let sample = Sample {
            runs,
            ple_exits_per_s,
        };
        let run_ms = sample.run_ns() / 1e6;
        self.activity.done(&format!("{say}: {run_ms:.0} ms a run"));
        self.measured.samples.insert((column, pair), sample);
        Ok(())
    }

    /// Of the guests' vCPUs since they began.
    fn ple_exits(&mut self) -> Result<Option<u64>, Failure> {
        let processes = self.guests().processes();
        let Some(observer) = &self.observer else {
            return Ok(None);
        };
        let counters = observer.counters().map_err(anyhow::Error::from)?;
        let of_guests = counters
            .iter()
            .filter(|counters| processes.contains(&counters.process));
        Ok(Some(of_guests.map(|counters| counters.ple_exits).sum()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspin_linux_guest::Counts;

    #[test]
    fn rates_add_up_over_vms_and_times_are_means_of_runs() {
        let run = |load_ns| Run {
            load_ns,
            counts: Counts::default(),
        };
        let sample = Sample {
            runs: vec![
                vec![run(100_000_000), run(300_000_000)],
                vec![run(500_000_000), run(300_000_000)],
            ],
            ple_exits_per_s: Some(1_500.0),
        };
        assert_eq!(sample.runs_per_s(), 5.0 + 2.5);
        assert_eq!(sample.run_ns(), 300e6);
        assert_eq!(sample.ple_exits_per_run(), Some(200.0));
    }

    #[test]
    fn without_a_policy_our_scheduler_is_not_asked_for() {
        let policies = |texts: &[&str]| {
            let policies = texts.iter().map(|text| text.parse().expect("a policy"));
            order(&policies.collect::<Vec<_>>())
        };
        assert!(!policies(&[]).steer);
        let some = policies(&["gang", "loan-cpl,kernel-exit"]);
        assert_eq!((some.count, some.steer), (2, true));
    }
}
