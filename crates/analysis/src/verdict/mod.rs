// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with each VM of a recording, in plain words: whether it lost CPU time to preempted lock holders, waited for
//! CPUs, slept for I/O, was stopped, or whether that cannot be seen; since when, and who ran instead.

pub mod decide;
pub mod figures;
pub mod rows;
pub mod series;
pub mod states;
pub mod study;
mod wakers;
pub mod words;
