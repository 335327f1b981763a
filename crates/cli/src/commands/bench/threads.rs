// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench threads`: the locks between threads, as a table.

use unspin_abi::LockKind;
use unspin_experiment::run_states::{Grants, RunStateChoice};
use unspin_lockbench::{
    Axes, Cell, Contender, ThreadsReport,
    points::{self, Point},
    table::GrantPages,
    threads::{self, ThreadsOptions},
};
use unspin_report::{Column, Document, Summary, Table, Unit};
use unspin_scenario::{Distribution, Length, Scenario, Shape, WorkUnit};

use crate::{
    commands::bench::{
        args::{Matrix, ThreadsArguments},
        plot::{self, format_work},
    },
    terminal::{failure::Failure, interrupt, output, progress::Steps},
};

/// What runs when no scenario is given.
const NATIVE: &str = include_str!("../../../../../scenarios/threads/native.toml");
/// A sample of a matrix, for as many threads as CPUs.
const MATRIX_WINDOW_NS: u64 = 20_000_000;
const MATRIX_WARM_UP_NS: u64 = 2_000_000;

const COLUMNS: &[Column] = &[
    Column::new("lock", "lock", Unit::Text),
    Column::new("threads", "threads", Unit::Count),
    Column::new("hold", "hold", Unit::Text),
    Column::new("think", "think", Unit::Text),
    Column::new("neighbours", "neighbours", Unit::Count),
    Column::json_only("is_baseline", Unit::Text),
    Column::json_only("groups", Unit::Count),
    Column::json_only("cpus", Unit::Count),
    Column::new("samples", "samples", Unit::Count),
    Column::new("operations_per_second", "ops/s (mean)", Unit::Count),
    Column::new("operations_per_second_low", "95 % from", Unit::Count),
    Column::new("operations_per_second_high", "to", Unit::Count),
    Column::new("operations_per_second_least", "least", Unit::Count),
    Column::new("operations_per_second_most", "most", Unit::Count),
    Column::json_only("operations_per_second_deviation", Unit::Count),
    Column::json_only("operations_per_second_median", Unit::Count),
    Column::new("null_ratio", "null", Unit::Ratio),
    Column::new("jain_index", "Jain", Unit::Ratio),
    Column::new("acquire_p50_ns", "wait p50", Unit::Nanoseconds),
    Column::new("acquire_p95_ns", "p95", Unit::Nanoseconds),
    Column::new("acquire_p99_ns", "p99", Unit::Nanoseconds),
    Column::new("acquire_longest_ns", "longest", Unit::Nanoseconds),
    Column::new("cpu_per_operation_ns", "CPU/op", Unit::Nanoseconds),
    Column::json_only("parks_per_operation", Unit::Ratio),
    Column::json_only("waiting_share_percent", Unit::Percent),
    Column::json_only("longest_wait_ns", Unit::Nanoseconds),
    Column::json_only("fairness_ratio", Unit::Ratio),
    Column::json_only("hold_mean_ns", Unit::Nanoseconds),
    Column::json_only("uncontended_cycles", Unit::Count),
    Column::json_only("tau_ns", Unit::Nanoseconds),
    Column::json_only("pauses", Unit::Count),
    Column::json_only("waits", Unit::Count),
    Column::json_only("acquisitions", Unit::Count),
    Column::new("stalls", "stalls", Unit::Count),
    Column::new("stalls_unheld", "of them unheld", Unit::Count),
    Column::new("waiter_share_of_stalls_percent", "unheld %", Unit::Percent),
];

const POINT_COLUMNS: &[Column] = &[
    Column::new("threads", "threads", Unit::Count),
    Column::new("hold", "hold", Unit::Text),
    Column::new("think", "think", Unit::Text),
    Column::new("neighbours", "neighbours", Unit::Count),
    Column::new("contended", "contended", Unit::Text),
    Column::new("ours", "our best", Unit::Text),
    Column::new("ours_operations_per_second", "ops/s", Unit::Count),
    Column::new("ours_jain_index", "Jain", Unit::Ratio),
    Column::new("baseline", "best baseline as fair", Unit::Text),
    Column::new("baseline_operations_per_second", "ops/s", Unit::Count),
    Column::new("baseline_jain_index", "Jain", Unit::Ratio),
    Column::new("ratio", "ours/baseline, other half", Unit::Ratio),
    Column::new("null_ratio", "ours/ours", Unit::Ratio),
];

/// Runs every lock at every point, and prints a row for each, and how our best does against the best baseline.
pub fn run(arguments: &ThreadsArguments) -> Result<(), Failure> {
    let mut scenario = scenario(arguments)?;
    if arguments.matrix.is_some() && arguments.overrides.duration.is_none() {
        scenario.length = Length::DurationNs(MATRIX_WINDOW_NS);
        scenario.warm_up_ns = MATRIX_WARM_UP_NS;
    }
    let axes = axes(arguments)?;
    let run_states = RunStateChoice::make(arguments.run_states.into())?;
    let grants = arguments.grants.then(Grants::make).transpose()?;
    let slices = run_states.offers.slice_extension;
    if arguments.slice_extension && !slices {
        return Err(Failure::Usage(
            "--slice-extension: this kernel has no time-slice extension (Linux 7.0, CONFIG_RSEQ_SLICE_EXTENSION)".into(),
        ));
    }
    let interrupt = interrupt::flag()?;
    let options = ThreadsOptions {
        scenario: &scenario,
        axes,
        run_states: run_states.run_states(),
        slice_extension: arguments.slice_extension,
        grants: grants.as_ref().map(|pages| pages as &dyn GrantPages),
        stretch: arguments.matrix.is_some(),
        repeat: arguments.repeat,
        interrupt: &interrupt,
    };
    let steps = Steps::with_rest(threads::samples(&options), "samples");
    let report = threads::run(&options, &mut |done, _| steps.done(done))?;
    drop(steps);
    let points = points::points(&report);
    if let Some(file) = &arguments.plot {
        plot::write(file, &plot::marks(&report), "threads")?;
    }
    let mut document = output::document("bench threads");
    notes(&mut document, &scenario, &report, &options, &run_states);
    let mut table = Table::new("threads", "", COLUMNS);
    for cell in &report.cells {
        table.push(row(cell, &report));
    }
    document.table(table);
    if !points.is_empty() {
        document.table(point_table(&points, &report));
    }
    output::print(&document, arguments.output)?;
    Ok(())
}

fn notes(
    document: &mut Document,
    scenario: &Scenario,
    report: &ThreadsReport,
    options: &ThreadsOptions<'_>,
    run_states: &RunStateChoice,
) {
    document.note(format!(
        "{}: {} CPUs, seed {}, scenario {}",
        scenario.name,
        report.cpus,
        scenario.seed,
        scenario.hash()
    ));
    document.note(format!(
        "tau of preemptable_ticket: {} spins = {:.1} us here",
        report.tau_spins,
        report.tau_ns / 1e3
    ));
    document.note(format!("run_states: {}", run_states.said()));
    let slices = match (options.slice_extension, run_states.offers.slice_extension) {
        (true, _) => "asked for around critical sections",
        (false, true) => "there, not asked for",
        (false, false) => "this kernel has none",
    };
    document.note(format!("time-slice extension: {slices}"));
    let missing = Contender::missing_baselines();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        document.note(format!(
            "not in this build (libck-dev was missing): {missing}"
        ));
    }
}

fn point_table(points: &[Point], report: &ThreadsReport) -> Table {
    let title = "Our best against the best baseline whose Jain's index is not lower by more than 0.05, both chosen on one half of \
                 the runs, worst first";
    let mut table = Table::new("points", title, POINT_COLUMNS);
    for point in points {
        let cell = report
            .cells
            .iter()
            .find(|cell| cell.point == point.number)
            .expect("a point is made of cells");
        table.push(vec![
            point.threads.into(),
            format_work(&cell.hold).into(),
            format_work(&cell.think).into(),
            point.neighbours.into(),
            if point.is_contended() { "yes" } else { "no" }.into(),
            point.ours.lock.clone().into(),
            point.ours.rate.into(),
            point.ours.jain.into(),
            point.baseline.lock.clone().into(),
            point.baseline.rate.into(),
            point.baseline.jain.into(),
            point.ratio.into(),
            point.null_ratio.into(),
        ]);
    }
    table
}

/// Each of these times, always.
pub fn constants(times: &[u64]) -> Vec<Distribution> {
    let constant = |&ns: &u64| Distribution {
        unit: WorkUnit::Nanoseconds,
        shape: Shape::Constant(ns),
    };
    times.iter().map(constant).collect()
}

/// Times of the command line, which are below 2^64 ns.
pub fn nanoseconds(times: &[std::time::Duration]) -> Vec<u64> {
    times.iter().map(|time| time.as_nanos() as u64).collect()
}

/// What is given, and what the matrix gives where nothing is.
fn axes(arguments: &ThreadsArguments) -> Result<Axes, Failure> {
    let (mut holds, mut thinks) = (nanoseconds(&arguments.hold), nanoseconds(&arguments.think));
    let mut threads = arguments.threads.clone();
    let mut neighbours = arguments.neighbours.clone();
    let (mut ours, mut baselines) = (arguments.locks.clone(), arguments.baselines.clone());
    if let Some(matrix) = arguments.matrix {
        let (of_threads, of_holds, of_thinks, of_neighbours): (&[u32], &[u64], &[u64], &[u32]) =
            match matrix {
                Matrix::Quick => (&[1, 2, 4, 16], &[50, 2_000], &[0, 2_000], &[0]),
                Matrix::Full => (
                    &[1, 2, 4, 8, 16, 32],
                    &[50, 500, 2_000, 20_000],
                    &[0, 1_000, 50_000],
                    &[0, 1],
                ),
            };
        or_else(&mut threads, of_threads);
        or_else(&mut holds, of_holds);
        or_else(&mut thinks, of_thinks);
        or_else(&mut neighbours, of_neighbours);
        or_else(&mut ours, &["all".to_owned()]);
        or_else(&mut baselines, &["all".to_owned()]);
    }
    let mut locks: Vec<_> = our_locks(&ours)?.into_iter().map(Contender::Ours).collect();
    let baselines = baselines_of(&baselines)?;
    if locks.is_empty() && !baselines.is_empty() {
        return Err(Failure::Usage(
            "--baselines: name our locks as well (--lock)".into(),
        ));
    }
    locks.extend(baselines);
    Ok(Axes {
        locks,
        threads,
        holds: constants(&holds),
        thinks: constants(&thinks),
        neighbours,
    })
}

fn or_else<T: Clone>(given: &mut Vec<T>, preset: &[T]) {
    if given.is_empty() {
        *given = preset.to_vec();
    }
}

fn scenario(arguments: &ThreadsArguments) -> Result<Scenario, Failure> {
    let overrides = arguments.overrides.overrides()?;
    Ok(match &arguments.file {
        Some(file) => Scenario::load(file, &overrides)?,
        None => Scenario::parse_with(NATIVE, "the built-in scenario", "native", &overrides)?,
    })
}

/// The locks of `--lock`: names, or "all".
pub fn our_locks(names: &[String]) -> Result<Vec<LockKind>, Failure> {
    if names == ["all"] {
        return Ok(LockKind::all().collect());
    }
    let find = |name: &String| {
        LockKind::from_name(name).ok_or_else(|| {
            let known: Vec<_> = LockKind::all().map(LockKind::name).collect();
            Failure::Usage(format!(
                "--lock {name}: there is no such lock; there are {}",
                known.join(", ")
            ))
        })
    };
    names.iter().map(find).collect()
}

fn baselines_of(names: &[String]) -> Result<Vec<Contender>, Failure> {
    match names {
        [one] if one == "all" => return Ok(Contender::baselines().collect()),
        [one] if one == "none" => return Ok(Vec::new()),
        _ => {}
    }
    let find = |name: &String| {
        Contender::from_name(name)
            .filter(|contender| contender.is_baseline())
            .ok_or_else(|| {
                let known: Vec<_> = Contender::baselines().map(Contender::name).collect();
                Failure::Usage(format!(
                    "--baselines {name}: this build has no such baseline; it has {}",
                    known.join(", ")
                ))
            })
    };
    names.iter().map(find).collect()
}

fn row(cell: &Cell, report: &ThreadsReport) -> Vec<unspin_report::Cell> {
    let figures = cell.figures();
    let rates = Summary::of(&cell.operations_per_second());
    vec![
        cell.lock.clone().into(),
        cell.threads.into(),
        format_work(&cell.hold).into(),
        format_work(&cell.think).into(),
        cell.neighbours.into(),
        if cell.is_baseline { "yes" } else { "no" }.into(),
        cell.groups.into(),
        report.cpus.into(),
        cell.samples.len().into(),
        rates.map(|rates| rates.mean).into(),
        rates.map(|rates| rates.interval.low.max(0.0)).into(),
        rates.map(|rates| rates.interval.high).into(),
        rates.map(|rates| rates.least).into(),
        rates.map(|rates| rates.largest).into(),
        rates.map(|rates| rates.deviation).into(),
        figures.median_rate.into(),
        figures.null_ratio.into(),
        figures.jain.into(),
        figures.acquire_ns[0].into(),
        figures.acquire_ns[1].into(),
        figures.acquire_ns[2].into(),
        figures.acquire_ns[3].into(),
        figures.cpu_ns_per_operation.into(),
        figures.parks_per_operation.into(),
        figures.waiting_share_percent.into(),
        (figures.longest_wait_us * 1e3).into(),
        figures.fairness.into(),
        figures.hold_mean_ns.into(),
        figures.uncontended_cycles.into(),
        report.tau_ns.into(),
        figures.pauses.into(),
        figures.waits.into(),
        figures.acquisitions.into(),
        figures.stalls.into(),
        figures.stalls_unheld.into(),
        figures.waiter_share_of_stalls_percent.into(),
    ]
}
