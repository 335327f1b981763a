// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin help`: on the terminal, as man pages, as a page of the book. All of it follows from the arguments' types.

pub(crate) mod args;
mod markdown;
mod tables;

use std::{
    fs,
    io::{self, Write},
};

use clap::{Command, CommandFactory};

use self::args::HelpArguments;
use crate::{commands::Arguments, terminal::failure::Failure};

/// Prints or writes what was asked for.
///
/// # Errors
/// [`Failure::Usage`] for a command that is none; a folder that cannot be written.
pub fn run(arguments: &HelpArguments) -> Result<(), Failure> {
    let mut root = Arguments::command();
    root.build();
    if let Some(folder) = &arguments.man {
        fs::create_dir_all(folder)?;
        return Ok(clap_mangen::generate_to(root, folder)?);
    }
    if arguments.tables {
        let text = match arguments.markdown {
            true => tables::page(),
            false => format!("{:#}\n", tables::schemas()),
        };
        return Ok(io::stdout().write_all(text.as_bytes())?);
    }
    if arguments.markdown {
        return Ok(io::stdout().write_all(markdown::page(&root).as_bytes())?);
    }
    let mut command = root;
    for word in &arguments.command {
        let found = command.find_subcommand(word).cloned();
        command = found.ok_or_else(|| {
            Failure::Usage(format!(
                "there is no command `{word}`; there are {}",
                names(&command)
            ))
        })?;
    }
    Ok(command.print_long_help()?)
}

fn names(command: &Command) -> String {
    let all: Vec<_> = command.get_subcommands().map(Command::get_name).collect();
    match &all[..] {
        [] => "none below it".to_owned(),
        all => all.join(", "),
    }
}
