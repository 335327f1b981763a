// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux-policies`: unmodified Linux guests that keep running, like `compare`'s, while our scheduler and its policies
//! come and go (ruling 35's cells).

use std::path::Path;

use unspin_agent::{PolicyChoice, Steerer};
use unspin_linux_guest::{Error, Features, Programs};
use unspin_report::{Document, Machine};
use unspin_vmm::PauseLoop;

use crate::{
    commands::{
        compare::run::check_user_policies,
        vm::{
            host_columns,
            linux::policies::{
                args::{LinuxPoliciesArguments, PoliciesLoad},
                measure::{measure, stands_still},
                row::{self as linux_policies_row, Row, SampleRow, rows, sample_rows},
            },
        },
    },
    terminal::{failure::Failure, output, progress::Activity},
};

/// What is compared in one table row and its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What each guest runs, over and over.
    pub load: PoliciesLoad,
    /// Its cell of ruling 35.
    pub features: Features,
    /// VMs.
    pub vms: u32,
    /// vCPUs of each.
    pub vcpus: u32,
}

impl Cell {
    /// `2x4`.
    pub fn shape(&self) -> String {
        format!("{}x{}", self.vms, self.vcpus)
    }

    /// Groups and loops of the load: each run takes tenths of a second when nothing is in its way.
    pub fn size(&self) -> (u32, u32) {
        match self.load {
            PoliciesLoad::Hackbench => (1, 10),
            PoliciesLoad::Make => (8, 8),
            PoliciesLoad::Mmaps => (16, 12),
            PoliciesLoad::Calls => (1, 5),
        }
    }
}

/// Measures every cell and prints one table.
pub fn run(arguments: &LinuxPoliciesArguments) -> Result<(), Failure> {
    check(arguments)?;
    let cache = unspin_testbed::cache_from_environment().unwrap_or_default();
    let programs = Programs::find(output::in_testbed(), &cache)?;
    let pause_loop = PauseLoop::in_force(Path::new("/sys/module"));
    PauseLoop::check(pause_loop.as_ref(), &arguments.host())?;
    if arguments.policies.iter().any(PolicyChoice::steers) {
        Steerer::check().map_err(anyhow::Error::from)?;
    }
    let activity = Activity::start("Linux guests");
    let (mut table, mut samples) = (Vec::<Row>::new(), Vec::<SampleRow>::new());
    for cell in cells(arguments) {
        match measure(arguments, &programs, &cell, &activity) {
            Ok(measured) => {
                table.extend(rows(&cell, arguments, &measured)?);
                samples.extend(sample_rows(&cell, arguments, &measured));
            }
            // Under the host's own scheduler: the cell says so, and the others are run.
            Err(Failure::Failed(error))
                if error.downcast_ref::<Error>().is_some_and(stands_still) =>
            {
                let text = error.to_string();
                let why = text.lines().next().unwrap_or_default();
                table.push(Row::not_measured(&cell, arguments, why));
            }
            Err(error) => return Err(error),
        }
    }
    drop(activity);
    let machine = Machine::here(output::in_testbed()).to_string();
    let mut document = Document::new("vm linux-policies", &machine);
    linux_policies_row::add(&mut document, &table, &samples);
    document.note(format!(
        "{} MiB, counts {}; {}; a run's time is the guests' own; ratios are of runs per second of all VMs together; ideal: one \
         VM with as many vCPUs as CPUs",
        arguments.memory_mib,
        arguments.counts,
        host_columns::format_pause_loop(pause_loop.as_ref())
    ));
    Ok(output::print(&document, arguments.output)?)
}

fn check(arguments: &LinuxPoliciesArguments) -> Result<(), Failure> {
    check_user_policies(&arguments.policies)?;
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
                load,
                features,
                vms,
                vcpus,
            }));
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arguments::{Arguments, Command},
        commands::vm::args::VmVerb,
    };
    use clap::Parser;

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
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        for wrong in [
            "--shapes 2x",
            "--shapes 0x4",
            "--loads torture",
            "--loads idle",
            "--policy lend",
            "--features pvspn",
            "--pairs 0",
            "--runs 0",
            "--counts yes",
        ] {
            let error = arguments(wrong).expect_err(wrong).to_string();
            let value = wrong.rsplit(' ').next().expect("a word");
            assert!(error.contains(value), "{wrong}: {error}");
        }
        for wrong in ["--policy apple", "--policy a.c --policy b.c"] {
            let refused = check(&arguments(wrong).expect("it can be read"));
            assert!(matches!(refused, Err(Failure::Usage(_))), "{wrong}");
        }
        assert!(
            check(&arguments("--policy loan-cpl,kernel-exit --policy gang").expect("valid"))
                .is_ok()
        );
    }
}
