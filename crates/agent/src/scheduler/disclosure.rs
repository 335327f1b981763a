// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much guests are told in their pv pages (`abi/guest/pv_page.h`).

use std::{fmt, str::FromStr};

use libbpf_rs::Object;
use unspin_abi as abi;

use crate::{Error, kernel::load};

/// What the scheduler writes into the pv pages of a VM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Disclosure {
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
pub struct Disclosures {
    /// For those that nothing else is said of.
    pub everyone: Disclosure,
    /// The vCPUs of these processes; before what their cgroup says.
    pub processes: Vec<(u32, Disclosure)>,
    /// Those in these cgroups (inode numbers) and below; a deeper one comes first.
    pub cgroups: Vec<(u64, Disclosure)>,
}

impl Disclosures {
    /// Writes who is told another measure than everyone into the object's maps, as that number.
    pub(crate) fn fill(
        &self,
        object: &Object,
        number: impl Fn(Disclosure) -> u32,
    ) -> Result<(), Error> {
        let processes = load::map(object, "disclosure_processes")?;
        for (process, tell) in &self.processes {
            let number = number(*tell).to_ne_bytes();
            load::update(&processes, &process.to_ne_bytes(), &number)?;
        }
        let cgroups = load::map(object, "disclosure_cgroups")?;
        for (cgroup, tell) in &self.cgroups {
            let number = number(*tell).to_ne_bytes();
            load::update(&cgroups, &cgroup.to_ne_bytes(), &number)?;
        }
        Ok(())
    }
}

impl Disclosure {
    /// As in `enum unspin_disclosure`.
    pub(super) fn number(self) -> u32 {
        match self {
            Disclosure::Nothing => abi::UNSPIN_DISCLOSE_NOTHING,
            Disclosure::Own => abi::UNSPIN_DISCLOSE_OWN,
            Disclosure::All => abi::UNSPIN_DISCLOSE_ALL,
        }
    }
}

impl FromStr for Disclosure {
    type Err = String;

    fn from_str(text: &str) -> Result<Disclosure, String> {
        match text {
            "nothing" => Ok(Disclosure::Nothing),
            "own" => Ok(Disclosure::Own),
            "all" => Ok(Disclosure::All),
            _ => Err(format!("`{text}`: nothing, own or all")),
        }
    }
}

impl fmt::Display for Disclosure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Disclosure::Nothing => "nothing",
            Disclosure::Own => "own",
            Disclosure::All => "all",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_as_they_are_printed() {
        for level in [Disclosure::Nothing, Disclosure::Own, Disclosure::All] {
            assert_eq!(level.to_string().parse(), Ok(level));
        }
        assert_eq!(Disclosure::default(), Disclosure::Own, "README, Steering");
        assert!("everything".parse::<Disclosure>().is_err() && "".parse::<Disclosure>().is_err());
    }
}
