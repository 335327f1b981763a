// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays a decision log on this machine.

use std::path::{Path, PathBuf};

use super::{DecisionFileError, DecisionRecord, read_decisions};
use crate::user_policy::{UserPolicySource, UserPolicySourceError};

/// The result of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Decisions in the log.
    pub decisions: usize,
    /// Decisions that differ.
    pub different: usize,
    /// The first that differs.
    pub first: Option<DecisionRecord>,
}

/// Why a log cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error(transparent)]
    File(#[from] DecisionFileError),
    /// The user policy cannot be compiled or run.
    #[error(transparent)]
    Source(#[from] UserPolicySourceError),
    /// The log contains decisions of a user policy, and none was given.
    #[error(
        "{}: a user policy was called: add --with ./NAME.c, the file that it was compiled from", .0.display()
    )]
    Asked(PathBuf),
}

/// Replays the decisions of a log; `with` is the C file of the user policy that was called, if one was.
///
/// # Errors
/// When the log cannot be read, or the user policy is missing, not given, or does not compile.
pub fn replay_file(log: &Path, with: Option<&Path>) -> Result<Replayed, ReplayError> {
    let records = read_decisions(log)?;
    let same: Vec<bool> = match with {
        Some(source) => UserPolicySource::at(source)?.replay(&records)?,
        None if records.iter().any(DecisionRecord::asked_own) => {
            return Err(ReplayError::Asked(log.to_owned()));
        }
        None => records.iter().map(DecisionRecord::replays).collect(),
    };
    let different = same.iter().filter(|same| !**same).count();
    let first = same.iter().position(|same| !same);
    Ok(Replayed {
        decisions: records.len(),
        different,
        first: first.map(|first| records[first]),
    })
}
