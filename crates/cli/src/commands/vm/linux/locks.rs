// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux-locks`: VEE'13's cells with Linux guests, each lock's time beside that of the ticket lock.

use std::path::Path;

use unspin_linux_guest::{Error, Lock, Marks, Options, Ours, Programs};
use unspin_report::{Cell, Column, Table, Unit};
use unspin_vmm::PauseLoop;

use crate::{
    commands::vm::{
        host_columns,
        linux::args::{GuestLock, LinuxLocksArguments, Load},
    },
    terminal::{failure::Failure, interrupt, output, progress::Activity},
};

const CELL: &[Column] = &[
    Column::new("load", "load", Unit::Text),
    Column::new("vms", "VMs", Unit::Count),
    Column::new("lock", "lock", Unit::Text),
    Column::new("load_mean_ns", "run, mean", Unit::Nanoseconds),
    Column::new("load_least_ns", "least", Unit::Nanoseconds),
    Column::new("load_most_ns", "most", Unit::Nanoseconds),
    Column::new("runs", "runs", Unit::Count),
    Column::new("to_ticket", "x ticket", Unit::Ratio),
    Column::new("paper_to_ticket", "paper", Unit::Ratio),
    Column::new("not_measured", "not measured", Unit::Text),
];

/// What a cell brought in all rounds.
struct Measured {
    load: Load,
    vms: u32,
    lock: GuestLock,
    run_ns: Vec<u64>,
    not_measured: Option<String>,
}

impl Measured {
    fn mean_ns(&self) -> Option<f64> {
        let total: f64 = self.run_ns.iter().map(|ns| *ns as f64).sum();
        (!self.run_ns.is_empty()).then(|| total / self.run_ns.len() as f64)
    }
}

/// Runs every cell of every round and prints one table.
pub fn run(arguments: &LinuxLocksArguments) -> Result<(), Failure> {
    let cache = unspin_testbed::cache_from_environment().unwrap_or_default();
    let programs = Programs::find(output::in_testbed(), &cache)?;
    let pause_loop = PauseLoop::in_force(Path::new("/sys/module"));
    PauseLoop::check(pause_loop.as_ref(), &arguments.host())?;
    let activity = Activity::start("Linux guests");
    let mut cells = cells(arguments);
    for round in 0..arguments.rounds {
        for cell in &mut cells {
            let (load, vms, lock) = (cell.load.load().name(), cell.vms, cell.lock);
            activity.say(&format!("round {round}: {vms} VMs, {load}, {lock}"));
            measure(arguments, &programs, cell)?;
        }
    }
    drop(activity);
    let mut document = output::document("vm linux-locks");
    document.note(format!(
        "{} vCPUs in each VM, {}; {}; x ticket: the ticket lock's mean time through this one's; paper: VEE'13, section 6.2",
        arguments.vcpus,
        arguments.features,
        host_columns::format_pause_loop(pause_loop.as_ref())
    ));
    document.table(table(&cells));
    output::print(&document, arguments.output)?;
    Ok(())
}

/// All cells, those that are compared next to one another.
fn cells(arguments: &LinuxLocksArguments) -> Vec<Measured> {
    let mut cells = Vec::new();
    for load in &arguments.loads {
        for vms in &arguments.vms {
            cells.extend(arguments.locks.iter().map(|lock| Measured {
                load: *load,
                vms: *vms,
                lock: *lock,
                run_ns: Vec::new(),
                not_measured: None,
            }));
        }
    }
    cells
}

/// Groups and loops of a load: each run takes tenths of a second when nothing is in its way.
fn size(load: Load) -> (u32, u32) {
    match load {
        Load::Make => (8, 24),
        Load::Mmaps => (16, 12),
        Load::Calls => (1, 20),
        Load::Torture => (1, 2),
        _ => (1, 50),
    }
}

fn measure(
    arguments: &LinuxLocksArguments,
    programs: &Programs,
    cell: &mut Measured,
) -> Result<(), Failure> {
    let (groups, loops) = size(cell.load);
    let (programs, ours) = match cell.lock {
        GuestLock::Stock => (programs.clone(), None),
        GuestLock::Ours(lock) => {
            let (help_after_spins, marks) = (0, Marks::Off);
            let ours = Ours {
                lock,
                help_after_spins,
                marks,
            };
            (programs.with_our_kernel()?, Some(ours))
        }
    };
    let options = Options {
        programs,
        vms: cell.vms,
        vcpus: arguments.vcpus,
        memory_mib: arguments.memory_mib,
        load: cell.load.load(),
        groups,
        loops,
        runs: arguments.runs,
        features: arguments.features,
        ours,
        counts: unspin_linux_guest::CountsModule::Off,
        kernel_arguments: Vec::new(),
        symbols: false,
        limit: arguments.limit,
        interrupt: interrupt::flag()?,
    };
    match unspin_linux_guest::run(&options, |_| Ok::<_, Error>(())) {
        Ok(report) => {
            let runs = report.vms.iter().flat_map(|vm| &vm.runs);
            cell.run_ns.extend(runs.map(|run| run.load_ns));
        }
        // A lock that stands still is a result: the cell says so, and the others are run.
        Err(error @ Error::TooLong { .. }) => {
            let text = error.to_string();
            cell.not_measured = text.lines().next().map(str::to_owned);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn table(cells: &[Measured]) -> Table {
    let mut table = Table::new("cell", "VEE'13's cells", CELL);
    for cell in cells {
        let ticket = cells.iter().find(|other| {
            (other.load, other.vms, other.lock)
                == (cell.load, cell.vms, GuestLock::Ours(Lock::Ticket))
        });
        let ratio = ticket
            .and_then(Measured::mean_ns)
            .zip(cell.mean_ns())
            .map(|(ticket, mean)| ticket / mean);
        table.push(vec![
            cell.load.load().name().into(),
            cell.vms.into(),
            cell.lock.to_string().into(),
            cell.mean_ns().into(),
            cell.run_ns.iter().min().copied().into(),
            cell.run_ns.iter().max().copied().into(),
            cell.run_ns.len().into(),
            ratio.into(),
            paper(cell).into(),
            Cell::from(cell.not_measured.as_deref()),
        ]);
    }
    table
}

/// Speed-up over the ticket lock that VEE'13 prints (section 6.2, claims O12, O13, O15); 8 vCPUs on 8 hardware threads there.
fn paper(cell: &Measured) -> Option<f64> {
    let GuestLock::Ours(lock) = cell.lock else {
        return None;
    };
    let [preemptable, pv_ticket, pv_preemptable] = match (cell.load, cell.vms) {
        (Load::Hackbench, 2) => [3.89, 4.80, 4.97],
        (Load::Hackbench, 3) => [9.63, 13.68, 15.35],
        (Load::Make, 2) => [2.37, 2.47, 3.12],
        _ => return None,
    };
    match lock {
        Lock::Native | Lock::Ticket => None,
        Lock::Preemptable => Some(preemptable),
        Lock::PvTicket => Some(pv_ticket),
        Lock::PvPreemptable => Some(pv_preemptable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(lock: GuestLock, run_ns: &[u64]) -> Measured {
        Measured {
            load: Load::Hackbench,
            vms: 2,
            lock,
            run_ns: run_ns.to_vec(),
            not_measured: None,
        }
    }

    #[test]
    fn what_was_not_measured_is_not_known_and_nothing_is_compared_with_it() {
        let ours = |lock| GuestLock::Ours(lock);
        let unmeasured = cell(ours(Lock::Ticket), &[]);
        assert_eq!(unmeasured.mean_ns(), None);
        let cells = [unmeasured, cell(ours(Lock::PvTicket), &[10, 30])];
        let mut out = Vec::new();
        let mut document = output::document("test");
        document.table(table(&cells));
        document.write_json(&mut out).expect("written");
        let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        let row = &json["rows"][1];
        assert_eq!(row["load_mean_ns"], 20.0);
        assert!(row["to_ticket"].is_null(), "{row}");
        assert_eq!(row["paper_to_ticket"], 4.8);
    }

    #[test]
    fn the_ticket_locks_time_is_the_measure() {
        let ours = |lock| GuestLock::Ours(lock);
        let cells = [
            cell(ours(Lock::Ticket), &[100, 300]),
            cell(GuestLock::Stock, &[50]),
        ];
        let mut out = Vec::new();
        let mut document = output::document("test");
        document.table(table(&cells));
        document.write_json(&mut out).expect("written");
        let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(json["rows"][0]["to_ticket"], 1.0);
        assert_eq!(json["rows"][1]["to_ticket"], 4.0);
        assert!(json["rows"][1]["paper_to_ticket"].is_null());
    }
}
