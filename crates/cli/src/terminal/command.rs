// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command that runs while a host is recorded, watched or served.

use std::{
    ffi::{OsStr, OsString},
    io,
    process::{Command, Stdio},
};

use anyhow::Context;
use unspin_agent::Until;

use crate::terminal::failure::Failure;

/// Time counts from now on, and the command runs, if there is one; `unspin` is this binary. `json`: standard output is this program's
/// own, and the command writes to standard error.
///
/// # Errors
/// When it cannot be started: its name is told.
pub fn start(words: &[OsString], json: bool, until: &mut Until) -> Result<(), Failure> {
    let Some((name, words)) = words.split_first() else {
        return Ok(until.start(None)?);
    };
    let program = match name == OsStr::new("unspin") {
        true => std::env::current_exe()?.into_os_string(),
        false => name.clone(),
    };
    let mut command = Command::new(program);
    command.args(words);
    if json {
        command.stdout(Stdio::from(io::stderr()));
    }
    let started = until.start(Some(command));
    Ok(started.with_context(|| format!("{}: cannot be started", name.to_string_lossy()))?)
}
