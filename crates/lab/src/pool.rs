// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs many scenarios on all cores: in parallel across runs, never inside one, with the same results for any number of
//! workers.

use std::{
    num::NonZero,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread,
};

use rayon::{ThreadPoolBuilder, prelude::*};
use unspin_scenario::Scenario;

use crate::{Lab, LabError, Outcome, RunError, run};

/// The user interrupted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

/// Why a scenario has no result.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// Invalid input: nothing has run.
    #[error("{of}: {error}")]
    Refused {
        /// The scenario's file or name.
        of: String,
        /// What is wrong with it.
        error: LabError,
    },
    /// The user interrupted it.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The run ended before its time.
    #[error("{scenario}, seed {seed}: {error}")]
    Stuck {
        /// Its name.
        scenario: String,
        /// The seed that reproduces it.
        seed: u64,
        /// The reason.
        error: RunError,
    },
}

/// The number of workers: as many as this process has CPUs, unless another number is given.
pub fn workers(wanted: Option<u32>) -> usize {
    let here = || thread::available_parallelism().map_or(1, NonZero::get);
    wanted.map_or_else(here, |wanted| wanted as usize).max(1)
}

/// One run in this thread, without an observer, which ends soon after `interrupt` is set.
///
/// # Errors
/// A scenario that does not fit, a model that makes no progress, or an interrupt.
pub fn run_one(
    scenario: &Scenario,
    interrupt: &Arc<AtomicBool>,
) -> Result<Outcome, SimulationError> {
    let refused = |error| SimulationError::Refused {
        of: scenario.name.clone(),
        error,
    };
    let lab = Lab::new(scenario).map_err(refused)?;
    let mut world = lab.world(scenario, ()).map_err(refused)?;
    world.interrupt_by(interrupt);
    run(&mut world, scenario, |_| {}).map_err(|error| match error {
        RunError::Interrupted { .. } => Interrupted.into(),
        error => SimulationError::Stuck {
            scenario: scenario.name.clone(),
            seed: scenario.seed,
            error,
        },
    })
}

/// Does all jobs with this many workers, starting them in order. `done` is called for each result with the job's index,
/// in order of completion, in the calling thread.
///
/// # Errors
/// The first error of a job or of `done`, after which no other job starts; [`Interrupted`] likewise, once `interrupted`
/// is set.
///
/// # Panics
/// When no thread can be created, or a job panics.
pub fn each<J: Sync, R: Send, E: From<Interrupted> + Send>(
    jobs: &[J],
    workers: usize,
    interrupted: &AtomicBool,
    work: impl Fn(&J) -> Result<R, E> + Sync,
    mut done: impl FnMut(usize, R) -> Result<(), E>,
) -> Result<(), E> {
    let threads = ThreadPoolBuilder::new().num_threads(workers.clamp(1, jobs.len().max(1)));
    let threads = threads.build().expect("threads for the workers");
    let stop = AtomicBool::new(false);
    let (sender, results) = mpsc::channel();
    threads.in_place_scope(|scope| {
        let (stop, work) = (&stop, &work);
        scope.spawn(move |_| {
            // A bridge gives out jobs one by one in order, where a parallel slice would be split in halves.
            let each = jobs.iter().enumerate().par_bridge();
            // Ends early when no more results are needed.
            let _: Result<(), ()> = each.try_for_each_with(sender, |sender, (place, job)| {
                if stop.load(Ordering::Relaxed) {
                    return Err(());
                }
                let result = work(job);
                if result.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                sender.send((place, result)).map_err(|_| ())
            });
        });
        let mut outcome = Ok(());
        // Receives until the last worker has ended, so that no finished result is dropped before `done` has seen it.
        for (place, result) in results {
            let taken = result.and_then(|result| done(place, result));
            let taken = match interrupted.load(Ordering::Relaxed) {
                true => taken.and(Err(Interrupted.into())),
                false => taken,
            };
            if taken.is_err() {
                stop.store(true, Ordering::Relaxed);
                outcome = outcome.and(taken);
            }
        }
        outcome
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum Ended {
        Interrupted,
        Text(&'static str),
    }

    impl From<Interrupted> for Ended {
        fn from(_: Interrupted) -> Ended {
            Ended::Interrupted
        }
    }

    static NEVER: AtomicBool = AtomicBool::new(false);

    #[test]
    fn every_job_is_done_once_with_any_number_of_workers() {
        let jobs: Vec<u64> = (0..100).collect();
        for workers in [1, 3, 200] {
            let mut seen = vec![0; jobs.len()];
            each(
                &jobs,
                workers,
                &NEVER,
                |job| Ok::<u64, Ended>(job * 2),
                |place, result| {
                    assert_eq!(result, place as u64 * 2);
                    seen[place] += 1;
                    Ok(())
                },
            )
            .expect("nothing fails");
            assert!(seen.iter().all(|times| *times == 1));
        }
    }

    #[test]
    fn a_failure_ends_it_and_what_was_done_is_kept() {
        let jobs: Vec<u64> = (0..1_000).collect();
        let mut kept = 0;
        let work = |job: &u64| match job {
            5 => Err(Ended::Text("five")),
            job => Ok(*job),
        };
        let failed = each(&jobs, 2, &NEVER, work, |_, _| {
            kept += 1;
            Ok(())
        });
        assert_eq!(failed, Err(Ended::Text("five")));
        assert!((5..1_000).contains(&kept), "{kept}");
    }

    #[test]
    fn who_interrupts_waits_for_the_jobs_at_hand_alone() {
        let jobs: Vec<u64> = (0..1_000).collect();
        let interrupted = AtomicBool::new(false);
        let mut kept = 0;
        let work = |job: &u64| {
            thread::sleep(Duration::from_millis(1));
            Ok::<u64, Ended>(*job)
        };
        let ended = each(&jobs, 2, &interrupted, work, |_, _| {
            kept += 1;
            interrupted.store(kept >= 3, Ordering::Relaxed);
            Ok(())
        });
        assert_eq!(ended, Err(Ended::Interrupted));
        assert!((3..500).contains(&kept), "{kept}");
        // Without jobs there is nothing to interrupt.
        assert_eq!(
            each(&jobs[..0], 2, &interrupted, work, |_, _| Ok(())),
            Ok(())
        );
    }
}
