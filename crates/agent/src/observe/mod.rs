// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching a host: the programs while they run, what they said and what was lost.

pub(crate) mod cost;
pub(crate) mod guest_features;
pub(crate) mod health;
pub(crate) mod host_facts;
pub(crate) mod ipi_visibility;
pub(crate) mod names;
pub(crate) mod observer;
pub(crate) mod options;
pub(crate) mod programs;
pub(crate) mod recorder;
pub mod synthetic;
pub(crate) mod threads;
