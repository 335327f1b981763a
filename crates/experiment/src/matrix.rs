// SPDX-License-Identifier: MIT OR Apache-2.0
//! The matrix of `unspin compare --full`: locks, shapes, pause-loop windows, guests that say what they wait for and guests
//! that do not, and the policies that are for them.

use std::{path::Path, time::Duration};

use unspin_agent::PolicyChoice;

use crate::{
    Error, Row, Session, TableFile,
    cells::{Cell, Finished, in_testbeds},
    kvm::Figures,
    plan::Plan,
    watch::Observe,
};

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        /// Their files, as they stand in `scenarios/compare/`, so that the one binary is enough.
        const SCENARIOS: &[(&str, &str)] = &[$((
            concat!("scenarios/compare/", $name, ".toml"),
            include_str!(concat!("../../../scenarios/compare/", $name, ".toml")),
        )),*];
    };
}
scenarios!("ticket", "preemptable_ticket", "test_and_test_and_set");

/// VMs x vCPUs on 2 CPUs. The first fits: there, only harm can be done. Those that take longest come last in the list and
/// are run first.
const SHAPES: [(u32, u32); 4] = [(1, 2), (2, 2), (1, 4), (2, 4)];
/// PAUSEs until an exit: a short window, and KVM's default.
const WINDOWS: [u32; 2] = [200, 3_000];
/// For guests that register a pv page.
const COOPERATING: [&str; 9] = [
    "directed-yield",
    "kernel-exit",
    "loan",
    "loan,kernel-exit",
    "debooster,candidates=strict",
    "lag-credit",
    "loan,lag-credit",
    "gang",
    "loan,gang",
];
/// For guests that do not.
const OTHERS: [&str; 8] = [
    "kernel-exit",
    "loan-cpl",
    "loan-cpl,kernel-exit",
    "debooster,candidates=strict",
    "lag-credit",
    "loan-cpl,lag-credit",
    "gang",
    "loan-cpl,gang",
];

/// What is the same in all cells.
#[derive(Clone, Copy, Debug)]
pub struct Common {
    /// Pairs of samples.
    pub pairs: u32,
    /// Length of each.
    pub sample: Duration,
    /// What is left out after each change.
    pub discard: Duration,
    /// Whether stock is watched at the end.
    pub observe: Observe,
}

/// All cells, those that take longest first. `own_window`: as the host's KVM has it, nothing else.
pub fn cells(common: Common, own_window: bool) -> Vec<Cell> {
    let windows = if own_window {
        &WINDOWS[..1]
    } else {
        &WINDOWS[..]
    };
    let mut cells = Vec::new();
    for (count, vcpus) in SHAPES.into_iter().rev() {
        for window in windows {
            for (file, text) in SCENARIOS {
                for (pv_page, names) in [(true, &COOPERATING[..]), (false, &OTHERS[..])] {
                    let mut set = set_shape(count, vcpus).to_vec();
                    if !own_window {
                        set.push(format!("host.ple_window={window}"));
                    }
                    set.push(format!("vm.pv_page={pv_page}"));
                    cells.push(Cell {
                        vendor: unspin_testbed::Vendor::Amd,
                        file,
                        text,
                        set,
                        plan: Plan {
                            pairs: common.pairs,
                            sample: common.sample,
                            discard: common.discard,
                            observe: common.observe,
                            policies: policies(names),
                            rivals: Vec::new(),
                            only_vms: false,
                            useful_time: false,
                        },
                    });
                }
            }
        }
    }
    cells
}

/// A shape as overrides.
pub fn set_shape(count: u32, vcpus: u32) -> [String; 2] {
    [format!("vm.count={count}"), format!("vm.vcpus={vcpus}")]
}

fn policies(names: &[&str]) -> Vec<PolicyChoice> {
    let policy = |name: &&str| name.parse().expect("the tests parse all of them");
    names.iter().map(policy).collect()
}

/// The matrix and what of it has been measured.
pub struct Matrix {
    all: Vec<Named>,
    file: TableFile,
    on_this_host: bool,
}

/// A cell and its name in the file.
struct Named {
    name: String,
    cell: Cell,
}

impl Matrix {
    /// All cells, and what the file in that folder has of them. `keep`: whatever other binaries have measured stays.
    ///
    /// # Errors
    /// As [`TableFile::open`].
    pub fn open(
        common: Common,
        on_this_host: bool,
        folder: &Path,
        keep: bool,
    ) -> Result<Matrix, Error> {
        let named = |cell: Cell| {
            let identity = cell.identity()?;
            let name = match on_this_host {
                true => format!("host {identity}"),
                false => identity,
            };
            Ok(Named { name, cell })
        };
        let all = cells(common, on_this_host).into_iter().map(named);
        Ok(Matrix {
            all: all.collect::<Result<_, Error>>()?,
            file: TableFile::open(folder, keep)?,
            on_this_host,
        })
    }

    /// How many cells there are.
    pub fn cells(&self) -> usize {
        self.all.len()
    }

    /// How many of them have not been measured.
    pub fn missing(&self) -> usize {
        self.all.len() - self.finished().count()
    }

    /// How many another binary has measured.
    pub fn others(&self) -> usize {
        self.file.others()
    }

    /// Measures the cells that are missing, each in a testbed, or on this host's own KVM, one after the other; each is in the
    /// file when `done` is called with its name. `machine`: what this host is called; `abort` as [`in_testbeds`].
    ///
    /// # Errors
    /// The first cell's that fails; a file that cannot be written.
    pub fn measure(
        &mut self,
        machine: &str,
        session: &Session,
        abort: fn() -> !,
        mut done: impl FnMut(&str),
    ) -> Result<(), Error> {
        let file = &mut self.file;
        let missing = self.all.iter();
        let missing: Vec<&Named> = missing
            .filter(|named| file.finished(&named.name).is_none())
            .collect();
        if self.on_this_host {
            for named in missing {
                let finished = named.cell.on_this_host(machine, session)?;
                let cell = named.name.clone();
                file.add(Finished { cell, ..finished })?;
                done(&named.cell.name());
            }
            return Ok(());
        }
        let cells: Vec<&Cell> = missing.iter().map(|named| &named.cell).collect();
        in_testbeds(&cells, "comparing", session, abort, |finished| {
            let of = missing.iter().find(|named| named.name == finished.cell);
            file.add(finished)?;
            done(&of.map_or(String::new(), |named| named.cell.name()));
            Ok(())
        })
    }

    /// What has been measured, in the matrix's order.
    pub fn finished(&self) -> impl Iterator<Item = &Finished> {
        self.measured().map(|(_, finished)| finished)
    }

    /// The cells that have been measured, with what came of them.
    pub fn measured(&self) -> impl Iterator<Item = (&Cell, &Finished)> {
        let of = |named: &'_ Named| self.file.finished(&named.name);
        let all = self.all.iter();
        all.filter_map(move |named| Some((&named.cell, of(named)?)))
    }

    /// Their rows: guests with pv pages first, then by window, shape and lock.
    pub fn rows(&self) -> Vec<Row<Figures>> {
        let rows = self.finished().flat_map(|one| one.rows.clone());
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by(|a, b| {
            let key = |row: &Row<Figures>| {
                let of = &row.world;
                (of.ple_window, row.shape.clone(), of.lock.clone())
            };
            let pv_pages = b.world.pv_page.cmp(&a.world.pv_page);
            pv_pages.then_with(|| key(a).cmp(&key(b)))
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cell_is_valid_and_there_once() {
        let common = Common {
            pairs: 4,
            sample: Duration::from_millis(500),
            discard: Duration::from_millis(250),
            observe: Observe::On,
        };
        let all = cells(common, false);
        assert_eq!(all.len(), 3 * 4 * 2 * 2);
        let identities: BTreeSet<String> = all
            .iter()
            .map(|cell| cell.identity().expect("a valid cell"))
            .collect();
        assert_eq!(identities.len(), all.len());
        assert_eq!(cells(common, true).len(), 3 * 4 * 2);
        for cell in &all {
            let scenario = cell.scenario().expect("valid");
            let pv_page = scenario.vms[0].pv_page;
            let names: Vec<String> = cell.plan.policies.iter().map(ToString::to_string).collect();
            assert_eq!(
                names.contains(&"loan".to_owned()),
                pv_page,
                "{}",
                cell.name()
            );
            assert!(scenario.host.ple_window_fixed);
        }
    }

    #[test]
    fn what_is_in_the_file_is_not_missing() {
        let common = Common {
            pairs: 1,
            sample: Duration::from_millis(1),
            discard: Duration::ZERO,
            observe: Observe::Off,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let mut matrix = Matrix::open(common, true, folder.path(), false).expect("a new file");
        assert_eq!((matrix.cells(), matrix.missing()), (24, 24));
        assert!(matrix.all[3].name.starts_with("host "));
        let cell = matrix.all[3].name.clone();
        let finished = Finished {
            cell,
            machine: "here".to_owned(),
            rows: Vec::new(),
            vms: Vec::new(),
            samples: Vec::new(),
            windows: Vec::new(),
        };
        matrix.file.add(finished).expect("written");
        assert_eq!((matrix.cells(), matrix.missing()), (24, 23));
        let measured: Vec<_> = matrix.measured().collect();
        assert_eq!(measured.len(), 1);
        assert_eq!(measured[0].0.name(), matrix.all[3].cell.name());
    }
}
