// SPDX-License-Identifier: MIT OR Apache-2.0
//! One room for each command: what it takes, what it runs, what it prints.

pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod ground_truth;
pub(crate) mod help;
pub(crate) mod lab;
pub(crate) mod outcomes;
pub(crate) mod policy;
pub(crate) mod record;
pub(crate) mod scenario;
pub(crate) mod steer;
pub(crate) mod testbed;
pub(crate) mod threshold;
pub(crate) mod vm;
