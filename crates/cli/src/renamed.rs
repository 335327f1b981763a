// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spellings of the command line that have changed: whoever types the old one is told the new one.

use clap::error::{ContextKind, ContextValue};

/// The command that had it (all of them: `unspin`), before, and now.
const RENAMED: [(&str, &str, &str); 4] = [
    ("unspin", "truth", "ground-truth"),
    ("unspin bench threads", "--rivals", "--baselines"),
    ("unspin steer", "--tell", "--disclose"),
    ("unspin compare", "--window", "--sample"),
];

/// What to say of an error of the command line that an old spelling explains.
pub fn explain(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let given = kinds.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(given)) => Some(given.as_str()),
        _ => None,
    })?;
    let (.., now) = RENAMED
        .iter()
        .find(|(command, before, _)| *before == given && is_of(error, command))?;
    Some(format!("`{given}` is called `{now}` now"))
}

/// Whether it is an error of that command, as its usage says: `Usage: unspin compare [OPTIONS] ...`.
fn is_of(error: &clap::Error, command: &str) -> bool {
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => {
            let usage = usage.to_string();
            let words = usage
                .split_whitespace()
                .skip_while(|word| *word != "unspin");
            command
                .split(' ')
                .eq(words.take(command.split(' ').count()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Arguments;
    use clap::Parser;

    fn explained(line: &str) -> Option<String> {
        explain(&Arguments::try_parse_from(line.split(' ')).expect_err("an old spelling"))
    }

    #[test]
    fn old_spellings_name_the_new_one() {
        for (line, now) in [
            ("unspin truth r", "`truth` is called `ground-truth` now"),
            (
                "unspin compare s.toml --window 1s",
                "`--window` is called `--sample` now",
            ),
            (
                "unspin bench threads --rivals",
                "`--rivals` is called `--baselines` now",
            ),
            (
                "unspin steer --tell all",
                "`--tell` is called `--disclose` now",
            ),
        ] {
            assert_eq!(explained(line).as_deref(), Some(now), "{line}");
        }
    }

    #[test]
    fn what_was_never_a_spelling_is_left_to_clap() {
        assert_eq!(explained("unspin sing"), None);
        assert_eq!(explained("unspin steer --song"), None);
    }

    /// Only `compare` had a `--window` that is called otherwise now.
    #[test]
    fn an_option_that_another_command_had_is_left_to_clap() {
        for line in [
            "unspin vm run s.toml --window 1s",
            "unspin lab compare s.toml --policy loan --window 1s",
            "unspin compare s.toml --tell all",
            "unspin bench vm --rivals all",
        ] {
            assert_eq!(explained(line), None, "{line}");
        }
    }
}
