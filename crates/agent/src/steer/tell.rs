// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much guests are told in their hint pages (`abi/hint.h`).

use std::{fmt, str::FromStr};

use libbpf_rs::Object;
use unspin_abi as abi;

use crate::{Error, load};

/// What the scheduler writes into the hint pages of a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tell {
    /// Nothing: no page is ever written to. Loans and grants then end by looks and by the clock.
    Nothing,
    /// What concerns the vCPU itself: that its page was seen, that it runs on borrowed time, that it is off its CPU.
    #[default]
    Own,
    /// Also whether somebody else could run on its CPU: that is about its neighbours.
    All,
}

/// For whom a level holds, when not for everyone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// For those that nothing else is said of.
    pub everyone: Tell,
    /// The vCPUs of these processes; before what their cgroup says.
    pub processes: Vec<(u32, Tell)>,
    /// Those in these cgroups (inode numbers) and below; a deeper one comes first.
    pub cgroups: Vec<(u64, Tell)>,
}

impl Told {
    /// Writes who is told another measure than everyone into the object's maps, as that number.
    pub(crate) fn fill(&self, object: &Object, number: impl Fn(Tell) -> u32) -> Result<(), Error> {
        let processes = load::map(object, "told_processes")?;
        for (process, tell) in &self.processes {
            let number = number(*tell).to_ne_bytes();
            load::update(&processes, &process.to_ne_bytes(), &number)?;
        }
        let cgroups = load::map(object, "told_cgroups")?;
        for (cgroup, tell) in &self.cgroups {
            let number = number(*tell).to_ne_bytes();
            load::update(&cgroups, &cgroup.to_ne_bytes(), &number)?;
        }
        Ok(())
    }
}

impl Tell {
    /// As in `enum unspin_steer_tell`.
    pub(super) fn number(self) -> u32 {
        match self {
            Tell::Nothing => abi::UNSPIN_STEER_TELL_NOTHING,
            Tell::Own => abi::UNSPIN_STEER_TELL_OWN,
            Tell::All => abi::UNSPIN_STEER_TELL_ALL,
        }
    }
}

impl FromStr for Tell {
    type Err = String;

    fn from_str(text: &str) -> Result<Tell, String> {
        match text {
            "nothing" => Ok(Tell::Nothing),
            "own" => Ok(Tell::Own),
            "all" => Ok(Tell::All),
            _ => Err(format!("`{text}`: nothing, own or all")),
        }
    }
}

impl fmt::Display for Tell {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Tell::Nothing => "nothing",
            Tell::Own => "own",
            Tell::All => "all",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_they_are_printed() {
        for level in [Tell::Nothing, Tell::Own, Tell::All] {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert_eq!(Tell::default(), Tell::Own, "README, Steering");
        assert!("everything".parse::<Tell>().is_err() && "".parse::<Tell>().is_err());
    }
}
