// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench vm`: the locks in micro guests under this host's KVM, over VMs, vCPUs, hold, think and neighbours.

use unspin_experiment::{
    Error,
    axes::{constants, our_locks},
    lock_matrix::{Axes, cells, marks, measure, rows},
    plot,
};
use unspin_report::Table;
use unspin_scenario::{Length, Scenario};

use crate::{
    commands::bench::args::BenchVmArguments,
    terminal::{failure::Failure, output, progress::Experiment},
};

/// What runs when no scenario is given.
const MICRO: &str = include_str!("../../../../../scenarios/locks/micro.toml");
/// Runs every lock at every point, and prints a row for each.
pub fn run(arguments: &BenchVmArguments) -> Result<(), Failure> {
    let scenario = scenario(arguments)?;
    let axes = Axes {
        locks: our_locks(&arguments.locks)?,
        vms: arguments.vms.clone(),
        vcpus: arguments.vcpus.clone(),
        holds: constants(&arguments.hold),
        thinks: constants(&arguments.think),
        neighbours: arguments.neighbours.clone(),
    };
    let mut cells = cells(axes, &scenario)?;
    let progress = Experiment::new(false);
    let repeat = arguments.repeat;
    measure(&mut cells, &scenario, repeat, &progress.session()?).map_err(with_a_way)?;
    if let Some(file) = &arguments.plot {
        plot::write(file, &marks(&cells), "VMs")?;
    }
    let mut document = output::document("bench vm");
    document.note(format!(
        "{}: seed {}, scenario {}",
        scenario.name,
        scenario.seed,
        scenario.hash()
    ));
    document.table(Table::of("", rows(&cells)));
    document.note(
        "ops/s: of all VMs, neighbours left out; null: the point's first lock run twice, the second by the first.\n\
         wait: of acquisitions that found the lock taken; percentiles are upper bounds of buckets by powers of two.\n\
         longest: of the whole run; all else of the window, over all samples.",
    );
    output::print(&document, arguments.output)?;
    Ok(())
}

/// The scenario that is varied.
///
/// # Errors
/// What the parser refuses; more than one group of VMs; a length in spins, which has no rate of CPU time.
pub fn scenario(arguments: &BenchVmArguments) -> Result<Scenario, Failure> {
    let overrides = arguments.overrides.overrides()?;
    let scenario = match &arguments.file {
        Some(file) => Scenario::load(file, &overrides)?,
        None => Scenario::parse_with(MICRO, "the built-in scenario", "micro", &overrides)?,
    };
    if scenario.vms.len() != 1 {
        return Err(Failure::Usage(format!(
            "bench vm varies one group of VMs ([[vm]]), and {} has {}",
            scenario.name,
            scenario.vms.len()
        )));
    }
    if matches!(scenario.length, Length::Iterations(_)) {
        return Err(Failure::Usage(
            "bench vm compares rates: give the scenario a duration, not iterations".into(),
        ));
    }
    Ok(scenario)
}

/// Where KVM cannot be used, or is one under which the guest cannot live (PVM), the command that needs neither.
fn with_a_way(error: Error) -> Failure {
    use unspin_vmm::Error as VmError;
    let Error::Failed(error) = error else {
        return error.into();
    };
    let unusable = matches!(
        error.downcast_ref(),
        Some(
            VmError::NoKvm
                | VmError::NoPermission
                | VmError::OpenKvm(_)
                | VmError::OldKvm { .. }
                | VmError::MissingCapability { .. }
                | VmError::Guest { .. }
        )
    );
    if !unusable {
        return error.into();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    Failure::Failed(error.context(format!(
        "this host's KVM did not run the guests; `unspin testbed run -- unspin {}` brings its own",
        words.join(" ")
    )))
}
