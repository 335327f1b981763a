// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vocabulary for what runs: the lab, the testbed, real hosts and threads all take a [`Scenario`].

mod model;

pub use model::{
    Distribution, Host, Length, LockSharing, Policy, Scenario, Scheduler, Shape, Vm, WorkUnit,
};
