// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer`: our scheduler in place of the host's.

pub(crate) mod args;
pub(crate) mod dry;
pub(crate) mod run;
pub(crate) mod wait;
pub(crate) mod windows;

use std::{fmt::Display, ops::Range, os::unix::fs::MetadataExt, path::Path};

use args::SteerArguments;
use unspin_agent::{
    ChosenPolicies, DisclosureChoice, Disclosures, SECTIONS_MAX, SteerOptions, Whom,
};
use unspin_policy::critical_function;

use crate::{commands::outcomes::run::read_symbols, terminal::failure::Failure};

pub use run::run;

/// How to steer, or to try it.
///
/// # Errors
/// When a cgroup is none.
pub fn options(
    arguments: &SteerArguments,
    chosen: &ChosenPolicies,
) -> Result<SteerOptions, Failure> {
    let cgroups = arguments.cgroups.iter().map(|folder| inode(folder));
    Ok(SteerOptions {
        policies: chosen.policies,
        candidates: false,
        user_policy: chosen.user_policy.clone(),
        slice_ns: None,
        processes: arguments.vms.clone(),
        cgroups: cgroups.collect::<Result<_, _>>()?,
        disclosures: disclosures(&arguments.disclose)?,
        sections: arguments
            .sections
            .as_deref()
            .map_or(Ok(Vec::new()), sections)?,
        decision_log_bytes: match arguments.log_decisions {
            Some(_) => LOG_BYTES,
            None => 0,
        },
        ..SteerOptions::default()
    })
}

/// Room for some 80,000 decisions between two looks.
const LOG_BYTES: u32 = 16 << 20;

/// What `--disclose` says; of two for the same, the later.
fn disclosures(choices: &[DisclosureChoice]) -> Result<Disclosures, Failure> {
    let mut disclosures = Disclosures::default();
    for choice in choices {
        match &choice.whom {
            Whom::Everyone => disclosures.everyone = choice.level,
            Whom::Process(process) => disclosures.processes.push((*process, choice.level)),
            Whom::Cgroup(folder) => disclosures.cgroups.push((inode(folder)?, choice.level)),
        }
    }
    Ok(disclosures)
}

/// The pieces of the guests' kernel that only run inside critical sections.
fn sections(file: &Path) -> Result<Vec<Range<u64>>, Failure> {
    let wrong = |error: &dyn Display| Failure::Usage(format!("{}: {error}", file.display()));
    let symbols = read_symbols(file)?;
    let pieces = symbols.pieces(|name| critical_function(name).is_some());
    match pieces.len() {
        0 => Err(wrong(
            &"no function in it is one that only runs inside critical sections; is it a Linux kernel's?",
        )),
        1..=SECTIONS_MAX => Ok(pieces),
        many => Err(wrong(&format!(
            "{many} such functions, {SECTIONS_MAX} are the most"
        ))),
    }
}

/// The number that the kernel knows a cgroup by.
fn inode(folder: &Path) -> Result<u64, Failure> {
    let metadata = folder
        .join("cgroup.procs")
        .metadata()
        .and_then(|_| folder.metadata());
    let metadata = metadata
        .map_err(|error| Failure::Usage(format!("{}: no cgroup: {error}", folder.display())))?;
    Ok(metadata.ino())
}
