// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an experiment was not done.

use unspin_lab::LabError;
use unspin_scenario::ScenarioError;

/// Why there is no result. By then the host's own scheduler schedules again and no VM of the experiment is left.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is asked for cannot be: nothing has run.
    #[error("{0}")]
    Usage(String),
    /// The scenario cannot be read, or asks for what cannot be.
    #[error("{}", .0.plain())]
    Scenario(ScenarioError),
    /// The lab does not have what the scenario asks for: nothing has run.
    #[error("{of}: {error}")]
    Lab {
        /// The scenario's file or name, or a word that changes it.
        of: String,
        /// What is wrong.
        error: LabError,
    },
    /// Somebody set the session's interrupt.
    #[error("interrupted")]
    Interrupted,
    /// Anything else: the host, a VM, a file.
    #[error(transparent)]
    Failed(anyhow::Error),
}

impl From<ScenarioError> for Error {
    fn from(error: ScenarioError) -> Error {
        Error::Scenario(error)
    }
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Error {
        Error::Failed(error)
    }
}

#[cfg(feature = "hosts")]
impl From<unspin_vmm::Error> for Error {
    fn from(error: unspin_vmm::Error) -> Error {
        match error {
            unspin_vmm::Error::Interrupted => Error::Interrupted,
            error => Error::Failed(error.into()),
        }
    }
}

#[cfg(feature = "hosts")]
impl From<unspin_linux_guest::Error> for Error {
    fn from(error: unspin_linux_guest::Error) -> Error {
        match error {
            unspin_linux_guest::Error::Interrupted => Error::Interrupted,
            error @ unspin_linux_guest::Error::Range { .. } => Error::Usage(error.to_string()),
            error => Error::Failed(error.into()),
        }
    }
}

#[cfg(feature = "hosts")]
impl From<unspin_lockbench::Error> for Error {
    fn from(error: unspin_lockbench::Error) -> Error {
        match error {
            unspin_lockbench::Error::Interrupted => Error::Interrupted,
            error => Error::Failed(error.into()),
        }
    }
}

impl From<unspin_lab::pool::Interrupted> for Error {
    fn from(_: unspin_lab::pool::Interrupted) -> Error {
        Error::Interrupted
    }
}

impl From<unspin_lab::pool::SimulationError> for Error {
    fn from(error: unspin_lab::pool::SimulationError) -> Error {
        match error {
            unspin_lab::pool::SimulationError::Refused { of, error } => Error::Lab { of, error },
            unspin_lab::pool::SimulationError::Interrupted(_) => Error::Interrupted,
            stuck => Error::Failed(stuck.into()),
        }
    }
}

/// Errors that say all there is to say.
macro_rules! failed {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Error {
            fn from(error: $error) -> Error {
                Error::Failed(error.into())
            }
        }
    )*};
}
failed!(std::io::Error, unspin_recording::Error);
#[cfg(feature = "hosts")]
failed!(
    unspin_agent::Error,
    unspin_agent::SteerError,
    unspin_agent::UserPolicyError,
    unspin_agent::WindowError,
    unspin_agent::record::RecordError,
    unspin_testbed::Error,
);
