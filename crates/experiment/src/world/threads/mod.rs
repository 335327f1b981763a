// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of this process on this machine's own CPUs: what is compared are locks, ours and others' (`unspin bench threads`).

mod rows;
mod run_states;

use std::time::Duration;

use unspin_lockbench::{
    Axes, Contender, Sample, ThreadsReport,
    points::{self, Point},
    table::GrantPages,
    threads::{Bench, ThreadsOptions},
};
use unspin_scenario::{Length, Scenario};

pub use rows::{CellRow, PointRow};
pub use run_states::RunStateSource;
use run_states::{Grants, RunStateChoice};

use crate::{
    Error, Session, Work,
    axes::{baselines, describe_point, our_locks},
    plot::Mark,
    steps::{self, Column, Step},
    world::{Taken, World},
};

/// What runs when no scenario is given.
pub const NATIVE: &str = include_str!("../../../../../scenarios/threads/native.toml");
/// A sample of a matrix, for as many threads as CPUs.
const MATRIX_WINDOW_NS: u64 = 20_000_000;
const MATRIX_WARM_UP_NS: u64 = 2_000_000;

/// Axes that were chosen once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matrix {
    /// 1, 2, 4, 16 threads, hold 50 ns and 2 us, think 0 and 2 us.
    Quick,
    /// 1 to 32 threads, hold 50 ns to 20 us, think 0 to 50 us, without a neighbour and with one.
    Full,
}

/// What is varied; what is empty is the matrix's, or the scenario's own.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Our locks by name, or "all".
    pub locks: Vec<String>,
    /// Baselines by name, "all" or "none".
    pub baselines: Vec<String>,
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Times for which the lock is held.
    pub holds: Vec<Duration>,
    /// Times between unlock and lock.
    pub thinks: Vec<Duration>,
    /// Numbers of threads beside them that only use CPU time.
    pub neighbours: Vec<u32>,
}

/// What runs, and how.
pub struct Settings {
    /// The scenario; each VM becomes a group of threads.
    pub scenario: Scenario,
    /// What is varied.
    pub given: Given,
    /// Where nothing is given; its samples are longer with more threads.
    pub matrix: Option<Matrix>,
    /// Where the locks' run states come from.
    pub run_states: RunStateSource,
    /// Whether threads tell the running `unspin steer` of their critical sections.
    pub grants: bool,
    /// Whether threads ask for time-slice extension around them.
    pub slice_extension: bool,
    /// Repetitions of each cell, 1 or more.
    pub repeat: u32,
}

/// What was measured, and how.
pub struct Measured {
    /// Every cell's samples.
    pub report: ThreadsReport,
    /// Our best against the best baseline as fair, worst ratio first.
    pub points: Vec<Point>,
    /// Where the run states came from, in words.
    pub run_states: String,
    /// Whether time-slice extension was asked for, and whether it is there, in words.
    pub slice_extension: &'static str,
}

impl Matrix {
    /// A scenario that says no length gets that of the matrix's samples.
    pub fn set_length(self, scenario: &mut Scenario) {
        scenario.length = Length::DurationNs(MATRIX_WINDOW_NS);
        scenario.warm_up_ns = MATRIX_WARM_UP_NS;
    }

    /// What is given, and what the matrix has where nothing is.
    fn complete(self, given: &mut Given) {
        let ns = |times: &[u64]| -> Vec<_> {
            let times = times.iter().copied();
            times.map(Duration::from_nanos).collect()
        };
        let (threads, holds, thinks, neighbours): (&[u32], &[u64], &[u64], &[u32]) = match self {
            Matrix::Quick => (&[1, 2, 4, 16], &[50, 2_000], &[0, 2_000], &[0]),
            Matrix::Full => (
                &[1, 2, 4, 8, 16, 32],
                &[50, 500, 2_000, 20_000],
                &[0, 1_000, 50_000],
                &[0, 1],
            ),
        };
        or_else(&mut given.threads, threads);
        or_else(&mut given.holds, &ns(holds));
        or_else(&mut given.thinks, &ns(thinks));
        or_else(&mut given.neighbours, neighbours);
        or_else(&mut given.locks, &["all".to_owned()]);
        or_else(&mut given.baselines, &["all".to_owned()]);
    }
}

fn or_else<T: Clone>(given: &mut Vec<T>, preset: &[T]) {
    if given.is_empty() {
        *given = preset.to_vec();
    }
}

/// The axes that are given, completed by the matrix.
///
/// # Errors
/// Names that nothing has; baselines without a lock of ours.
fn axes(mut given: Given, matrix: Option<Matrix>) -> Result<Axes, Error> {
    if let Some(matrix) = matrix {
        matrix.complete(&mut given);
    }
    let locks = our_locks(&given.locks)?;
    let mut locks: Vec<_> = locks.into_iter().map(Contender::Ours).collect();
    let baselines = baselines(&given.baselines)?;
    if locks.is_empty() && !baselines.is_empty() {
        return Err(Error::Usage(
            "--baselines: name our locks as well (--lock)".into(),
        ));
    }
    locks.extend(baselines);
    Ok(Axes {
        locks,
        threads: given.threads,
        holds: crate::axes::constants(&given.holds),
        thinks: crate::axes::constants(&given.thinks),
        neighbours: given.neighbours,
    })
}

/// Runs every lock at every point.
///
/// # Errors
/// What this host does not have of what is asked for, a scenario that threads cannot do, an interrupt.
pub fn measure(settings: Settings, session: &Session<'_>) -> Result<Measured, Error> {
    let axes = axes(settings.given, settings.matrix)?;
    let run_states = RunStateChoice::make(settings.run_states)?;
    let grants = settings.grants.then(Grants::make).transpose()?;
    let offered = run_states.offers.slice_extension;
    if settings.slice_extension && !offered {
        return Err(Error::Usage(
            "--slice-extension: this kernel has no time-slice extension (Linux 7.0, CONFIG_RSEQ_SLICE_EXTENSION)".into(),
        ));
    }
    let options = ThreadsOptions {
        scenario: &settings.scenario,
        axes,
        run_states: run_states.run_states(),
        slice_extension: settings.slice_extension,
        grants: grants.as_ref().map(|pages| pages as &dyn GrantPages),
        stretch: settings.matrix.is_some(),
        interrupt: &session.interrupt,
    };
    let report = report(Bench::prepare(options)?, settings.repeat, session)?;
    Ok(Measured {
        points: points::points(&report),
        report,
        run_states: run_states.said(),
        slice_extension: match (settings.slice_extension, offered) {
            (true, _) => "asked for around critical sections",
            (false, true) => "there, not asked for",
            (false, false) => "this kernel has none",
        },
    })
}

/// Measures every lock at every point so many times.
fn report(bench: Bench<'_>, repeat: u32, session: &Session<'_>) -> Result<ThreadsReport, Error> {
    let points: Vec<usize> = bench.points().collect();
    let steps = steps::locks(&points, repeat as usize);
    let mut world = Threads {
        bench,
        session,
        done: 0,
    };
    session
        .progress
        .begin("samples", Work::EvenSteps(steps.len()));
    let samples = crate::world::run(&mut world, &steps);
    session.progress.end();
    let samples = samples?;
    let of_lock = |lock| {
        samples
            .of(Column::Lock(lock))
            .into_iter()
            .cloned()
            .collect()
    };
    Ok(world.bench.report(of_lock))
}

struct Threads<'a> {
    bench: Bench<'a>,
    session: &'a Session<'a>,
    done: usize,
}

impl World for Threads<'_> {
    type Sample = Sample;

    fn change(&mut self, _: Step) -> Result<(), Error> {
        unreachable!("threads are made for each sample, under the host's scheduler")
    }

    fn measure(&mut self, column: Column, repetition: usize) -> Result<Taken<Sample>, Error> {
        let Column::Lock(lock) = column else {
            unreachable!("what is compared are locks")
        };
        let sample = self.bench.sample(lock, repetition as u32)?;
        self.done += 1;
        self.session.progress.done(self.done);
        Ok(Taken::Sample(sample))
    }
}

impl Measured {
    /// A mark for each lock at each point, for [`plot::write`](crate::plot::write).
    pub fn marks(&self) -> Vec<Mark<'_>> {
        let cells = self.report.cells.iter();
        let marks = cells.map(|cell| Mark {
            panel: describe_point(&cell.hold, &cell.think, cell.neighbours),
            is_baseline: cell.is_baseline,
            lock: &cell.lock,
            x: cell.threads,
            rate: cell.figures().median_rate,
        });
        marks.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_goes_before_the_matrix() {
        let given = Given {
            threads: vec![3],
            locks: vec!["ticket".into()],
            ..Given::default()
        };
        let quick = axes(given.clone(), Some(Matrix::Quick)).expect("valid");
        assert_eq!((quick.threads, quick.holds.len()), (vec![3], 2));
        let ours = |axes: &Axes| -> usize {
            let locks = axes.locks.iter();
            locks.filter(|lock| !lock.is_baseline()).count()
        };
        let full = axes(Given::default(), Some(Matrix::Full)).expect("valid");
        assert_eq!((full.threads.len(), full.neighbours.len()), (6, 2));
        assert!(ours(&full) > 1 && full.locks.len() > ours(&full));
        let none = axes(given, None).expect("valid");
        assert_eq!((none.locks.len(), none.holds.len()), (1, 0));
        let baselines = Given {
            baselines: vec!["all".into()],
            ..Given::default()
        };
        assert!(
            matches!(axes(baselines, None), Err(Error::Usage(text)) if text.contains("--lock"))
        );
    }
}
