// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin canary`: a policy tried on the VMs that run on this host, with guards that give the host back.

pub(crate) mod args;

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Seek},
    path::Path,
    process::{Command, ExitCode},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use args::CanaryArguments;
use unspin_agent::{
    ChosenPolicies, Over, SteerEnd, Until,
    service::{self, FailureFile},
};
use unspin_canary::{Error, Measured, Outcome, Request, tables};
use unspin_report::{Document, Machine};

use crate::terminal::{failure::Failure, output, progress::Experiment};

/// A guard has called it harm; the kernel's own scheduler has the host.
const HARM: u8 = 5;

/// Tries it, prints what came of it, and goes on steering where that is good.
pub fn run(arguments: &CanaryArguments) -> Result<ExitCode, Failure> {
    let (policy, who) = (&arguments.policy, "canary");
    let checked = policy
        .without_tune(who)
        .and_then(|()| policy.without_window(who));
    checked.map_err(Failure::Usage)?;
    let chosen = policy.ready(false)?;
    let request = Request {
        chosen: chosen.clone(),
        only_vms: arguments.only_vms,
        pairs: arguments.pairs,
        sample: arguments.sample,
        discard: arguments.discard,
        probe: arguments.probe(),
        limits: arguments.limits(),
        keep: !arguments.no_keep,
    };
    request.check()?;
    let mut report = arguments.report.as_deref().map(created).transpose()?;
    let experiment = Experiment::new(!arguments.output.json);
    let session = experiment.session()?;
    let meanwhile = Meanwhile::start(&arguments.command, &session.interrupt)?;
    let name = chosen.to_string();
    let mut written = Ok(());
    let measured = unspin_canary::run(request, &session, &mut |measured| {
        output::say(unspin_canary::outcome(measured, &name));
        output::say([format!(
            "keeps steering with policy {name}, guarded; Ctrl-C ends it"
        )]);
        written = write(report.as_mut(), &document(measured, &name));
    });
    meanwhile.end();
    let measured = measured?;
    written?;
    if let Outcome::Harm(harm) = &measured.outcome {
        if let Some(end) = &harm.end {
            keep_end(&chosen, end)?;
        }
    }
    let document = document(&measured, &name);
    write(report.as_mut(), &document)?;
    output::print_beside(&document, arguments.output, !arguments.command.is_empty())?;
    match &measured.outcome {
        Outcome::Harm(_) => Ok(ExitCode::from(HARM)),
        Outcome::Interrupted => Err(Failure::Interrupted),
        Outcome::Better | Outcome::NoDifference => Ok(ExitCode::SUCCESS),
    }
}

fn document(measured: &Measured, policy: &str) -> Document {
    let mut document = output::document("canary");
    tables(&mut document, measured, policy);
    document
}

/// A command that runs meanwhile, if there is one. Its end ends the canary.
struct Meanwhile {
    over: Arc<AtomicBool>,
    waits: Option<JoinHandle<io::Result<()>>>,
}

impl Meanwhile {
    fn start(command: &[OsString], interrupt: &Arc<AtomicBool>) -> io::Result<Meanwhile> {
        let over = Arc::new(AtomicBool::new(false));
        let Some((program, words)) = command.split_first() else {
            return Ok(Meanwhile { over, waits: None });
        };
        let mut until = Until::new(Arc::clone(&over), None);
        let mut command = Command::new(program);
        command.args(words);
        until.start(Some(command)).map_err(|error| {
            let program = program.to_string_lossy();
            io::Error::new(error.kind(), format!("starting {program}: {error}"))
        })?;
        let interrupt = Arc::clone(interrupt);
        let waits = thread::spawn(move || {
            let why = loop {
                if let Some(why) = until.poll()? {
                    break why;
                }
            };
            interrupt.fetch_or(why == Over::CommandEnded, Ordering::Relaxed);
            until.finish_or_terminate().map(drop)
        });
        let waits = Some(waits);
        Ok(Meanwhile { over, waits })
    }

    /// The canary is over.
    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        // What became of the command is its own matter.
        let _ = self.waits.map(JoinHandle::join);
    }
}

/// Before anything is tried: a report that cannot be written is told then.
fn created(path: &Path) -> Result<File, Failure> {
    File::create(path)
        .map_err(|error| Failure::Usage(format!("--report {}: {error}", path.display())))
}

/// In place of what was written before.
fn write(report: Option<&mut File>, document: &Document) -> io::Result<()> {
    let Some(file) = report else { return Ok(()) };
    file.set_len(0)?;
    file.rewind()?;
    document.write_json(file)
}

/// What the kernel says of a scheduler that it has sent away.
fn keep_end(chosen: &ChosenPolicies, end: &SteerEnd) -> Result<(), Failure> {
    let machine = Machine::here(output::in_testbed());
    let head = format!("unspin {} canary, {machine}\n", env!("CARGO_PKG_VERSION"));
    let (_, lines) = service::keep_end(&FailureFile::of(None)?, &head, chosen, end);
    output::say(lines);
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Usage(says) => Failure::Usage(says),
            error => Failure::Failed(error.into()),
        }
    }
}
