// SPDX-License-Identifier: MIT OR Apache-2.0
//! VEE'13's cells with Linux guests (`unspin vm linux-locks`): the same load under each lock, alternately, and each lock's time
//! beside that of the ticket lock.

use unspin_linux_guest::{
    CountsModule, Error as GuestError, GuestLock, Load, Lock, Marks, Options, Ours, run,
};
use unspin_report::row;

use crate::{Error, Session, Work};

row! {
    "cell", ["vm linux-locks"];
    /// A load under a lock, all rounds together. Times are the guests' own.
    pub struct CellRow {
        /// The load.
        load: &'static str = ("load", Text),
        /// VMs at once.
        vms: u32 = ("VMs", Count),
        /// `stock`: the distribution's kernel; or our kernel's lock.
        lock: String = ("lock", Text),
        /// Mean time of a run; ns.
        load_mean_ns: Option<f64> = ("run, mean", Nanoseconds),
        /// The shortest; ns.
        load_least_ns: Option<u64> = ("least", Nanoseconds),
        /// The longest; ns.
        load_most_ns: Option<u64> = ("most", Nanoseconds),
        /// Runs.
        runs: usize = ("runs", Count),
        /// The ticket lock's mean time by this lock's, of the same load and VMs.
        to_ticket: Option<f64> = ("x ticket", Ratio),
        /// The same as VEE'13 prints it (section 6.2, 8 vCPUs on 8 hardware threads).
        paper_to_ticket: Option<f64> = ("paper", Ratio),
        /// Why a round brought no time.
        not_measured: Option<String> = ("not measured", Text),
    }
}

/// A load under a lock, and what it brought in all rounds.
pub struct Cell {
    /// What each VM runs.
    pub load: Load,
    /// VMs at once.
    pub vms: u32,
    /// Kernel and lock of all of them.
    pub lock: GuestLock,
    /// Times of the runs, ns.
    run_ns: Vec<u64>,
    /// Why the last round that failed brought no time.
    not_measured: Option<String>,
}

impl Cell {
    /// Nothing measured yet.
    pub fn new(load: Load, vms: u32, lock: GuestLock) -> Cell {
        Cell {
            load,
            vms,
            lock,
            run_ns: Vec::new(),
            not_measured: None,
        }
    }

    fn mean_ns(&self) -> Option<f64> {
        let total: f64 = self.run_ns.iter().map(|ns| *ns as f64).sum();
        (!self.run_ns.is_empty()).then(|| total / self.run_ns.len() as f64)
    }
}

/// Runs every cell so many times, one round after the other. Of `common` each cell has its own load, VMs and kernel.
///
/// # Errors
/// Guests that cannot run, an interrupt. Guests that stand still are a result of their cell, and the others are run.
pub fn measure(
    cells: &mut [Cell],
    rounds: u32,
    common: &Options,
    session: &Session,
) -> Result<(), Error> {
    session.progress.begin("Linux guests", Work::Unknown);
    for round in 0..rounds {
        for cell in &mut *cells {
            let (load, vms, lock) = (cell.load.name(), cell.vms, cell.lock);
            let now = format!("round {round}: {vms} VMs, {load}, {lock}");
            session.progress.say(&now);
            measure_one(cell, common)?;
        }
    }
    session.progress.end();
    Ok(())
}

/// Groups and loops of a load: each run takes tenths of a second when nothing is in its way.
fn size(load: Load) -> (u32, u32) {
    match load {
        Load::Make => (8, 24),
        Load::Mmaps => (16, 12),
        Load::Calls => (1, 20),
        Load::Torture => (1, 2),
        Load::Hackbench | Load::Messaging | Load::Idle => (1, 50),
        other => other.size(),
    }
}

fn measure_one(cell: &mut Cell, common: &Options) -> Result<(), Error> {
    let (groups, loops) = size(cell.load);
    let (programs, ours) = match cell.lock {
        GuestLock::Stock => (common.programs.clone(), None),
        GuestLock::Ours(lock) => {
            let (help_after_spins, marks) = (0, Marks::Off);
            let ours = Ours {
                lock,
                help_after_spins,
                marks,
            };
            (common.programs.with_our_kernel()?, Some(ours))
        }
    };
    let options = Options {
        programs,
        vms: cell.vms,
        load: cell.load,
        groups,
        loops,
        ours,
        counts: CountsModule::Off,
        symbols: false,
        ..common.clone()
    };
    match run(&options, |_| Ok::<_, GuestError>(())) {
        Ok(report) => {
            let runs = report.vms.iter().flat_map(|vm| &vm.runs);
            cell.run_ns.extend(runs.map(|run| run.outcome.load_ns));
        }
        // A lock that stands still is a result: the cell says so, and the others are run.
        Err(error @ GuestError::TooLong { .. }) => {
            let text = error.to_string();
            cell.not_measured = text.lines().next().map(str::to_owned);
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// A row for each cell.
pub fn rows(cells: &[Cell]) -> Vec<CellRow> {
    cells.iter().map(|cell| row_of(cell, cells)).collect()
}

fn row_of(cell: &Cell, cells: &[Cell]) -> CellRow {
    let ticket = cells.iter().find(|other| {
        (other.load, other.vms, other.lock) == (cell.load, cell.vms, GuestLock::Ours(Lock::Ticket))
    });
    let ratio = ticket
        .and_then(Cell::mean_ns)
        .zip(cell.mean_ns())
        .map(|(ticket, mean)| ticket / mean);
    CellRow {
        load: cell.load.name(),
        vms: cell.vms,
        lock: cell.lock.to_string(),
        load_mean_ns: cell.mean_ns(),
        load_least_ns: cell.run_ns.iter().min().copied(),
        load_most_ns: cell.run_ns.iter().max().copied(),
        runs: cell.run_ns.len(),
        to_ticket: ratio,
        paper_to_ticket: paper(cell),
        not_measured: cell.not_measured.clone(),
    }
}

/// Speed-up over the ticket lock that VEE'13 prints (section 6.2, claims O12, O13, O15); 8 vCPUs on 8 hardware threads there.
fn paper(cell: &Cell) -> Option<f64> {
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

    fn cell(lock: GuestLock, run_ns: &[u64]) -> Cell {
        let mut cell = Cell::new(Load::Hackbench, 2, lock);
        cell.run_ns = run_ns.to_vec();
        cell
    }

    #[test]
    fn what_was_not_measured_is_not_known_and_nothing_is_compared_with_it() {
        let ours = |lock| GuestLock::Ours(lock);
        let unmeasured = cell(ours(Lock::Ticket), &[]);
        assert_eq!(unmeasured.mean_ns(), None);
        let rows = rows(&[unmeasured, cell(ours(Lock::PvTicket), &[10, 30])]);
        assert_eq!(rows[1].load_mean_ns, Some(20.0));
        assert_eq!(rows[1].to_ticket, None);
        assert_eq!(rows[1].paper_to_ticket, Some(4.8));
    }

    #[test]
    fn the_ticket_locks_time_is_the_measure() {
        let ticket = cell(GuestLock::Ours(Lock::Ticket), &[100, 300]);
        let rows = rows(&[ticket, cell(GuestLock::Stock, &[50])]);
        assert_eq!(rows[0].to_ticket, Some(1.0));
        assert_eq!(rows[1].to_ticket, Some(4.0));
        assert_eq!(rows[1].paper_to_ticket, None);
    }
}
