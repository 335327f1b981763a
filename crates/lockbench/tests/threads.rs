// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks between real threads: exclusion, counts that add up, and what a run reports.

use std::{
    sync::{Barrier, atomic::AtomicBool},
    thread,
    time::Duration,
};

use unspin_abi::{LockKind, UNSPIN_QUANTILES, unspin_distribution};
use unspin_lockbench::{
    Axes, Contender, Error, Sample, ThreadsReport,
    group::{Group, Phase, Work},
    table::RunStates,
    threads::{Bench, ThreadsOptions},
};
use unspin_scenario::Scenario;

fn constant(loops: u32) -> unspin_distribution {
    unspin_distribution {
        quantile_loops: [loops; UNSPIN_QUANTILES as usize],
    }
}

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test").expect("a scenario")
}

fn run(text: &str, locks: &[LockKind], counts: &[u32]) -> Result<ThreadsReport, Error> {
    let options = ThreadsOptions {
        scenario: &scenario(text),
        axes: Axes {
            locks: locks.iter().copied().map(Contender::from).collect(),
            threads: counts.to_vec(),
            ..Axes::default()
        },
        run_states: RunStates::None,
        slice_extension: false,
        grants: None,
        stretch: false,
        interrupt: &AtomicBool::new(false),
    };
    measure(options)
}

/// Every cell twice.
fn measure(options: ThreadsOptions<'_>) -> Result<ThreadsReport, Error> {
    let bench = Bench::prepare(options)?;
    let twice = |cell| {
        (0..2)
            .map(|repetition| bench.sample(cell, repetition))
            .collect()
    };
    let samples: Result<Vec<Vec<Sample>>, Error> = (0..bench.points().len()).map(twice).collect();
    let mut samples = samples?;
    Ok(bench.report(|cell| std::mem::take(&mut samples[cell])))
}

/// Threads, iterations of each, loops of the work loop inside. The last are often preempted inside.
const MEETINGS: [(u32, u32, u32); 4] =
    [(2, 300, 0), (2, 300, 40), (3, 80, 3_000), (5, 40, 400_000)];

/// Lock and trylock at random: nobody meets anybody, no entry is lost, counts add up.
#[test]
fn lock_and_trylock_exclude_each_other() {
    let mut refused = 0;
    for (seed, (count, iterations, hold)) in MEETINGS.into_iter().enumerate() {
        for kind in LockKind::all() {
            let locks = 1 + seed as u32 % 2;
            let work = Work {
                user_work: constant(0),
                kernel_work: constant(0),
                hold: constant(hold),
                locks,
                iterations,
                pause_every_spins: 1 + seed as u32 % 2 * 9,
                seed: seed as u64,
            };
            let mut group = Group::new(kind, count, locks);
            assert_eq!(group.lock_name(), kind.name());
            let (phase, together) = (Phase::new(false), Barrier::new(count as usize));
            let seen: Vec<_> = thread::scope(|scope| {
                let (group, work, phase, together) = (&group, &work, &phase, &together);
                let body = move |number| {
                    together.wait();
                    group.validate(work, phase, number)
                };
                let handles: Vec<_> = (0..count).map(|n| scope.spawn(move || body(n))).collect();
                handles
                    .into_iter()
                    .map(|handle| handle.join().expect("no panic"))
                    .collect()
            });
            let name = kind.name();
            let entered: u64 = seen.iter().map(|one| one.locked + one.try_locked).sum();
            assert!(
                seen.iter().all(|one| one.violations == 0),
                "{name} {seed}: {seen:?}"
            );
            for one in &seen {
                assert_eq!(
                    one.locked + one.try_locked + one.try_refused,
                    u64::from(iterations),
                    "{name} {seed}"
                );
                assert!(one.locked > 0, "{name} {seed}");
            }
            assert_eq!(group.entries(), entered, "{name} {seed}: entries were lost");
            assert_eq!(group.still_locked(), 0, "{name} {seed}");
            refused += seen.iter().map(|one| one.try_refused).sum::<u64>();
        }
    }
    assert!(refused > 0, "no trylock ever met a taken lock: too tame");
}

const ITERATIONS: &str = r#"
    iterations = 100
    seed = 7
    [[vm]]
    count = 2
    vcpus = 3
    lock = "ticket"
    locks = 2
    hold = { uniform = ["10 loops", "60 loops"] }
    user_work = { exponential = "50 loops" }
"#;

#[test]
fn every_iteration_is_counted_once() {
    let locks: Vec<_> = LockKind::all().collect();
    let report = run(ITERATIONS, &locks, &[1, 3]).expect("runs");
    // Ruling 8: 16,384 spins; from 1 ns a spin without PAUSE to some hundred with a slow one.
    assert_eq!(report.tau_spins, 1 << 14);
    assert!((1e4..1e7).contains(&report.tau_ns), "{}", report.tau_ns);
    assert_eq!(
        report.cells.len(),
        locks.len() * 2,
        "each lock with 1 and 3 threads"
    );
    for cell in &report.cells {
        assert_eq!((cell.groups, cell.samples.len()), (2, 2));
        let figures = cell.figures();
        assert_eq!(
            figures.acquisitions,
            2 * u64::from(cell.threads) * 100,
            "{}",
            cell.lock
        );
        assert!(figures.stalls_unheld <= figures.stalls && figures.stalls <= figures.waits);
        assert!(figures.waits <= figures.acquisitions);
        assert!((0.0..=100.0).contains(&figures.waiting_share_percent));
        assert!(
            figures.hold_mean_ns > 0.0
                && figures
                    .uncontended_cycles
                    .is_some_and(|cycles| cycles > 1.0)
        );
        for sample in &cell.samples {
            assert!(sample.operations_per_second() > 0.0);
            for one in &sample.threads {
                assert_eq!(one.operations, 100);
                assert_eq!(one.hold.count.iter().sum::<u64>(), one.operations);
                assert_eq!(one.hold.sum_cycles.iter().sum::<u64>(), one.hold_cycles);
                assert_eq!(one.lock_wait.count.iter().sum::<u64>(), one.lock_waits);
                assert_eq!(
                    one.lock_wait.sum_cycles.iter().sum::<u64>(),
                    one.lock_wait_cycles
                );
                assert!(
                    one.spin_count >= one.lock_waits
                        && one.longest_wait_cycles <= one.lock_wait_cycles
                );
                assert!(one.pauses <= one.spin_count && one.done_tsc > one.first_instruction_tsc);
            }
        }
        if cell.threads == 2 {
            assert_eq!(figures.waits, 0, "a thread alone in its group never waits");
        }
    }
}

#[test]
fn private_locks_never_wait() {
    let text = ITERATIONS.replace("locks = 2", "locks = \"private\"");
    let report = run(&text, &[], &[]).expect("runs");
    let [cell] = &report.cells[..] else {
        panic!("one cell: the scenario's own")
    };
    assert_eq!((cell.lock.as_str(), cell.threads), ("ticket", 6));
    assert_eq!(cell.figures().waits, 0);
    assert_eq!(cell.figures().stalls, 0);
}

#[test]
fn a_duration_is_kept_and_its_warm_up_left_out() {
    let text = ITERATIONS.replace(
        "iterations = 100",
        "duration = \"60ms\"\nwarm_up = \"20ms\"",
    );
    let report = run(&text, &[], &[2]).expect("runs");
    for sample in &report.cells[0].samples {
        let window = Duration::from_nanos(sample.window_ns);
        assert!((60..500).contains(&window.as_millis()), "{window:?}");
        assert!(sample.operations() > 0);
    }
}

#[test]
fn work_in_time_takes_that_time() {
    let text = r#"
        iterations = 300
        [[vm]]
        vcpus = 1
        lock = "test_and_set"
        hold = "20us"
    "#;
    let report = run(text, &[], &[]).expect("runs");
    assert!(
        report.loops_per_ns.is_some_and(|rate| rate > 0.01),
        "{:?}",
        report.loops_per_ns
    );
    // The median, since some may be preempted: its bucket, as powers of two.
    let sample = &report.cells[0].samples[0];
    let hold = &sample.threads[0].hold;
    let mut below = 0;
    let median = hold.count.iter().position(|count| {
        below += count;
        below >= 150
    });
    let low_ns = 2f64.powi(median.expect("300 holds") as i32) / sample.cycles_per_ns;
    assert!((9_000.0..40_000.0).contains(&low_ns), "{low_ns}");
}

#[test]
fn what_threads_cannot_do_is_refused() {
    let refused =
        |text: &str, counts: &[u32]| run(text, &[], counts).expect_err("refused").to_string();
    let shootdowns = format!("{ITERATIONS}    shootdown_every_iterations = 5\n");
    assert!(refused(&shootdowns, &[]).contains("shootdown_every_iterations"));
    assert_eq!(refused(ITERATIONS, &[0]), "a group has 1 to 64 threads");
    assert_eq!(refused(ITERATIONS, &[65]), "a group has 1 to 64 threads");
    let cpus = ITERATIONS.replace("[[vm]]", "[host]\ncpus = 4096\n[[vm]]");
    assert!(
        refused(&cpus, &[]).contains("4096 CPUs"),
        "{}",
        refused(&cpus, &[])
    );
}

#[test]
fn an_interrupt_ends_the_run() {
    let text = ITERATIONS.replace("iterations = 100", "duration = \"3600s\"");
    let scenario = scenario(&text);
    let interrupt = AtomicBool::new(true);
    let options = ThreadsOptions {
        scenario: &scenario,
        axes: Axes::default(),
        run_states: RunStates::None,
        slice_extension: false,
        grants: None,
        stretch: false,
        interrupt: &interrupt,
    };
    let result = measure(options);
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
}
