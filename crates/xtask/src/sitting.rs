// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one sitting does of checks that together take a night: those asked for, the stalest first, until its time is over.

use std::time::{Duration, Instant};

use clap::Args;

use crate::results::Results;

/// What is run, and how long.
#[derive(Args, Clone, Debug, Default)]
pub struct Sitting {
    /// Their names; all of them when none is given
    pub names: Vec<String>,
    /// Only those that never ran, or did not pass when they last ran
    #[arg(long)]
    pub stale: bool,
    /// End after this time, as 90s, 30m or 8h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub limit: Option<Duration>,
}

impl Sitting {
    /// Those of `all` that are to be run at `commit`, in order: what never ran, what did not pass, then the oldest result. What
    /// has passed at this very commit is left out: an interrupted sitting goes on.
    pub fn due<T>(
        &self,
        all: Vec<T>,
        name: impl Fn(&T) -> &str,
        results: &Results,
        commit: &str,
    ) -> Vec<T> {
        let mut due = all;
        due.retain(|one| {
            let done = if self.stale {
                results.passed(name(one))
            } else {
                results.passed_at(name(one), commit)
            };
            !done
        });
        due.sort_by_key(|one| results.staleness(name(one)));
        due
    }

    /// The time that is left of it, which began then; `None`: it has no end.
    pub fn left(&self, began: Instant) -> Option<Duration> {
        self.limit
            .map(|limit| limit.saturating_sub(began.elapsed()))
    }
}

/// "90s", "30m", "8h".
///
/// # Errors
/// What is wrong with it.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time such as 90s, 30m or 8h");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        _ => return Err(wrong()),
    };
    let number: u32 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    Ok(Duration::from_secs(u64::from(number) * seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stalest_comes_first_and_what_passed_here_is_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("results.tsv");
        let rows = "a\tpassed\t1\tc1\t2026-11-02\nb\tFAILED\t1\tc1\t2026-11-03\nc\tnever-run\t0\t-\t2026-11-04\n\
                    d\tpassed\t1\tc0\t2026-11-01\ne\tkilled\t1\tc2\t2026-11-01\n";
        std::fs::write(&file, rows).unwrap();
        let results = Results::read(file, "#").unwrap();
        let due = |stale| {
            let sitting = Sitting {
                stale,
                ..Sitting::default()
            };
            let all = vec!["a", "b", "c", "d", "e", "new"];
            sitting.due(all, |name| name, &results, "c2").join(" ")
        };
        assert_eq!(due(false), "c new b d a");
        assert_eq!(due(true), "c new b");
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(duration("8h"), Ok(Duration::from_secs(28800)));
        for wrong in ["", "s", "5", "-1s", "5d", "1.5h", "5µ"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
