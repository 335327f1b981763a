// SPDX-License-Identifier: MIT OR Apache-2.0
//! VMs as users name them on the command line, and as they are named in a line of text.

use std::{path::Path, str::FromStr};

use unspin_events::facts::Facts;

use crate::{
    choice::{Candidate, NoSuchVm, choose, process_of},
    process::{Look, look},
};

/// A VM's name (of KubeVirt `namespace/name`, too), UUID, id at its manager, or process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmName(String);

/// No VM of a recording, or no single one, is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the recording: {0}")]
pub struct NotInRecording(NoSuchVm);

impl VmName {
    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The process of the running VM that is meant.
    ///
    /// # Errors
    /// When none is, or several may be: with those that are near.
    pub fn process(&self) -> Result<u32, NoSuchVm> {
        process_of(Path::new("/proc"), &self.0)
    }

    /// The number of the VM of a recording that is meant; a number that nothing is called by is itself.
    ///
    /// # Errors
    /// As above.
    pub fn number_in(&self, facts: &Facts) -> Result<u32, NotInRecording> {
        let candidates: Vec<Candidate> = facts
            .vms
            .iter()
            .map(|vm| Candidate {
                process: vm.process,
                identity: &vm.identity,
                called: facts.vm_name(vm.vm),
            })
            .collect();
        match (choose(&self.0, &candidates), self.0.parse()) {
            (Ok(place), _) => Ok(facts.vms[place].vm),
            (Err(NoSuchVm::Unknown { .. }), Ok(number)) => Ok(number),
            (Err(error), _) => Err(NotInRecording(error)),
        }
    }
}

impl FromStr for VmName {
    type Err = String;

    fn from_str(text: &str) -> Result<VmName, String> {
        match text.is_empty() {
            true => Err("a VM's name, UUID or process".to_owned()),
            false => Ok(VmName(text.to_owned())),
        }
    }
}

/// `VM web-3 (process 110)`; `VM process 110` where its manager has no name for it, or the process has ended.
pub fn in_words(process: u32) -> String {
    let named = match look(Path::new("/proc"), process) {
        Look::Found(vm) => vm.identity.called(),
        Look::Hidden | Look::Ended => None,
    };
    match named {
        Some(name) => format!("VM {name} (process {process})"),
        None => format!("VM process {process}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_meant_by_its_number() {
        let own = std::process::id();
        let name: VmName = own.to_string().parse().expect("a name");
        assert!(matches!(name.process(), Ok(process) if process == own));
        assert_eq!(in_words(own), format!("VM process {own}"));
        assert!("".parse::<VmName>().is_err());
    }

    #[test]
    fn a_recording_s_vms_are_meant_by_name_or_number() {
        let old = r#"{"vms":[{"vm":3,"process":100,"name":"web"},{"vm":4,"process":101}]}"#;
        let facts: Facts = serde_json::from_str(old).expect("facts");
        let number = |text: &str| {
            let name: VmName = text.parse().expect("a name");
            name.number_in(&facts).ok()
        };
        assert_eq!(
            [number("web"), number("100"), number("vm4"), number("101")],
            [Some(3), Some(3), Some(4), Some(4)]
        );
        assert_eq!((number("4"), number("wbe")), (Some(4), None));
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        let name: VmName = "no such VM".parse().expect("a name");
        let says = name.process().expect_err("there is none").to_string();
        assert!(says.starts_with("there is no VM `no such VM`"), "{says}");
    }
}
