// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration file of `unspin serve` and `unspin steer`, and `unspin config`.

pub(crate) mod args;

use std::io::{self, Write};

use unspin_config::{Configuration, PATH, default_text};
use unspin_report::{Table, row};

use self::args::{ConfigVerb, FileArguments};
use crate::terminal::{failure::Failure, output};

row! {
    "config", ["config show"];
    /// A key of the configuration.
    pub struct ConfigRow {
        /// Table and key, as in `serve.listen`.
        pub key: String = ("key", Text),
        /// What is in force, as the file would have it.
        pub value: String = ("value", Text),
        /// Where it comes from: file and line, or `default`.
        pub from: String = ("from", Text),
    }
}

row! {
    "config_fault", ["config check"];
    /// What is wrong with the configuration: the first fault there is. No row: nothing is.
    pub struct ConfigFaultRow {
        /// The file.
        pub file: String = ("file", Text),
        /// Line, from 1; 0: the file as a whole.
        pub line: usize = ("line", Count),
        /// Column, from 1; 0: the file as a whole.
        pub column: usize = ("column", Count),
        /// The key that it is about, as in `serve.listen`; empty: none.
        pub key: String = ("key", Text),
        /// What is wrong.
        pub message: String = ("what is wrong", Text),
        /// What is allowed there; null: nothing to say.
        pub allowed: Option<String> = ("what is allowed", Text),
    }
}

/// Reads the configuration, or prints one.
pub fn run(verb: &ConfigVerb) -> Result<(), Failure> {
    match verb {
        ConfigVerb::Check(arguments) => check(arguments),
        ConfigVerb::Show(arguments) => show(arguments),
        ConfigVerb::Default(arguments) => {
            let mut text = default_text();
            if arguments.markdown {
                text = page(&text);
            }
            Ok(io::stdout().write_all(text.as_bytes())?)
        }
    }
}

/// docs/reference/configuration.md
fn page(default: &str) -> String {
    format!(
        "# Configuration file\n\nWritten by `unspin config default --markdown`; a test fails while this page says something else. \
         `{}`, which `unspin serve` and `unspin steer` read; their command line goes before it.\n\n```toml\n{default}```\n",
        PATH
    )
}

fn check(arguments: &FileArguments) -> Result<(), Failure> {
    let read = Configuration::load(arguments.file.as_deref());
    let mut document = output::document("config check");
    let name = match &read {
        Ok(Configuration { file: None, .. }) => None,
        Ok(Configuration { file, .. }) => file.clone(),
        Err(_) => arguments.file.clone(),
    };
    let name = name.map(|path| path.display().to_string());
    let fault = read.err();
    if arguments.output.json {
        let rows = fault.iter().map(|fault| ConfigFaultRow {
            file: name.clone().unwrap_or_else(|| PATH.to_owned()),
            line: fault.line(),
            column: fault.column(),
            key: fault.key().to_owned(),
            message: fault.message().to_owned(),
            allowed: fault.allowed().map(str::to_owned),
        });
        document.table(Table::of("", rows));
        output::print(&document, arguments.output)?;
    }
    if let Some(fault) = fault {
        return Err(fault.into());
    }
    if !arguments.output.json {
        let says = match name {
            Some(name) => format!("{name}: nothing is wrong"),
            None => format!("{} is not there: every value is the default", PATH),
        };
        writeln!(io::stdout(), "{says}")?;
    }
    Ok(())
}

fn show(arguments: &FileArguments) -> Result<(), Failure> {
    let configuration = Configuration::load(arguments.file.as_deref())?;
    let rows = configuration.values().into_iter();
    let rows = rows.map(|(key, value, from)| ConfigRow { key, value, from });
    let mut document = output::document("config show");
    document.table(Table::of("", rows));
    if configuration.file.is_none() {
        document.note(format!("{} is not there", PATH));
    }
    Ok(output::print(&document, arguments.output)?)
}
