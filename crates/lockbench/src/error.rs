// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can go wrong when locks are run between threads.

use std::io;

/// Why a run of threads did not happen, or cannot be believed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The scenario asks for what threads do not have.
    #[error("{0}")]
    Unsupported(&'static str),
    /// A group of no threads or of too many.
    #[error("a group has 1 to {0} threads")]
    Threads(u32),
    /// The scenario's CPUs are not there.
    #[error("the scenario wants {wanted} CPUs (host.cpus), this process may use {there}")]
    Cpus {
        /// `host.cpus`.
        wanted: u32,
        /// CPUs in this process's affinity mask.
        there: usize,
    },
    /// The system refused an affinity mask.
    #[error("the CPUs of a thread cannot be read or set: {0}")]
    Affinity(#[source] io::Error),
    /// The system refused a thread.
    #[error("a thread cannot be made: {0}; use fewer threads or raise the limit (ulimit -u)")]
    Spawn(#[source] io::Error),
    /// The host's scheduler does not hear of a thread's critical sections.
    #[error("the scheduler gives no page to a thread (is `unspin steer` running?): {0}")]
    Grants(#[source] std::io::Error),
    /// The program that writes run_states cannot be told of a thread.
    #[error("the run_states' program does not take a thread: {0}")]
    RunStates(#[source] io::Error),
    /// The lock does not exclude. The run's figures mean nothing.
    #[error(
        "{lock} is broken: {violations} times two threads were inside, {lost} entries were lost, \
         {still_locked} locks stayed locked"
    )]
    Exclusion {
        /// The lock.
        lock: &'static str,
        /// Times that a thread met another inside.
        violations: u64,
        /// Entries counted by the threads and not inside the locks, or the other way round.
        lost: u64,
        /// Locks that nobody holds and that say they are locked.
        still_locked: u64,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}
