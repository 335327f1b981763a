// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why nothing was tried, or not until the end.

use std::io;

use unspin_agent::{Error as AgentError, SteerError};

/// By then the kernel's own scheduler schedules.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is asked for cannot be: nothing has run.
    #[error("{0}")]
    Usage(String),
    /// Our scheduler cannot be had.
    #[error(transparent)]
    Steer(#[from] SteerError),
    /// VMs cannot be seen.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// There is nothing to try it on.
    #[error(
        "no VM has run on this host for {0:.0} s: there is nothing to try a policy on; start VMs with their usual load first"
    )]
    NoVms(f64),
    /// Under the kernel's own scheduler the probe is no measure.
    #[error("--probe under the kernel's own scheduler: {0}; nothing was tried")]
    Probe(String),
    /// A thread.
    #[error("a thread for the canary: {0}")]
    Thread(#[from] io::Error),
}
