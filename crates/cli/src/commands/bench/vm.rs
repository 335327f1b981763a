// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench vm`: the locks in micro guests under this host's KVM, over VMs, vCPUs, hold, think and neighbours.

use unspin_abi::LockKind;
use unspin_experiment::{
    Error,
    lock_matrix::{Cell, measure},
};
use unspin_lockbench::latency::median;
use unspin_scenario::{Distribution, Length, Scenario};

use crate::{
    commands::bench::{
        args::BenchVmArguments,
        plot::{self, Mark, format_work},
        threads::{constants, nanoseconds, our_locks},
        vm_tables as tables,
    },
    terminal::{failure::Failure, output, progress::Experiment},
};

/// What runs when no scenario is given.
const MICRO: &str = include_str!("../../../../../scenarios/locks/micro.toml");
/// Runs every lock at every point, and prints a row for each.
pub fn run(arguments: &BenchVmArguments) -> Result<(), Failure> {
    let scenario = scenario(arguments)?;
    let mut cells = cells(arguments, &scenario)?;
    for cell in &cells {
        check(&cell.scenario(&scenario, 0))?;
    }
    let progress = Experiment::new(false);
    let repeat = arguments.repeat;
    measure(&mut cells, &scenario, repeat, &progress.session()?).map_err(with_a_way)?;
    if let Some(file) = &arguments.plot {
        plot::write(file, &marks(&cells), "VMs")?;
    }
    let mut document = output::document("bench vm");
    tables::add(&mut document, &scenario, &cells);
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

/// Whether the parser takes what the axes made of the scenario.
fn check(scenario: &Scenario) -> Result<(), Failure> {
    Scenario::parse(&scenario.to_toml(), "the scenario with these axes")?;
    Ok(())
}

/// For each point every lock in the order given, and the first one again.
fn cells(arguments: &BenchVmArguments, scenario: &Scenario) -> Result<Vec<Cell>, Failure> {
    let own = &scenario.vms[0];
    let mut locks = our_locks(&arguments.locks)?;
    if locks.is_empty() {
        locks.push(own.lock);
    }
    let or_own = |given: Vec<Distribution>, own: &Distribution| match given.is_empty() {
        true => vec![own.clone()],
        false => given,
    };
    let holds = or_own(constants(&nanoseconds(&arguments.hold)), &own.hold);
    let thinks = or_own(constants(&nanoseconds(&arguments.think)), &own.user_work);
    let mut cells = Vec::new();
    let mut point = 0;
    for &neighbours in &arguments.neighbours {
        for &vcpus in &arguments.vcpus {
            for hold in &holds {
                for think in &thinks {
                    for &vms in &arguments.vms {
                        let cell = |(number, &lock): (usize, &LockKind)| Cell {
                            lock,
                            is_again: number == locks.len(),
                            point,
                            vms,
                            vcpus,
                            hold: hold.clone(),
                            think: think.clone(),
                            neighbours,
                            samples: Vec::new(),
                        };
                        let with_null = locks.iter().chain(locks.first());
                        cells.extend(with_null.enumerate().map(cell));
                        point += 1;
                    }
                }
            }
        }
    }
    Ok(cells)
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

fn marks(cells: &[Cell]) -> Vec<Mark<'_>> {
    let own = cells.iter().filter(|cell| !cell.is_again);
    own.map(|cell| Mark {
        panel: title(cell),
        is_baseline: false,
        lock: cell.lock.name(),
        x: cell.vms,
        rate: median(&cell.rates()),
    })
    .collect()
}

fn title(cell: &Cell) -> String {
    let beside = match cell.neighbours {
        0 => String::new(),
        count => format!(", {count} beside"),
    };
    let (hold, think) = (format_work(&cell.hold), format_work(&cell.think));
    format!("{} vCPUs, hold {hold}, think {think}{beside}", cell.vcpus)
}
