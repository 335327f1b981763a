// SPDX-License-Identifier: MIT OR Apache-2.0
//! Many runs of the lab on all cores: parallel across runs, never inside one, and the same results with any number of
//! workers.

use std::{
    num::NonZero,
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use unspin_lab::{Lab, Outcome, run as run_world};
use unspin_scenario::Scenario;

use crate::{
    commands::lab::load,
    terminal::{failure::Failure, interrupt},
};

/// As many workers as there are CPUs for this process, unless somebody wants another number.
pub fn workers(wanted: Option<u32>) -> usize {
    let here = || thread::available_parallelism().map_or(1, NonZero::get);
    wanted.map_or_else(here, |wanted| wanted as usize).max(1)
}

/// One run, in this thread, watched by nobody.
///
/// # Errors
/// A scenario that does not fit, or a model that makes no progress.
pub fn run_one(scenario: &Scenario) -> Result<Outcome, Failure> {
    let refused = |error| load::refused(&scenario.name, &error);
    let lab = Lab::new(scenario).map_err(refused)?;
    let mut world = lab.world(scenario, ()).map_err(refused)?;
    run_world(&mut world, scenario, |_| {}).map_err(|error| load::stuck(scenario, &error))
}

/// Does all jobs with so many workers. `done` is told each result with the job's place, in order of completion.
///
/// # Errors
/// The first of a job or of `done`, after which no other job begins; Ctrl-C likewise.
pub fn each<J: Sync, R: Send>(
    jobs: &[J],
    workers: usize,
    work: impl Fn(&J) -> Result<R, Failure> + Sync,
    mut done: impl FnMut(usize, R) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let interrupted = interrupt::flag()?;
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers.min(jobs.len()) {
            let sender = sender.clone();
            let (next, stop, work) = (&next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(place) else { break };
                    if sender.send((place, work(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut outcome = Ok(());
        // Until the last worker has gone, so that nothing that was worked out is thrown away before `done` saw it.
        for (place, result) in results {
            let taken = result.and_then(|result| done(place, result));
            let taken = match interrupted.load(Ordering::Relaxed) {
                true => taken.and(Err(Failure::Interrupted)),
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
    use super::*;

    #[test]
    fn every_job_is_done_once_with_any_number_of_workers() {
        let jobs: Vec<u64> = (0..100).collect();
        for workers in [1, 3, 200] {
            let mut seen = vec![0; jobs.len()];
            each(
                &jobs,
                workers,
                |job| Ok(job * 2),
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
            5 => Err(Failure::Usage("five".into())),
            job => Ok(*job),
        };
        let failed = each(&jobs, 2, work, |_, _| {
            kept += 1;
            Ok(())
        });
        assert!(matches!(failed, Err(Failure::Usage(text)) if text == "five"));
        assert!((5..1_000).contains(&kept), "{kept}");
    }
}
