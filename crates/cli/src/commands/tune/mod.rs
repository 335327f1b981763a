// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin tune`: less spinning under the host's own scheduler, until Ctrl-C, a time, or the end of a command.

pub(crate) mod args;

use std::process::{Command, ExitCode};

use args::TuneArguments;
use unspin_agent::{
    Epochs, Explained, Numbered, Until,
    tune::{self, HostSlice, TuneNotice, TuneRequest, Tuned, slice_in_words},
};
use unspin_report::{Document, Table, row};
use unspin_vms::VmName;

use crate::terminal::{failure::Failure, interrupt, output};

row! {
    "tuned_vms", ["tune"];
    /// A VM whose slices were found by trial.
    pub struct TunedVmRow {
        /// Its process.
        pub process: u32 = ("VM process", Text),
        /// What its manager calls it, else its program's name.
        pub name: String = ("name", Text),
        /// The slice that its vCPUs' threads had in the end, ns; null: the kernel's own.
        pub slice_ns: Option<u32> = ("slice", Nanoseconds),
    }
}

/// Gives slices, waits, takes them back. The exit status is the command's where there is one.
pub fn run(arguments: &TuneArguments) -> Result<ExitCode, Failure> {
    if arguments.explain_choice.is_some() && arguments.slice != HostSlice::Auto {
        return Err(Failure::Usage(
            "--explain-choice is for --slice auto, which chooses".into(),
        ));
    }
    let processes = arguments.vms.iter().map(VmName::process);
    let processes = processes.collect::<Result<_, _>>()?;
    let explained = arguments.explain_choice.as_ref();
    let explained = explained.map(Explained::running).transpose()?;
    let until = Until::new(interrupt::flag()?, arguments.duration);
    let command = arguments.command.split_first();
    let request = TuneRequest {
        slice: arguments.slice,
        processes,
        command: command.map(|(program, words)| {
            let mut command = Command::new(program);
            command.args(words);
            command
        }),
    };
    let mut epochs = Epochs::of(Numbered::Processes, explained, slice_in_words);
    let done = tune::tune(request, until, &mut |notice| match notice {
        TuneNotice::Begun => eprintln!(
            "unspin: tuning slices of vCPUs: {}; the host's scheduler stays",
            arguments.slice
        ),
        TuneNotice::Chosen(step) => output::say(epochs.add(&step)),
    });
    let done = done.map_err(|error| Failure::Failed(error.into()))?;
    let mut document = output::document("tune");
    tables(&mut document, arguments, &done);
    epochs.table(&mut document);
    output::print_beside(&document, arguments.output, !arguments.command.is_empty())?;
    Ok(done.status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(unspin_agent::shell_status(status))
    }))
}

fn tables(document: &mut Document, arguments: &TuneArguments, done: &Tuned) {
    if arguments.slice != HostSlice::Auto {
        return;
    }
    let row = |(process, name, slice_ns): &(u32, String, Option<u32>)| TunedVmRow {
        process: *process,
        name: name.clone(),
        slice_ns: *slice_ns,
    };
    document.table(Table::of("Who had which slices", done.vms.iter().map(row)));
}
