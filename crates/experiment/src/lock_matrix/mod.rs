// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks in micro guests under this host's KVM, over VMs, vCPUs, hold, think and neighbours (`unspin bench vm`).

mod figures;
mod rows;

use std::sync::atomic::Ordering;

pub use figures::{Cell, Sample};
pub use rows::{CellRow, marks, rows};
use unspin_abi::LockKind;
use unspin_scenario::{Distribution, LockSharing, Scenario, Shape, Vm, WorkUnit};
use unspin_vmm::RunOptions;

use crate::{
    Error, Session, Work, kvm,
    steps::{self, Column, Step},
    world::{self, Taken, World},
};

/// User work of a neighbour between two acquisitions of a lock that only it has, in loops.
const NEIGHBOUR_LOOPS: u64 = 30_000;

/// What is varied, each in the order given; what is empty is the scenario's own.
#[derive(Clone, Debug)]
pub struct Axes {
    /// The locks; the first is what the others are compared with.
    pub locks: Vec<LockKind>,
    /// Numbers of VMs.
    pub vms: Vec<u32>,
    /// Numbers of vCPUs of each.
    pub vcpus: Vec<u32>,
    /// Work inside the lock.
    pub holds: Vec<Distribution>,
    /// Work in user mode.
    pub thinks: Vec<Distribution>,
    /// Numbers of VMs of one vCPU beside them.
    pub neighbours: Vec<u32>,
}

/// For each point every lock in the order given, and the first one again.
///
/// # Errors
/// What the parser refuses of the scenario that the axes make.
pub fn cells(axes: Axes, scenario: &Scenario) -> Result<Vec<Cell>, Error> {
    let own = &scenario.vms[0];
    let mut locks = axes.locks;
    if locks.is_empty() {
        locks.push(own.lock);
    }
    let or_own = |given: Vec<Distribution>, own: &Distribution| match given.is_empty() {
        true => vec![own.clone()],
        false => given,
    };
    let holds = or_own(axes.holds, &own.hold);
    let thinks = or_own(axes.thinks, &own.user_work);
    let mut cells = Vec::new();
    let mut point = 0;
    for &neighbours in &axes.neighbours {
        for &vcpus in &axes.vcpus {
            for hold in &holds {
                for think in &thinks {
                    for &vms in &axes.vms {
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
    for cell in &cells {
        let text = cell.scenario(scenario, 0).to_toml();
        Scenario::parse(&text, "the scenario with these axes")?;
    }
    Ok(cells)
}

impl Cell {
    /// What one repetition runs: its seed is the scenario's and the repetition's number, the same for all locks.
    pub fn scenario(&self, of: &Scenario, repetition: u32) -> Scenario {
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
        load_changes_every_ms: 0,
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

/// Runs each cell so many times, every second time in reversed order, each time with the next seed.
///
/// # Errors
/// A VM that cannot be run, an interrupt.
pub fn measure(
    cells: &mut [Cell],
    scenario: &Scenario,
    repeat: u32,
    session: &Session<'_>,
) -> Result<(), Error> {
    let points: Vec<usize> = cells.iter().map(|cell| cell.point).collect();
    let steps = steps::locks(&points, repeat as usize);
    let mut guests = Guests {
        cells,
        scenario,
        session,
        done: 0,
    };
    session.progress.begin("runs", Work::EvenSteps(steps.len()));
    let samples = world::run(&mut guests, &steps);
    session.progress.end();
    let samples = samples?;
    for (number, cell) in cells.iter_mut().enumerate() {
        let of_cell = samples.of(Column::Lock(number)).into_iter();
        cell.samples = of_cell.cloned().collect();
    }
    Ok(())
}

/// Micro guests, made anew for each sample.
struct Guests<'a> {
    cells: &'a [Cell],
    scenario: &'a Scenario,
    session: &'a Session<'a>,
    done: usize,
}

impl World for Guests<'_> {
    type Sample = Sample;

    fn change(&mut self, _: Step) -> Result<(), Error> {
        unreachable!("guests are made for each sample, under the host's scheduler")
    }

    fn measure(&mut self, column: Column, repetition: usize) -> Result<Taken<Sample>, Error> {
        let Column::Lock(number) = column else {
            unreachable!("what is compared are locks")
        };
        if self.session.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let runs = self.cells[number].scenario(self.scenario, repetition as u32);
        let options = RunOptions {
            interrupt: self.session.interrupt.clone(),
            pv_pages: kvm::pv_pages_of_running(&runs)?,
            ..RunOptions::default()
        };
        let report = unspin_vmm::run(&runs, &options)?;
        self.done += 1;
        self.session.progress.done(self.done);
        Ok(Taken::Sample(Sample::of(&report)))
    }
}
