// SPDX-License-Identifier: MIT OR Apache-2.0
//! The models of host schedulers, each tested alone.

mod credit;
mod debooster;
mod driver;
mod fair;
mod protocol;
mod siblings;
