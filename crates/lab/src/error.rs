// SPDX-License-Identifier: MIT OR Apache-2.0
//! What can be wrong with a scenario for the lab.

use serde::de::value::Error as WordError;
use unspin_policy::user_policy::UserPolicySourceError;

use crate::{BuildError, scheduler::names::NameError};

/// Why a scenario cannot run in the lab. Nothing has run yet.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// No such scheduler, or not with that option.
    #[error("lab.scheduler: {0}")]
    Scheduler(#[from] NameError),
    /// No such word.
    #[error("{key}: there is no `{given}`; there are {known}")]
    Word {
        /// Key of the scenario.
        key: &'static str,
        /// What was asked for.
        given: String,
        /// What there is.
        known: String,
    },
    /// Another scheduler asks nobody.
    #[error(
        "lab.policy: `{policy}` steers the scheduler \"steer\" only, and {scheduler} asks nobody; set lab.scheduler = \"steer\""
    )]
    Policy {
        /// What was to steer.
        policy: String,
        /// What was to be steered.
        scheduler: String,
    },
    /// Two would decide.
    #[error(
        "lab.ecs: not under the scheduler \"steer\", whose policies decide; take one of lab.policy"
    )]
    Ecs,
    /// A VM's vCPUs have their pCPUs together, or not at all.
    #[error("lab.{key}: not under the scheduler \"gang\", {because}; take another scheduler")]
    Gang {
        /// Key of the scenario.
        key: &'static str,
        /// Why not.
        because: &'static str,
    },
    /// A policy of the user's own does not work.
    #[error("lab.policy: {0}")]
    Own(#[from] UserPolicySourceError),
    /// No such steering policy.
    #[error("lab.policy: {0}")]
    Steering(String),
    /// No such cost.
    #[error("lab.costs: {0}")]
    Costs(WordError),
    /// A cost with which time would stand still.
    #[error("lab.costs: {name} cannot be {value}; {allowed}")]
    Cost {
        /// Its name.
        name: &'static str,
        /// What it was to be.
        value: u32,
        /// What it may be.
        allowed: &'static str,
    },
    /// A pCPU that the host does not have.
    #[error("lab.pins: there is no pCPU {cpu}; the host has {cpus}, from 0 on")]
    Pin {
        /// Which.
        cpu: u32,
        /// How many there are.
        cpus: u32,
    },
    /// Too many pCPUs, or none.
    #[error(
        "lab.topology: no host of {cpus} pCPUs; 1 to {}",
        crate::topology::CPUS_MAX
    )]
    Topology {
        /// How many were asked for.
        cpus: u32,
    },
    /// Too large for the engine, or for memory.
    #[error(transparent)]
    Build(#[from] BuildError),
}
