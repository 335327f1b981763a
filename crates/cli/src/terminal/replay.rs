// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line that repeats a run.

use crate::terminal::options::ScenarioArguments;

/// `unspin testbed run --deterministic -- unspin VERB SCENARIO ... EXTRA`: what is the same every time; for a run in the Intel
/// machine with `--machine intel` instead. `verb` and `extra` are taken as they are.
pub fn command(verb: &str, scenario: &ScenarioArguments, extra: &[String]) -> String {
    command_on(on_intel(), verb, scenario, extra)
}

/// Whether this runs in the testbed's Intel machine.
fn on_intel() -> bool {
    std::env::var_os("UNSPIN_TESTBED").is_some_and(|machine| machine == "intel")
}

fn command_on(intel: bool, verb: &str, scenario: &ScenarioArguments, extra: &[String]) -> String {
    let overrides = &scenario.overrides;
    let machine = match intel {
        true => "--machine intel",
        false => "--deterministic",
    };
    let mut words = vec![
        format!("unspin testbed run {machine} -- unspin {verb}"),
        quote(&scenario.file.to_string_lossy()),
    ];
    if let Some(seed) = overrides.seed {
        words.push(format!("--seed {seed}"));
    }
    if let Some(duration) = &overrides.duration {
        words.push(format!("--duration {}", quote(duration)));
    }
    for set in &overrides.set {
        words.push(format!("--set {}", quote(set)));
    }
    words.extend_from_slice(extra);
    words.join(" ")
}

/// A word as a POSIX shell takes it: in single quotes when it needs them.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::options::OverrideArguments;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quote("a/b.toml"), "a/b.toml");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
        let scenario = ScenarioArguments {
            file: "my s.toml".into(),
            overrides: OverrideArguments {
                seed: Some(7),
                duration: Some("1s".into()),
                set: vec!["vm.hold={ exponential = \"3us\" }".into()],
                ..OverrideArguments::default()
            },
        };
        assert_eq!(
            command_on(false, "vm run", &scenario, &["--json".into()]),
            "unspin testbed run --deterministic -- unspin vm run 'my s.toml' --seed 7 --duration 1s \
             --set 'vm.hold={ exponential = \"3us\" }' --json"
        );
        let intel = command_on(true, "compare", &scenario, &[]);
        assert!(intel.starts_with("unspin testbed run --machine intel -- unspin compare "));
    }
}
