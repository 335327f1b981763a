// SPDX-License-Identifier: MIT OR Apache-2.0
//! How a command fails: what is printed, and with which exit status.

use std::{io::IsTerminal, process::ExitCode};

use unspin_scenario::ScenarioError;

/// Why a command did not do its work.
#[derive(Debug)]
pub enum Failure {
    /// The command line asks for something that cannot be.
    Usage(String),
    /// The scenario, or the configuration, does.
    Scenario(ScenarioError),
    /// The user stopped it.
    Interrupted,
    /// It must not be done before somebody has looked at what happened: why, and what to do.
    Latched(String),
    /// Anything else.
    Failed(anyhow::Error),
}

impl Failure {
    /// What is wrong, in a line or a few.
    pub fn in_words(&self) -> String {
        match self {
            Failure::Usage(message) | Failure::Latched(message) => message.clone(),
            Failure::Scenario(error) => error.plain(),
            Failure::Interrupted => "interrupted".to_owned(),
            Failure::Failed(error) => format!("{error:#}"),
        }
    }

    /// Prints the failure on standard error and gives the exit status: 2 for wrong input, 4 for a latch, 130 for Ctrl-C, else 1.
    pub fn report(self) -> ExitCode {
        match self {
            Failure::Usage(message) => {
                eprintln!("unspin: {message}");
                ExitCode::from(2)
            }
            Failure::Scenario(error) => {
                // People see the line that is wrong; a file or a pipe gets one line.
                if std::io::stderr().is_terminal() {
                    eprintln!("{:?}", miette::Report::new(error));
                } else {
                    eprintln!("unspin: {}", error.plain());
                }
                ExitCode::from(2)
            }
            Failure::Latched(message) => {
                eprintln!("unspin: {message}");
                ExitCode::from(LATCHED)
            }
            Failure::Interrupted => {
                eprintln!("unspin: interrupted");
                ExitCode::from(130)
            }
            Failure::Failed(error) if is_broken_pipe(&error) => ExitCode::from(BROKEN_PIPE),
            Failure::Failed(error) => {
                eprintln!("unspin: {error:#}");
                ExitCode::FAILURE
            }
        }
    }
}

/// Ends this process after Ctrl-C, where others that it started die with it.
pub fn abort() -> ! {
    Failure::Interrupted.report();
    std::process::exit(130)
}

/// `unspin steer --service` stays off.
const LATCHED: u8 = 4;

/// What a shell says of a program that SIGPIPE ended.
const BROKEN_PIPE: u8 = 141;

/// Whoever read standard output has had enough, as `head` has: no failure worth a word.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<std::io::Error>();
    io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Failure {
        Failure::Scenario(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Failed(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::Failed(error.into())
    }
}

/// Errors that say all there is to say.
macro_rules! failed {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::Failed(error.into())
            }
        }
    )*};
}
failed!(
    unspin_agent::UserPolicyError,
    unspin_agent::record::RecordError,
    unspin_policy::steering::DecisionFileError,
    unspin_recording::Error,
    unspin_preload::Error,
    unspin_watch::socket::SocketError,
);

impl From<unspin_experiment::Error> for Failure {
    fn from(error: unspin_experiment::Error) -> Failure {
        match error {
            unspin_experiment::Error::Usage(text) => Failure::Usage(text),
            unspin_experiment::Error::Scenario(error) => Failure::Scenario(error),
            error @ unspin_experiment::Error::Lab { .. } => Failure::Usage(error.to_string()),
            unspin_experiment::Error::Interrupted => Failure::Interrupted,
            unspin_experiment::Error::Failed(error) => Failure::Failed(error),
        }
    }
}

/// Errors that say what of the command line cannot be.
macro_rules! wrong {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::Usage(error.to_string())
            }
        }
    )*};
}
wrong!(
    unspin_agent::service::NoNewFile,
    unspin_vms::NoSuchVm,
    unspin_vms::NotInRecording,
);

impl From<unspin_agent::service::LatchError> for Failure {
    fn from(error: unspin_agent::service::LatchError) -> Failure {
        match error {
            unspin_agent::service::LatchError::Latched(says) => Failure::Latched(says),
            error => Failure::Failed(error.into()),
        }
    }
}

impl From<unspin_vmm::Error> for Failure {
    fn from(error: unspin_vmm::Error) -> Failure {
        match error {
            unspin_vmm::Error::Interrupted => Failure::Interrupted,
            error => Failure::Failed(error.into()),
        }
    }
}

impl From<unspin_analysis::SourceError> for Failure {
    fn from(error: unspin_analysis::SourceError) -> Failure {
        match error {
            unspin_analysis::SourceError::Usage(text) => Failure::Usage(text),
            error => Failure::Failed(error.into()),
        }
    }
}

impl From<unspin_agent::steer::SteerRunError> for Failure {
    fn from(error: unspin_agent::steer::SteerRunError) -> Failure {
        match error {
            unspin_agent::steer::SteerRunError::Io(error) => error.into(),
            error => Failure::Failed(error.into()),
        }
    }
}

impl From<unspin_linux_guest::Error> for Failure {
    fn from(error: unspin_linux_guest::Error) -> Failure {
        match error {
            unspin_linux_guest::Error::Interrupted => Failure::Interrupted,
            error @ unspin_linux_guest::Error::Range { .. } => Failure::Usage(error.to_string()),
            error => Failure::Failed(error.into()),
        }
    }
}

impl From<unspin_lab::pool::Interrupted> for Failure {
    fn from(_: unspin_lab::pool::Interrupted) -> Failure {
        Failure::Interrupted
    }
}

impl From<unspin_lab::pool::SimulationError> for Failure {
    fn from(error: unspin_lab::pool::SimulationError) -> Failure {
        match error {
            refused @ unspin_lab::pool::SimulationError::Refused { .. } => {
                Failure::Usage(refused.to_string())
            }
            unspin_lab::pool::SimulationError::Interrupted(_) => Failure::Interrupted,
            stuck => Failure::Failed(stuck.into()),
        }
    }
}

impl From<unspin_lockbench::Error> for Failure {
    fn from(error: unspin_lockbench::Error) -> Failure {
        match error {
            unspin_lockbench::Error::Interrupted => Failure::Interrupted,
            error => Failure::Failed(error.into()),
        }
    }
}
