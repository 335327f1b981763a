// SPDX-License-Identifier: MIT OR Apache-2.0
//! The module of `guest-linux/module` in an unmodified guest.

use std::fmt;
use std::str::FromStr;

use crate::programs::COUNTS;

/// Whether a guest tells its host where its kernel's own counts of critical sections lie (`abi/guest/counts.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountsModule {
    /// No.
    #[default]
    Off,
    /// Its preempt count and RCU nesting.
    On,
    /// These, and what it asks for and holds of mutexes and reader-writer semaphores, by hooks in their functions.
    Hooks,
}

impl CountsModule {
    /// All of them.
    pub const ALL: [CountsModule; 3] = [CountsModule::Off, CountsModule::On, CountsModule::Hooks];

    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            CountsModule::Off => "off",
            CountsModule::On => "on",
            CountsModule::Hooks => "hooks",
        }
    }

    /// What a guest needs for it.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            CountsModule::Off => &[],
            CountsModule::On | CountsModule::Hooks => &[COUNTS],
        }
    }

    /// What PID 1 hands on to the module.
    pub fn kernel_argument(self) -> Option<&'static str> {
        (self == CountsModule::Hooks).then_some("unspin_counts.hooks=1")
    }
}

impl fmt::Display for CountsModule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl FromStr for CountsModule {
    type Err = String;

    fn from_str(text: &str) -> Result<CountsModule, String> {
        let found = CountsModule::ALL
            .into_iter()
            .find(|counts| counts.word() == text);
        found.ok_or_else(|| format!("{text:?} is none of off, on, hooks"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_what_it_prints_and_only_hooks_are_asked_for() {
        for counts in CountsModule::ALL {
            assert_eq!(counts.to_string().parse(), Ok(counts));
            assert_eq!(counts.programs().is_empty(), counts == CountsModule::Off);
            assert_eq!(
                counts.kernel_argument().is_some(),
                counts == CountsModule::Hooks
            );
        }
        assert!("yes".parse::<CountsModule>().is_err());
    }
}
