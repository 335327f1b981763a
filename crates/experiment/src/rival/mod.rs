// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rivals: the sched_ext schedulers that people run, as columns beside ours. `make rivals` builds them from crates.io
//! (setup/rivals.lock: versions, licences); here is where they lie ([`place`]) and how one schedules for a while ([`attached`]).

mod attached;
mod place;

use std::{fmt, str::FromStr};

pub use attached::Attached;
pub use place::{Place, inputs, note};

/// Another sched_ext scheduler, with the options that it has by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rival {
    /// scx_bpfland: by virtual run time, prefers tasks that block often.
    Bpfland,
    /// scx_lavd: by virtual deadlines, from how critical a task's latency is.
    Lavd,
    /// scx_rusty: a queue for each domain of CPUs that share a cache, a balancer in user space.
    Rusty,
}

impl Rival {
    /// All, in order.
    pub const ALL: [Rival; 3] = [Rival::Bpfland, Rival::Lavd, Rival::Rusty];

    /// Its word on the command line, which is also the name of its crate and its program.
    pub fn name(self) -> &'static str {
        match self {
            Rival::Bpfland => "scx_bpfland",
            Rival::Lavd => "scx_lavd",
            Rival::Rusty => "scx_rusty",
        }
    }

    /// What it calls itself in the kernel (`name` of its `struct sched_ext_ops`); a version follows (scx_utils, `scx_ops_open!`).
    fn ops(self) -> &'static str {
        match self {
            Rival::Bpfland => "bpfland",
            Rival::Lavd => "lavd",
            Rival::Rusty => "rusty",
        }
    }

    /// Whether that is what `/sys/kernel/sched_ext/root/ops` says: its own name, or the name, `_` and a version.
    fn is_named(self, ops: &str) -> bool {
        let rest = ops.trim().strip_prefix(self.ops());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
    }
}

impl fmt::Display for Rival {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Rival {
    type Err = String;

    fn from_str(word: &str) -> Result<Rival, String> {
        let found = Rival::ALL.into_iter().find(|rival| rival.name() == word);
        found.ok_or_else(|| {
            let names = Rival::ALL.map(Rival::name).join(", ");
            format!("`{word}` is no rival; there are {names}")
        })
    }
}

/// Each rival has one column.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) naming the first that is given twice.
pub fn check_rivals(rivals: &[Rival]) -> Result<(), crate::Error> {
    let twice = |at: &usize| rivals[..*at].contains(&rivals[*at]);
    match (0..rivals.len()).find(twice) {
        Some(at) => Err(crate::Error::Usage(format!(
            "{} is given twice: a rival has one column",
            rivals[at]
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for rival in Rival::ALL {
            assert_eq!(rival.to_string().parse(), Ok(rival));
        }
        for wrong in ["", "lavd", "scx_lavd ", "SCX_LAVD", "scx_simple"] {
            let refused = wrong.parse::<Rival>().expect_err(wrong);
            assert_eq!(
                refused,
                format!("`{wrong}` is no rival; there are scx_bpfland, scx_lavd, scx_rusty")
            );
        }
    }

    #[test]
    fn the_kernels_name_has_a_version_behind_it_or_none() {
        for named in ["lavd\n", "lavd", "lavd_1.1.4_x86_64_unknown_linux_gnu\n"] {
            assert!(Rival::Lavd.is_named(named), "{named}");
        }
        for other in ["", "lavdx", "unspin", "bpfland_1.1.4", "scx_lavd"] {
            assert!(!Rival::Lavd.is_named(other), "{other}");
        }
    }

    #[test]
    fn a_rival_is_given_once() {
        let [bpfland, lavd, rusty] = Rival::ALL;
        check_rivals(&[]).expect("none");
        check_rivals(&Rival::ALL).expect("each once");
        let refused = check_rivals(&[lavd, rusty, bpfland, rusty]).expect_err("twice");
        assert!(refused.to_string().contains("scx_rusty is given twice"));
    }
}
