// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin bench vm`: the locks in micro guests under this host's KVM, over VMs, vCPUs, hold, think and neighbours.

use std::sync::atomic::Ordering;

use unspin_abi::LockKind;
use unspin_experiment::kvm;
use unspin_lockbench::latency::median;
use unspin_scenario::{Distribution, Length, LockSharing, Scenario, Shape, Vm, WorkUnit};
use unspin_vmm::RunOptions;

use crate::{
    commands::bench::{
        args::BenchVmArguments,
        plot,
        plot::{Mark, format_work},
        threads::{constants, nanoseconds, our_locks},
        vm_figures::{Cell, Sample},
        vm_tables as tables,
    },
    terminal::{failure::Failure, interrupt, output, progress::Steps},
};

/// What runs when no scenario is given.
const MICRO: &str = include_str!("../../../../../scenarios/locks/micro.toml");
/// User work of a neighbour between two acquisitions of a lock that only it has, in loops.
const NEIGHBOUR_LOOPS: u64 = 30_000;

/// Runs every lock at every point, and prints a row for each.
pub fn run(arguments: &BenchVmArguments) -> Result<(), Failure> {
    let scenario = scenario(arguments)?;
    let mut cells = cells(arguments, &scenario)?;
    for cell in &cells {
        check(&cell.scenario(&scenario, 0))?;
    }
    measure(&mut cells, &scenario, arguments.repeat)?;
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

impl Cell {
    /// What one repetition runs: its seed is the scenario's and the repetition's number, the same for all locks.
    fn scenario(&self, of: &Scenario, repetition: u32) -> Scenario {
        let mut scenario = of.clone();
        scenario.seed = of.seed.wrapping_add(u64::from(repetition));
        let group = &mut scenario.vms[0];
        group.lock = self.lock;
        group.count = self.vms;
        group.vcpus = self.vcpus;
        group.hold = self.hold.clone();
        group.user_work = self.think.clone();
        if self.neighbours > 0 {
            let beside = neighbour(&scenario.vms[0], self.neighbours);
            scenario.vms.push(beside);
        }
        scenario
    }
}

/// A VM of one vCPU that computes in user mode, and whose lock nobody else ever asks for.
fn neighbour(group: &Vm, count: u32) -> Vm {
    let loops = |loops| Distribution {
        unit: WorkUnit::Loops,
        shape: Shape::Constant(loops),
    };
    Vm {
        count,
        vcpus: 1,
        lock: LockKind::from_name("ticket").expect("there is a ticket lock"),
        locks: LockSharing::Private,
        user_work: loops(NEIGHBOUR_LOOPS),
        kernel_work: loops(0),
        hold: loops(1),
        shootdown_every_iterations: 0,
        wakeup_every_iterations: 0,
        log_records: 0,
        pv_page: false,
        pv_page_memory: Default::default(),
        help_after_spins: 0,
        tasks_per_vcpu: 1,
        workload: Default::default(),
        reader_percent: 0,
        ecs_ablation: Default::default(),
        ..group.clone()
    }
}

/// A B ... A, and backwards the next time, so that a drift meets all alike.
fn measure(cells: &mut [Cell], scenario: &Scenario, repeat: u32) -> Result<(), Failure> {
    let interrupt = interrupt::flag()?;
    let steps = Steps::with_rest(cells.len() * repeat as usize, "runs");
    let mut done = 0;
    for repetition in 0..repeat {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        if repetition % 2 == 1 {
            order.reverse();
        }
        for number in order {
            if interrupt.load(Ordering::Relaxed) {
                return Err(Failure::Interrupted);
            }
            let runs = cells[number].scenario(scenario, repetition);
            let options = RunOptions {
                interrupt: interrupt.clone(),
                pv_pages: kvm::pv_pages_of_running(&runs)?,
                ..RunOptions::default()
            };
            let report = unspin_vmm::run(&runs, &options).map_err(with_a_way)?;
            cells[number].samples.push(Sample::of(&report));
            done += 1;
            steps.done(done);
        }
    }
    Ok(())
}

/// Where KVM cannot be used, or is one under which the guest cannot live (PVM), the command that needs neither.
fn with_a_way(error: unspin_vmm::Error) -> Failure {
    use unspin_vmm::Error;
    let unusable = matches!(
        error,
        Error::NoKvm
            | Error::NoPermission
            | Error::OpenKvm(_)
            | Error::OldKvm { .. }
            | Error::MissingCapability { .. }
            | Error::Guest { .. }
    );
    if !unusable {
        return error.into();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    Failure::Failed(anyhow::Error::from(error).context(format!(
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
