// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin preload`: runs a program with libunspin's locks in place of libc's.

pub(crate) mod args;

use std::{fs::File, io, path::Path, process::ExitCode};

use unspin_preload::{HotLock, Passed, Program, Report};
use unspin_report::{Document, Table, row};

use self::args::PreloadArguments;
use crate::terminal::{failure::Failure, options::Output, output};

row! {
    "preload_lock", ["preload"];
    /// A lock for which calls have waited.
    struct LockRow {
        /// What it is: mutex, recursive mutex, error-checking mutex, adaptive mutex, condition variable, rwlock, spinlock.
        kind: String = ("kind", Text),
        /// Number of its process.
        process: u64 = ("process", Text),
        /// Its address there.
        address: String = ("address", Text),
        /// The first call that waited: function and offset, or file and offset where the file names no functions.
        first_site: String = ("first call site", Text),
        /// The file of that call.
        module: String,
        /// Calls that waited.
        contended: u64 = ("contended", Count),
        /// Sleeps in the kernel.
        parks: u64 = ("parks", Count),
        /// Waits in which the waiter itself saw that the holder was preempted.
        preempted: u64 = ("holder preempted", Count),
    }
}

row! {
    "preload", ["preload"];
    /// What was left to libc in all processes: so many were initialised.
    struct PassedRow {
        /// Processes that have loaded the library, forked ones included.
        processes: u64 = ("processes", Count),
        /// Robust mutexes.
        robust_mutexes: u64 = ("robust mutexes", Count),
        /// Mutexes with priority inheritance or protection.
        priority_mutexes: u64 = ("priority mutexes", Count),
        /// Mutexes that processes share.
        shared_mutexes: u64 = ("shared mutexes", Count),
        /// Condition variables that processes share.
        shared_conditions: u64 = ("shared conditions", Count),
        /// Reader-writer locks that processes share.
        shared_rwlocks: u64 = ("shared rwlocks", Count),
        /// Waits that are in no row, since there were too many locks.
        waits_dropped: u64 = ("waits dropped", Count),
    }
}

/// Becomes the program, or, for a report, runs it and ends as it has ended.
pub fn run(arguments: &PreloadArguments) -> Result<ExitCode, Failure> {
    let (name, rest) = arguments.program.split_first().expect("clap requires one");
    let program = Program::find(name, rest)?;
    let reports = arguments.report || arguments.output.json || arguments.out.is_some();
    if !reports {
        return Err(unspin_preload::replace(&program).into());
    }
    let mut out = arguments.out.as_deref().map(create).transpose()?;
    let (ended, report) = unspin_preload::run(&program)?;
    let document = document(&report, arguments.locks);
    match &mut out {
        Some(file) => write(&document, arguments.output, file)?,
        None => output::print_beside(&document, arguments.output, true)?,
    }
    Ok(ExitCode::from(ended.imitate()))
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path)
        .map_err(|error| Failure::Usage(format!("cannot write {}: {error}", path.display())))
}

fn write(document: &Document, output: Output, file: &mut File) -> io::Result<()> {
    match output.json {
        true => document.write_json(file),
        false => document.write_text(file),
    }
}

fn document(report: &Report, most: usize) -> Document {
    let mut document = output::document("preload");
    let locks = report.locks.iter().take(most);
    document.table(Table::of(
        "Locks for which calls have waited",
        locks.map(LockRow::from),
    ));
    document.table(Table::of(
        "Left to libc, initialised so often",
        [PassedRow::of(report)],
    ));
    if report.locks.len() > most {
        let left_out = report.locks.len() - most;
        document.note(format!(
            "{left_out} more locks: --locks {}",
            report.locks.len()
        ));
    }
    if report.processes == 0 {
        document.note("No process has loaded the library: the program is a script that starts none, or LD_PRELOAD was taken away.");
    }
    document
}

impl From<&HotLock> for LockRow {
    fn from(lock: &HotLock) -> LockRow {
        let file = Path::new(&lock.module).file_name().unwrap_or_default();
        let place = format!("{}+{:#x}", file.to_string_lossy(), lock.offset);
        LockRow {
            kind: lock.kind.to_owned(),
            process: lock.process,
            address: format!("{:#x}", lock.address),
            first_site: lock.symbol.clone().unwrap_or(place),
            module: lock.module.clone(),
            contended: lock.contended,
            parks: lock.parks,
            preempted: lock.preempted,
        }
    }
}

impl PassedRow {
    fn of(report: &Report) -> PassedRow {
        let Passed {
            robust,
            priority,
            shared_mutexes,
            shared_conditions,
            shared_rwlocks,
        } = report.passed;
        PassedRow {
            processes: report.processes,
            robust_mutexes: robust,
            priority_mutexes: priority,
            shared_mutexes,
            shared_conditions,
            shared_rwlocks,
            waits_dropped: report.dropped,
        }
    }
}
