// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin testbed run -- unspin compare ... --lab`: what is measured comes out of the testbed as rows, and the lab predicts
//! it out here, where it runs at full speed and costs no emulated time.

use std::{ffi::OsString, io::Write};

use clap::Parser;
use unspin_experiment::cells::read_compared;
use unspin_testbed::{Options, Outcome};

use crate::{
    commands::{
        Arguments, Command,
        compare::{self, args::CompareArguments, costs},
    },
    terminal::failure::Failure,
};

/// Words of the command that are for out here, and whether a value follows.
const OUTSIDE: [(&str, bool); 4] = [
    ("--lab", false),
    ("--lab-costs", true),
    ("--lab-seeds", true),
    ("--json", false),
];

/// The comparison, if the command is one that the lab is to predict.
pub fn asked(command: &[OsString]) -> Option<CompareArguments> {
    if command.first()? != "unspin" {
        return None;
    }
    match Arguments::try_parse_from(command).ok()?.command {
        Command::Compare(compare) if compare.prediction.lab && !compare.full => Some(compare),
        _ => None,
    }
}

/// Measures in the testbed, and prints what came of it and the lab's prediction.
///
/// # Errors
/// When the testbed, the lab or the printing fails. What ends otherwise than well in the testbed has said so there.
pub fn run(
    arguments: &CompareArguments,
    options: &Options,
    command: &[OsString],
) -> Result<Outcome, Failure> {
    // First what can be wrong: nothing has booted yet.
    let costs = costs(arguments, true)?;
    let all = compare::chosen(arguments)?;
    let (mut out, mut errors) = (Vec::new(), std::io::stderr());
    let outcome = unspin_testbed::run_with(options, &inside(command), &mut out, &mut errors)
        .map_err(anyhow::Error::from)?;
    if outcome.status != 0 {
        std::io::stdout().write_all(&out)?;
        return Ok(outcome);
    }
    let (machine, together) = read_compared(&out)?;
    compare::print(arguments, &machine, &all, &together, costs.as_deref())?;
    Ok(outcome)
}

/// The command without what is for out here; it prints rows.
fn inside(command: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = command.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let (name, joined) = match text.split_once('=') {
            Some((name, _)) => (name, true),
            None => (&*text, false),
        };
        match OUTSIDE.iter().find(|(outside, _)| *outside == name) {
            Some((_, true)) if !joined => drop(words.next()),
            Some(_) => {}
            None => kept.push(word.clone()),
        }
    }
    kept.push("--json".into());
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn what_is_for_out_here_stays_out() {
        for (line, within) in [
            (
                "unspin compare s.toml --lab --policy loan",
                "unspin compare s.toml --policy loan --json",
            ),
            (
                "unspin compare --lab-costs c.toml --lab --lab-seeds=2 --json s.toml --set vm.vcpus=4",
                "unspin compare s.toml --set vm.vcpus=4 --json",
            ),
        ] {
            assert!(asked(&args(line)).is_some());
            assert_eq!(inside(&args(line)), args(within));
        }
    }

    #[test]
    fn other_commands_run_as_they_are() {
        for line in [
            "unspin compare s.toml",
            "unspin compare --full --lab",
            "unspin lab compare s.toml --policy loan",
            "sh -c unspin",
            "unspin compare s.toml --lab --wrong",
        ] {
            assert!(asked(&args(line)).is_none(), "{line}");
        }
    }
}
