// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin lab compare --policy` takes: a named change of the scenario, words separated by commas.
//!
//! `eevdf-6.6`, `strict`, `apple`, `loan`, `steer,loan,slice=2ms`, `scheduler=cfs-5.6,candidates=kvm-5.2,window=off`.

use std::fmt;

use unspin_policy::{
    CandidateRule, Control,
    auto::AUTO,
    steering::{Policies, REFUSE_YIELDS, renamed},
};
use unspin_scenario::Overrides;

use crate::scheduler::names::known_names;

/// The scheduler that steering policies steer.
const STEER: &str = "steer";

/// A change of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    words: String,
    /// The settings, as `--set` takes them.
    pub set: Vec<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.words)
    }
}

impl Change {
    /// The change that these words name. Values are checked when the scenario is read.
    ///
    /// # Errors
    /// An unknown word: the message lists the known ones.
    pub fn parse(words: &str) -> Result<Change, String> {
        let mut set: Vec<String> = Vec::new();
        let mut steering: Vec<&str> = Vec::new();
        let mut scheduler = false;
        for word in words.split(',') {
            // Both the name of a policy and of the lab's own gang scheduler.
            let policy = set.iter().any(|given| given == "lab.scheduler=steer");
            let meaning = match policy && word.parse::<Policies>().is_ok() {
                true => Meaning::Steering,
                false => meaning(word)?,
            };
            match meaning {
                Meaning::Steering => steering.push(word),
                Meaning::Scheduler => {
                    scheduler = true;
                    set.push(format!("lab.scheduler={word}"));
                }
                Meaning::Set(given) => {
                    scheduler |= given.starts_with("lab.scheduler=");
                    set.push(given);
                }
            }
        }
        if !steering.is_empty() {
            if !scheduler {
                set.push(format!("lab.scheduler={STEER}"));
            }
            set.push(format!("lab.policy={}", steering.join(",")));
        }
        Ok(Change {
            words: words.to_owned(),
            set,
        })
    }
}

enum Meaning {
    Scheduler,
    Steering,
    Set(String),
}

fn meaning(word: &str) -> Result<Meaning, String> {
    if word.ends_with(".c") || word == AUTO {
        return Ok(Meaning::Steering);
    }
    if word.ends_with(".o") {
        return Err(format!(
            "{word}: an object is for the kernel; give the policy's C file, as in ./mine.c"
        ));
    }
    let base = word.split('+').next().unwrap_or_default();
    if base == STEER || known_names().contains(&base) {
        return Ok(Meaning::Scheduler);
    }
    if CandidateRule::ALL.iter().any(|rule| rule.name() == word) {
        return Ok(Meaning::Set(format!("lab.candidates={word}")));
    }
    if Control::ALL.iter().any(|control| control.name() == word) {
        return Ok(Meaning::Set(format!("lab.window_control={word}")));
    }
    if let Some(now) = renamed(word) {
        return Err(now);
    }
    // Also a key of [lab], where it is a rule for every scheduler.
    if !word.starts_with("candidates=") && word.parse::<Policies>().is_ok() {
        return Ok(Meaning::Steering);
    }
    if let Some((key, value)) = word.split_once('=') {
        let key = match key {
            "window" => "lab.window_control".to_owned(),
            key if key.contains('.') => key.to_owned(),
            key => format!("lab.{key}"),
        };
        let given = format!("{key}={value}");
        if Overrides::default().set(&given).is_ok() {
            return Ok(Meaning::Set(given));
        }
    }
    match word.split_once(':') {
        Some((first, _)) if meaning(first).is_ok() => Err(format!(
            "`{word}`: commas combine words now, and --policy once more begins another change"
        )),
        _ => Err(unknown(word)),
    }
}

/// The words that a change may consist of, beside files and KEY=VALUE: of host schedulers, rules for candidates, window controls,
/// and steering policies.
pub fn words() -> [(&'static str, Vec<&'static str>); 4] {
    let candidates = CandidateRule::ALL.iter().map(|rule| rule.name());
    let controls = Control::ALL.iter().map(|control| control.name());
    let steering = [AUTO, REFUSE_YIELDS].into_iter().chain(Policies::names());
    [
        ("schedulers", known_names()),
        ("candidates", candidates.collect()),
        ("windows", controls.collect()),
        ("steering", steering.collect()),
    ]
}

fn unknown(word: &str) -> String {
    let [schedulers, candidates, windows, steering] = words().map(|(_, words)| words.join(", "));
    format!(
        "there is no policy `{word}`; words apart by commas are: schedulers ({schedulers}), candidates ({candidates}), windows \
         ({windows}), steering policies under the scheduler steer ({steering}), one of your own (./mine.c), and KEY=VALUE of \
         the table [lab] or with its section, as in halt_poll=50us or host.ple_window=200"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &str) -> Vec<String> {
        Change::parse(words)
            .unwrap_or_else(|error| panic!("{words}: {error}"))
            .set
    }

    #[test]
    fn words() {
        assert_eq!(set("eevdf-6.6"), ["lab.scheduler=eevdf-6.6"]);
        assert_eq!(
            set("cfs-4.13+debooster=paper"),
            ["lab.scheduler=cfs-4.13+debooster=paper"]
        );
        assert_eq!(set("strict"), ["lab.candidates=strict"]);
        assert_eq!(set("apple"), ["lab.window_control=apple"]);
        assert_eq!(set("window=off"), ["lab.window_control=off"]);
        assert_eq!(set("loan"), ["lab.scheduler=steer", "lab.policy=loan"]);
        assert_eq!(
            set("steer,loan,slice=2ms"),
            ["lab.scheduler=steer", "lab.policy=loan,slice=2ms"]
        );
        assert_eq!(set("gang"), ["lab.scheduler=gang"]);
        assert_eq!(
            set("steer,gang,loan"),
            ["lab.scheduler=steer", "lab.policy=gang,loan"]
        );
        assert_eq!(
            set("./mine.c,loan"),
            ["lab.scheduler=steer", "lab.policy=./mine.c,loan"]
        );
        assert_eq!(
            set("scheduler=cfs-5.6,candidates=kvm-5.2,host.ple_window=200"),
            [
                "lab.scheduler=cfs-5.6",
                "lab.candidates=kvm-5.2",
                "host.ple_window=200"
            ]
        );
        assert_eq!(
            Change::parse("strict").expect("known").to_string(),
            "strict"
        );
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for (words, piece) in [
            ("", "there is no policy ``"),
            ("strikt", "there is no policy `strikt`; words"),
            ("strict,", "there is no policy ``"),
            ("loan:kernel-exit", "commas combine"),
            ("none", "called `refuse-yields` now"),
            ("lab=1", "there is no policy `lab=1`"),
            ("vm.vcpu=1", "there is no policy"),
            ("./mine.bpf.o", "give the policy's C file"),
        ] {
            let error = Change::parse(words).expect_err(words);
            assert!(error.contains(piece), "{error}");
        }
    }
}
