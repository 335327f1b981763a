// SPDX-License-Identifier: MIT OR Apache-2.0
//! A schedule: the steps of all threads in their order, as text that can be replayed.

use std::fmt;

use crate::{graph::Way, script::can};

/// A thread, and what the script does with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub thread: usize,
    /// One bit of [`can`].
    pub action: u32,
}

const LETTERS: [(u32, &str); 5] = [
    (can::STEP, ""),
    (can::FLUSH, "f"),
    (can::TIME_OUT, "t"),
    (can::WAKE, "w"),
    (can::YES, "y"),
];

impl Choice {
    /// The kind of the edge that this choice makes.
    pub fn way(self, is_answer: bool) -> Way {
        match self.action {
            _ if is_answer => Way::Answer,
            can::WAKE => Way::WakeUp,
            _ => Way::Step,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = LETTERS.iter().find(|(action, _)| *action == self.action);
        let letter = known.map_or("?", |(_, letter)| letter);
        formatter.pad(&format!("{}{letter}", self.thread))
    }
}

/// Thread numbers, each with a letter: none for a step (or the host's no), `f`: its oldest store reaches memory, `t`:
/// its wait times out, `w`: it wakes without cause, `y`: the host's yes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Schedule(pub Vec<Choice>);

impl Schedule {
    pub fn then(mut self, choice: Choice) -> Schedule {
        self.0.push(choice);
        self
    }

    /// # Panics
    /// When the text is no schedule.
    pub fn parse(text: &str) -> Schedule {
        let choice = |word: &str| {
            let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let letter = &word[digits.len()..];
            let known = LETTERS.iter().find(|(_, known)| *known == letter);
            Choice {
                thread: digits.parse().expect("a thread's number"),
                action: known.expect("a letter of a schedule").0,
            }
        };
        Schedule(text.split_whitespace().map(choice).collect())
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(Choice::to_string).collect();
        formatter.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_reads_as_it_prints() {
        let text = "0 1f 0t 2w 1y 1";
        assert_eq!(Schedule::parse(text).to_string(), text);
    }
}
