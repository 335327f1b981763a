// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much guests are told in their pv pages (`abi/guest/pv_page.h`): a level, for everyone or for one VM, also in words.

use std::{
    fmt, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use libbpf_rs::Object;
use unspin_abi as abi;
use unspin_vms::NoSuchVm;

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

/// `own`, `all=web-3`, `all=1234` or `nothing=/sys/fs/cgroup/machine.slice`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisclosureChoice {
    /// How much.
    pub level: Disclosure,
    /// Whom.
    pub whom: Whom,
}

/// Whom it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whom {
    /// All that nothing else is said of.
    Everyone,
    /// One VM, by name, UUID, id or process.
    Vm(String),
    /// Those in a cgroup, by its folder, and below.
    Cgroup(PathBuf),
}

/// Whom a level is to hold for, and who is not there.
#[derive(Debug, thiserror::Error)]
pub enum NoSuchWhom {
    /// A folder that is no cgroup's.
    #[error(transparent)]
    Cgroup(#[from] NoCgroup),
    /// No VM, or no single one.
    #[error(transparent)]
    Vm(#[from] NoSuchVm),
}

/// A folder that is no cgroup's.
#[derive(Debug, thiserror::Error)]
#[error("{}: no cgroup: {source}", folder.display())]
pub struct NoCgroup {
    folder: PathBuf,
    source: io::Error,
}

/// The number that the kernel knows a cgroup by: its folder's inode.
///
/// # Errors
/// When it is no cgroup.
pub fn cgroup_number(folder: &Path) -> Result<u64, NoCgroup> {
    let metadata = folder.join("cgroup.procs").metadata();
    let metadata = metadata.and_then(|_| folder.metadata());
    let metadata = metadata.map_err(|source| NoCgroup {
        folder: folder.to_owned(),
        source,
    })?;
    Ok(metadata.ino())
}

impl Disclosures {
    /// What the choices say; of two for the same, the later.
    ///
    /// # Errors
    /// When a folder is no cgroup's, or a name no running VM's.
    pub fn of(choices: &[DisclosureChoice]) -> Result<Disclosures, NoSuchWhom> {
        let mut disclosures = Disclosures::default();
        for choice in choices {
            match &choice.whom {
                Whom::Everyone => disclosures.everyone = choice.level,
                Whom::Vm(name) => {
                    let process = unspin_vms::process_of(Path::new("/proc"), name)?;
                    disclosures.processes.push((process, choice.level));
                }
                Whom::Cgroup(folder) => {
                    let number = cgroup_number(folder)?;
                    disclosures.cgroups.push((number, choice.level));
                }
            }
        }
        Ok(disclosures)
    }
}

impl FromStr for DisclosureChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<DisclosureChoice, String> {
        let (level, whom) = match text.split_once('=') {
            None => (text, Whom::Everyone),
            Some((level, folder)) if folder.starts_with('/') => {
                (level, Whom::Cgroup(folder.into()))
            }
            Some((_, "")) => {
                return Err("whom: a VM's name or process, or a cgroup's folder from /".into());
            }
            Some((level, name)) => (level, Whom::Vm(name.to_owned())),
        };
        let level = level.parse()?;
        Ok(DisclosureChoice { level, whom })
    }
}

impl fmt::Display for DisclosureChoice {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.whom {
            Whom::Everyone => write!(out, "{}", self.level),
            Whom::Vm(name) => write!(out, "{}={name}", self.level),
            Whom::Cgroup(folder) => write!(out, "{}={}", self.level, folder.display()),
        }
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

    #[test]
    fn the_later_choice_is_taken_and_a_folder_must_be_a_cgroup() {
        let choices = |texts: &[&str]| -> Vec<DisclosureChoice> {
            let choices = texts.iter().map(|text| text.parse().expect("a choice"));
            choices.collect()
        };
        let own = std::process::id();
        let choice = format!("own={own}");
        let told = Disclosures::of(&choices(&["all", &choice, "nothing"])).expect("it is there");
        assert_eq!(told.everyone, Disclosure::Nothing);
        assert_eq!(told.processes, [(own, Disclosure::Own)]);
        let error = Disclosures::of(&choices(&["all=/proc/self"])).expect_err("no cgroup");
        assert!(error.to_string().starts_with("/proc/self: no cgroup: "));
        let error = Disclosures::of(&choices(&["all=no-such-vm"])).expect_err("no VM");
        assert!(
            error.to_string().starts_with("there is no VM `no-such-vm`"),
            "{error}"
        );
    }

    #[test]
    fn a_level_and_whom() {
        for text in [
            "own",
            "all=17",
            "all=default/web-3",
            "nothing=/sys/fs/cgroup/a=b",
        ] {
            let choice: DisclosureChoice = text.parse().expect("a choice");
            assert_eq!(choice.to_string(), text);
        }
        for wrong in ["", "everything", "all=", "=17"] {
            assert!(wrong.parse::<DisclosureChoice>().is_err(), "{wrong}");
        }
    }
}
