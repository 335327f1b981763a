// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux-policies`: unmodified Linux guests that keep running, like `compare`'s, while our scheduler and its policies
//! come and go (ruling 35's cells).

pub(crate) mod args;

use unspin_agent::{PolicyChoice, Steerer};
use unspin_experiment::{
    Plan, Row, check_user_policies,
    linux::{self, Cell, Compared, Figures, Settings, compare},
    rival::{check_rivals, note},
};
use unspin_linux_guest::Programs;
use unspin_report::{Column, Document, Machine, Table, Unit};
use unspin_vmm::PauseLoop;

use crate::{
    commands::vm::linux::policies::args::LinuxPoliciesArguments,
    terminal::{
        failure::Failure,
        output::{self, rows},
        progress::Experiment,
    },
};

/// Measures every cell and prints one table.
pub fn run(arguments: &LinuxPoliciesArguments) -> Result<(), Failure> {
    check(arguments)?;
    let cache = unspin_testbed::cache_from_environment().unwrap_or_default();
    let programs = Programs::find(output::in_testbed(), &cache)?;
    let pause_loop = PauseLoop::of_this_host(&arguments.host())?;
    if arguments.policies.iter().any(PolicyChoice::steers) {
        Steerer::check().map_err(anyhow::Error::from)?;
    }
    let settings = Settings {
        programs,
        memory_mib: arguments.memory_mib(),
        counts: arguments.counts,
        limit: arguments.limit,
    };
    let plan = Plan {
        pairs: arguments.pairs,
        sample: arguments.runs,
        discard: arguments.discard,
        observe: arguments.observe.into(),
        policies: arguments.policies.clone(),
        rivals: arguments.rivals.clone(),
        only_vms: false,
        useful_time: false,
    };
    let progress = Experiment::new(true);
    let mut together = Compared::default();
    for cell in cells(arguments) {
        let compared = compare(&cell, &settings, &plan, &progress.session()?)?;
        together.rows.extend(compared.rows);
        together.samples.extend(compared.samples);
    }
    let machine = Machine::here(output::in_testbed()).to_string();
    let mut document = Document::new("vm linux-policies", &machine);
    add_tables(&mut document, &together.rows, &together.samples);
    document.note(format!(
        "{} MiB, counts {}; {}; a run's time is the guests' own; ratios are of runs per second of all VMs together; ideal: one \
         VM with as many vCPUs as CPUs",
        arguments.memory_mib(),
        arguments.counts,
        PauseLoop::describe(pause_loop.as_ref())
    ));
    if let Some(rivals) = note(&arguments.rivals)? {
        document.note(rivals);
    }
    Ok(output::print(&document, arguments.output)?)
}

fn check(arguments: &LinuxPoliciesArguments) -> Result<(), Failure> {
    check_user_policies(&arguments.policies)?;
    check_rivals(&arguments.rivals)?;
    arguments
        .policies
        .iter()
        .try_for_each(|policy| policy.without_window("`vm linux-policies`"))
        .map_err(Failure::Usage)
}

/// All cells, those of a load next to one another.
fn cells(arguments: &LinuxPoliciesArguments) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &load in &arguments.loads {
        for &features in &arguments.features {
            cells.extend(arguments.shapes.iter().map(|&(vms, vcpus)| Cell {
                load: load.load(),
                size: args::size(load),
                features,
                vms,
                vcpus,
            }));
        }
    }
    cells
}

/// What people see of a row; the last only where a cell has no figures.
const ROW: &[Column] = &[
    Column::new("load", "load", Unit::Text),
    Column::new("features", "features", Unit::Text),
    Column::new("shape", "VMs x vCPUs", Unit::Text),
    Column::new("ideal_run_ns", "ideal run", Unit::Nanoseconds),
    Column::new("stock_run_ns", "stock run", Unit::Nanoseconds),
    Column::new("stock_ratio_to_ideal", "stock / ideal", Unit::Ratio),
    Column::new("stock_ratio_to_stock", "stock / stock", Unit::Ratio),
    Column::new("null_verdict", "null", Unit::Text),
    Column::new(
        "refuse_yields_ratio_to_stock",
        "refuse-yields / stock",
        Unit::Ratio,
    ),
    Column::new("policy", "policy", Unit::Text),
    Column::new("policy_run_ns", "policy run", Unit::Nanoseconds),
    Column::new("stock_p99_ns", "p99, stock", Unit::Nanoseconds),
    Column::new("policy_p99_ns", "p99, policy", Unit::Nanoseconds),
    Column::new("throughput_ratio_to_stock", "policy / stock", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_low", "95 % from", Unit::Ratio),
    Column::new("throughput_ratio_to_stock_high", "to", Unit::Ratio),
    Column::new("verdict", "is", Unit::Text),
    Column::new("gap_closed", "gap closed", Unit::Ratio),
    Column::new("harm", "harm", Unit::Text),
    Column::new(
        "stock_ple_exits_per_run",
        "PLE exits per run, stock",
        Unit::Count,
    ),
    Column::new("policy_ple_exits_per_run", "policy", Unit::Count),
    Column::new("pairs", "pairs", Unit::Count),
    Column::new("not_measured", "not measured", Unit::Text),
];

rows!(
    /// A cell under a policy. Times are means of all runs; ratios are of runs per second of all VMs together.
    CellRow(Row<Figures>), "cell", &["vm linux-policies"], ROW;
    /// One sample, as it was measured.
    SampleRow(linux::SampleRow), "sample", &["vm linux-policies"], &[];
);

/// Adds the tables.
fn add_tables(document: &mut Document, rows: &[Row<Figures>], samples: &[linux::SampleRow]) {
    let measured = rows.iter().all(|row| row.world.not_measured.is_none());
    // People see why a cell has no figures where one has none, and latencies where a load has some.
    let mut hidden: Vec<&str> = Vec::new();
    if measured {
        hidden.push("not_measured");
    }
    if rows.iter().all(|row| row.world.stock_p99_ns.is_none()) {
        hidden.extend(["stock_p99_ns", "policy_p99_ns"]);
    }
    let rows = rows.iter().cloned().map(CellRow);
    document.table(Table::of("Linux guests", rows).without_columns(&hidden));
    let samples = samples.iter().cloned().map(SampleRow);
    document.table(Table::of("", samples));
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use unspin_linux_guest::Features;

    use super::*;
    use crate::commands::{Arguments, Command, vm::args::VmVerb};

    fn arguments(words: &str) -> Result<LinuxPoliciesArguments, clap::Error> {
        let line = format!("unspin vm linux-policies {words}");
        match Arguments::try_parse_from(line.split_whitespace())?.command {
            Command::Vm(VmVerb::LinuxPolicies(arguments)) => Ok(arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_load_has_every_cell_of_ruling_35_in_every_shape() {
        let all = cells(&arguments("").expect("valid"));
        assert_eq!(all.len(), 3 * 2 * 2);
        let shapes: Vec<_> = all.iter().map(Cell::shape).collect();
        assert_eq!(shapes[..4], ["1x4", "2x4", "1x4", "2x4"]);
        let features: Vec<_> = all.iter().map(|cell| cell.features).collect();
        let (vee21, stock) = (Features::VEE21, Features::STOCK);
        assert_eq!(features[..4], [vee21, vee21, stock, stock]);
        let words = "--shapes 3x2 --loads mmaps --features nopvspin --features pvspin";
        let some = arguments(words).expect("valid");
        assert_eq!(some.vms(), 3);
        assert_eq!(some.programs(), ["busybox", "mmaps", "qemu-system-x86_64"]);
        assert_eq!(cells(&some).len(), 2);
        assert_eq!(some.memory_mib(), 160);
        let database = arguments("--loads mmaps,pgbench").expect("valid");
        assert_eq!(database.memory_mib(), 512);
        let told = arguments("--loads pgbench --memory-mib 700").expect("valid");
        assert_eq!(told.memory_mib(), 700);
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        for wrong in [
            "--shapes 2x",
            "--shapes 0x4",
            "--loads torture",
            "--loads idle",
            "--policy lend",
            "--rival lavd",
            "--features pvspn",
            "--pairs 0",
            "--runs 0",
            "--counts yes",
        ] {
            let error = arguments(wrong).expect_err(wrong).to_string();
            let value = wrong.rsplit(' ').next().expect("a word");
            assert!(error.contains(value), "{wrong}: {error}");
        }
        for wrong in [
            "--policy apple",
            "--policy a.c --policy b.c",
            "--rival scx_lavd,scx_lavd",
        ] {
            let refused = check(&arguments(wrong).expect("it can be read"));
            assert!(matches!(refused, Err(Failure::Usage(_))), "{wrong}");
        }
        assert!(
            check(&arguments("--policy loan-cpl,kernel-exit --policy gang").expect("valid"))
                .is_ok()
        );
    }

    #[test]
    fn a_cell_without_figures_says_why() {
        let text = |rows: &[Row<Figures>]| {
            let mut document = Document::new("vm linux-policies", "here");
            add_tables(&mut document, rows, &[]);
            let mut out = Vec::new();
            document.write_text(&mut out).expect("a Vec takes it");
            String::from_utf8(out).expect("UTF-8")
        };
        let mut row: Row<Figures> = Row::default();
        assert!(!text(&[row.clone()]).contains("not measured"));
        assert!(!text(&[row.clone()]).contains("p99"));
        row.world.stock_p99_ns = Some(1e6);
        assert!(text(&[row.clone()]).contains("p99, policy"));
        row.world.not_measured = Some("linux0 has not done".to_owned());
        let said = text(&[row]);
        assert!(said.contains("linux0 has not done"), "{said}");
    }
}
