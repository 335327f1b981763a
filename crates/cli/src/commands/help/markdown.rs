// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every command as one page of Markdown: docs/reference/commands.md.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

/// The page.
pub fn page(root: &Command) -> String {
    let mut out = String::from(
        "# Commands\n\nWritten by `unspin help --markdown`; a test fails while this page says something else.\n",
    );
    section(root, root.get_name(), &mut out);
    out
}

/// A command and all below it. Writing to a string does not fail.
fn section(command: &Command, name: &str, out: &mut String) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, "\n## {name}\n\n{}\n", escaped(about.trim_end()));
    let arguments: Vec<&Arg> = command
        .get_arguments()
        .filter(|argument| {
            !argument.is_hide_set() && !["help", "version"].contains(&argument.get_id().as_str())
        })
        .collect();
    let below: Vec<&Command> = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .collect();
    let _ = writeln!(
        out,
        "`{}`",
        usage(command, name, &arguments, !below.is_empty())
    );
    for argument in arguments {
        let _ = write!(
            out,
            "\n- `{}`: {}",
            spelling(argument),
            escaped(&help(argument))
        );
    }
    out.push('\n');
    for command in below {
        section(command, &format!("{name} {}", command.get_name()), out);
    }
}

fn usage(command: &Command, name: &str, arguments: &[&Arg], has_commands: bool) -> String {
    let mut usage = name.to_owned();
    if arguments.iter().any(|argument| !argument.is_positional()) {
        usage += " [OPTIONS]";
    }
    for argument in command.get_positionals() {
        // Clap's own form has the brackets of one that may be absent, but not the dashes before a command.
        let _ = match (argument.is_last_set(), argument.to_string()) {
            (false, shown) => write!(usage, " {shown}"),
            (true, shown) if argument.is_required_set() => write!(usage, " -- {shown}"),
            (true, shown) => write!(usage, " [-- {}]", shown.replace(['[', ']'], "")),
        };
    }
    if has_commands {
        usage += " COMMAND";
    }
    usage
}

/// `--policy POLICY`, `SCENARIO`.
fn spelling(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let values: Vec<&str> = values.iter().map(|name| name.as_str()).collect();
    let takes_value = !matches!(
        argument.get_action(),
        ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count
    );
    match argument.get_long() {
        Some(long) if takes_value => format!("--{long} {}", values.join(" ")),
        Some(long) => format!("--{long}"),
        None => values.join(" "),
    }
}

fn help(argument: &Arg) -> String {
    let text = argument.get_long_help().or(argument.get_help());
    let mut text = text
        .map(ToString::to_string)
        .unwrap_or_default()
        .replace('\n', " ");
    let possible = argument.get_possible_values();
    if !possible.is_empty() && argument.get_action().takes_values() {
        let names: Vec<_> = possible
            .iter()
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        let _ = write!(text, " One of {}.", names.join(", "));
    }
    let defaults: Vec<_> = argument
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        let _ = write!(text, " Default: `{}`.", defaults.join(","));
    }
    text
}

/// `text` with every `<` outside code as Markdown writes it.
fn escaped(text: &str) -> String {
    let pieces = text.split('`').enumerate();
    let pieces: Vec<String> = pieces
        .map(|(place, piece)| match place % 2 {
            0 => piece.replace('<', "&lt;"),
            _ => piece.to_owned(),
        })
        .collect();
    pieces.join("`")
}
