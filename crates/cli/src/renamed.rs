// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spellings of the command line that have changed: whoever types the old one is told the new one.

use clap::error::{ContextKind, ContextValue};

/// Before, and now. An option is of every command that lacks it today.
const RENAMED: [(&str, &str); 4] = [
    ("truth", "ground-truth"),
    ("--rivals", "--baselines"),
    ("--tell", "--disclose"),
    ("--window", "--sample"),
];

/// What to say of an error of the command line that an old spelling explains.
pub fn explain(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let given = kinds.into_iter().find_map(|kind| match error.get(kind) {
        Some(ContextValue::String(given)) => Some(given.as_str()),
        _ => None,
    })?;
    let (_, now) = RENAMED.iter().find(|(before, _)| *before == given)?;
    Some(format!("`{given}` is called `{now}` now"))
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
}
