// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin threshold`: Friebel's histograms from a recording, and what each threshold would cost.

use std::path::PathBuf;

use clap::Args;
use unspin_analysis::{
    Measured,
    threshold::rows::{self, View},
};
use unspin_recording::Recorded;
use unspin_report::{Document, Table, row};
use unspin_vms::VmName;

use crate::terminal::{failure::Failure, options::Output, output};

/// `unspin threshold`
#[derive(Args, Debug)]
pub struct ThresholdArguments {
    /// A recording.
    #[arg(value_name = "FOLDER")]
    pub folder: PathBuf,
    /// Only this VM's waits, by name, UUID, id at its manager, process, or number in the recording; those of all VMs together when
    /// absent.
    #[arg(long, value_name = "VM")]
    pub vm: Option<VmName>,
    /// How to print.
    #[command(flatten)]
    pub output: Output,
}

row! {
    "problem", ["threshold"];
    /// A reason why the recording is not whole.
    struct ProblemRow {
        /// In words.
        problem: String = ("not whole", Text),
    }
}

/// Reads the recording and prints the tables: of one VM, or of all together.
pub fn run(arguments: &ThresholdArguments) -> Result<(), Failure> {
    let recorded = Recorded::open_readable(&arguments.folder)?;
    let measured = Measured::of(&recorded);
    let vm = arguments.vm.as_ref();
    let vm = vm.map(|vm| vm.number_in(recorded.facts())).transpose()?;
    if let Some(vm) = vm {
        measured.check_vm(vm)?;
    }
    let mut document = Document::new("threshold", &recorded.facts().machine);
    if !measured.problems.is_empty() {
        let problems = measured.problems.iter().cloned();
        document.table(Table::of(
            "",
            problems.map(|problem| ProblemRow { problem }),
        ));
    }
    document.table(Table::of(
        "Guest time, and what of it went into waiting loops",
        rows::vms(&measured),
    ));
    let views = rows::views(&measured, vm);
    document.table(Table::of(
        "Between ordinary waits and preemption waits",
        rows::intervals(&views),
    ));
    for view in &views {
        let title = format!(
            "Waits of {} by length, as the {} sees them",
            view.scope, view.source
        );
        document.table(Table::of(title, rows::histogram(view)));
        document.table(Table::of(costs_title(view), rows::choices(view)));
    }
    document.note(
        "host: runs of pause-loop exits at one place, their time on a CPU; waits shorter than a window, and the rest of \
         each wait after its last exit, are not seen, so spinning is a lower bound.",
    );
    document.note(
        "guest: every wait for a lock, on a CPU or off it, in the run's window after the warm-up; spin time before a \
         threshold is therefore at most this. wall gain: guest / (guest + others) x spinning (Friebel 2008).",
    );
    output::print(&document, arguments.output)?;
    Ok(())
}

fn costs_title(view: &View) -> String {
    let told_apart = match view.found.valley {
        Some(_) => "",
        None => " (of all waits: nothing tells them apart)",
    };
    format!(
        "What a threshold costs {}, as the {} sees it{told_apart}",
        view.scope, view.source
    )
}
