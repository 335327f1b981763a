// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin completions`: what a shell needs to complete commands and options.

use std::io;

use clap::{Args, CommandFactory, ValueEnum};

use crate::{commands::Arguments, terminal::failure::Failure};

/// `unspin completions`
#[derive(Args, Debug)]
pub struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    pub shell: Shell,
}

/// A shell.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Shell {
    /// As in `unspin completions bash > /etc/bash_completion.d/unspin`.
    Bash,
    /// As in `unspin completions zsh > ~/.zfunc/_unspin`.
    Zsh,
    /// As in `unspin completions fish > ~/.config/fish/completions/unspin.fish`.
    Fish,
}

/// Prints the shell's script.
///
/// # Errors
/// Standard output that cannot be written.
pub fn run(arguments: &CompletionsArguments) -> Result<(), Failure> {
    let shell = match arguments.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "unspin", &mut script);
    Ok(io::Write::write_all(&mut io::stdout(), &script)?)
}
