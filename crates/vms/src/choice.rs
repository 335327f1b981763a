// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which VM a user means: by name, UUID, id or process.

use std::path::Path;

use unspin_events::vm_identity::{NAME_LENGTH_MAX, VmIdentity, printable};

use crate::{
    process::{Look, look},
    running::{Running, running},
};

/// VMs that are listed in an error.
const LISTED_MAX: usize = 5;
/// Names that differ by more than so much of their length are not near (Jaro and Winkler's similarity, 0 to 1).
const NEAR: f64 = 0.75;

/// One that may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate<'a> {
    /// Its process, if it is known.
    pub process: Option<u32>,
    /// Who it is.
    pub identity: &'a VmIdentity,
    /// What tables call it.
    pub called: String,
}

/// No VM, or no single one, is meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSuchVm {
    /// None has that name, UUID, id or process.
    #[error("there is no VM `{asked}`{near}")]
    Unknown {
        /// What was asked for, printable.
        asked: String,
        /// Those with near names, or that there are none.
        near: String,
    },
    /// Several have it.
    #[error("`{asked}` may be {count} VMs: {which}; say the process or the UUID")]
    Ambiguous {
        /// What was asked for, printable.
        asked: String,
        /// How many have it.
        count: usize,
        /// They.
        which: String,
    },
}

/// The place of the candidate that `asked` means: its process's number, its name (of KubeVirt `namespace/name` or the name alone),
/// what tables call it, its UUID, or its id.
///
/// # Errors
/// When it means none of them or several.
pub fn choose(asked: &str, candidates: &[Candidate]) -> Result<usize, NoSuchVm> {
    let fits = |candidate: &&(usize, &Candidate)| is_called(candidate.1, asked);
    let all: Vec<(usize, &Candidate)> = candidates.iter().enumerate().collect();
    let fitting: Vec<_> = all.iter().filter(fits).collect();
    let shown = printable(asked, NAME_LENGTH_MAX);
    match fitting.as_slice() {
        [(place, _)] => Ok(*place),
        [] => Err(NoSuchVm::Unknown {
            near: near(asked, candidates),
            asked: shown,
        }),
        several => Err(NoSuchVm::Ambiguous {
            asked: shown,
            count: several.len(),
            which: list(several.iter().map(|(_, candidate)| *candidate)),
        }),
    }
}

/// The process of the running VM that `asked` means, below `proc` (/proc). A number that is no VM's process, name or id means
/// the process of that number, which may become one.
///
/// # Errors
/// When it means none or several, also for want of the right to look.
pub fn process_of(proc: &Path, asked: &str) -> Result<u32, NoSuchVm> {
    let found = running(proc);
    let candidates: Vec<Candidate> = found
        .vms
        .iter()
        .map(|vm| Candidate {
            process: Some(vm.process),
            identity: &vm.identity,
            called: vm.called(),
        })
        .collect();
    match (choose(asked, &candidates), asked.parse::<u32>()) {
        (Ok(place), _) => Ok(found.vms[place].process),
        (Err(NoSuchVm::Unknown { .. }), Ok(process)) if look(proc, process) != Look::Ended => {
            Ok(process)
        }
        (Err(error), _) => Err(with_hidden(error, &found)),
    }
}

/// What is not seen may be what was meant.
fn with_hidden(error: NoSuchVm, found: &Running) -> NoSuchVm {
    match error {
        NoSuchVm::Unknown { asked, near } if found.hidden > 0 => NoSuchVm::Unknown {
            asked,
            near: format!(
                "{near}; {} processes may not be looked at from here (run as root; /proc without hidepid)",
                found.hidden
            ),
        },
        error => error,
    }
}

fn is_called(candidate: &Candidate, asked: &str) -> bool {
    let identity = candidate.identity;
    let is = |text: &Option<String>| text.as_deref() == Some(asked);
    candidate
        .process
        .is_some_and(|process| process.to_string() == asked)
        || candidate.called == asked
        || is(&identity.name)
        || is(&identity.called())
        || is(&identity.id)
        || identity
            .uuid
            .as_deref()
            .is_some_and(|uuid| uuid.eq_ignore_ascii_case(asked))
}

/// `; near: web-3 (process 1234)`.
fn near(asked: &str, candidates: &[Candidate]) -> String {
    if candidates.is_empty() {
        return "; there are no VMs".to_owned();
    }
    let likeness = |candidate: &Candidate| {
        let alike = |text: &str| strsim::jaro_winkler(&text.to_lowercase(), &asked.to_lowercase());
        let name = candidate.identity.name.as_deref().map_or(0.0, alike);
        let uuid = candidate.identity.uuid.as_deref();
        // The beginning of a UUID is how people know one.
        let begins =
            uuid.is_some_and(|uuid| asked.len() >= 4 && uuid.starts_with(&asked.to_lowercase()));
        if begins {
            1.0
        } else {
            name.max(alike(&candidate.called))
        }
    };
    let mut near: Vec<(f64, &Candidate)> = candidates
        .iter()
        .map(|candidate| (likeness(candidate), candidate))
        .filter(|(likeness, _)| *likeness >= NEAR)
        .collect();
    near.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    match near.is_empty() {
        true => format!("; there are: {}", list(candidates.iter())),
        false => format!(
            "; near: {}",
            list(near.into_iter().map(|(_, candidate)| candidate))
        ),
    }
}

fn list<'a>(candidates: impl Iterator<Item = &'a Candidate<'a>>) -> String {
    let all: Vec<String> = candidates
        .map(|candidate| match candidate.process {
            Some(process) if !candidate.called.ends_with(&format!("({process})")) => {
                format!("{} (process {process})", candidate.called)
            }
            _ => candidate.called.clone(),
        })
        .collect();
    let more = all.len().saturating_sub(LISTED_MAX);
    let mut text = all[..all.len() - more].join(", ");
    if more > 0 {
        text += &format!(" and {more} more");
    }
    text
}
