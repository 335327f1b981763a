// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where results go: standard output, as text or as one JSON object.

use std::io::{self, Write};

use unspin_report::{Document, Machine};

use crate::terminal::options::Output;

/// A new document about this machine.
pub fn document(command: &str) -> Document {
    Document::new(command, Machine::here(in_testbed()))
}

/// Whether this runs in the testbed: its init says so to what it starts.
pub fn in_testbed() -> bool {
    std::env::var_os("UNSPIN_TESTBED").is_some()
}

/// Says what happens meanwhile on standard error, a line each.
pub fn say(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        eprintln!("unspin: {line}");
    }
}

/// Prints the document on standard output.
///
/// # Errors
/// When it cannot be written.
pub fn print(document: &Document, output: Output) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if output.json {
        document.write_json(&mut out)?;
    } else {
        document.write_text(&mut out)?;
    }
    out.flush()
}

/// The same beside a command, whose output stands on standard output: on standard error. `beside`: there is one.
///
/// # Errors
/// As [`print`].
pub fn print_beside(document: &Document, output: Output, beside: bool) -> io::Result<()> {
    if !beside {
        return print(document, output);
    }
    let mut out = io::stderr().lock();
    match output.json {
        true => document.write_json(&mut out),
        false => document.write_text(&mut out),
    }
}

/// Makes rows of another crate rows of a table that is in the reference: `rows!(/** what */ SampleRow(kvm::SampleRow), "sample",
/// &["compare"], SAMPLES);`.
macro_rules! rows {
    ($($(#[$doc:meta])* $row:ident($of:ty), $table:expr, $commands:expr, $columns:expr;)*) => {$(
        $(#[$doc])*
        #[derive(serde::Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        struct $row($of);

        unspin_report::row!($row, $table, $commands, $columns);
    )*};
}
pub(crate) use rows;
