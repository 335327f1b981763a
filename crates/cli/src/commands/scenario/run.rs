// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin scenario schema` and `unspin scenario check`.

use std::io::{self, Write};

use super::{
    args::{CheckArguments, SchemaArguments},
    markdown,
};
use crate::terminal::failure::Failure;

/// Prints the JSON Schema, or a page of Markdown that follows from it.
pub fn schema(arguments: &SchemaArguments) -> Result<(), Failure> {
    if arguments.markdown {
        return Ok(io::stdout().write_all(markdown::page().as_bytes())?);
    }
    writeln!(io::stdout(), "{:#}", unspin_scenario::json_schema())?;
    Ok(())
}

/// Reads a scenario and prints its canonical text, which is itself a scenario, with its hash as a comment.
pub fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let scenario = arguments.scenario.load()?;
    let mut out = io::stdout();
    writeln!(out, "# {} {}", scenario.name, scenario.hash())?;
    write!(out, "{}", scenario.to_toml())?;
    Ok(())
}
