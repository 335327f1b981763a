// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the five papers claim, as data, beside what was measured of it.
//!
//! `papers/NAME.toml` has a row for each claim of a paper: its numbers, and for each world (lab, KVM, threads) where the figure
//! beside it comes from, or why there is none ([`claim`], [`source`]). Figures are never in these files: they are read from
//! the rows of `benchmarks/` ([`benchmark`]) or from what `unspin paper --run` measured in the lab ([`lab_rows`], of the [`runs`]).
//! [`heat`] has every remedy under every load, [`plots`] the papers' own figures. [`verdict`] compares the two; [`rows`] and [`kvm_commands`] are what `unspin paper` prints, [`page`] the documents that are made of them, and
//! [`check`] is what `make lint` requires.

pub mod benchmark;
mod cell;
pub mod check;
pub mod claim;
mod code_hash;
mod file;
pub mod heat;
pub mod kvm_commands;
pub mod lab_rows;
pub mod measured;
pub mod page;
pub mod papers;
mod plot_text;
pub mod plots;
pub mod rows;
pub mod runs;
pub mod source;
mod table_text;
pub mod tables;
pub mod verdict;

pub use claim::{Claim, Class, Expected, Figure, Unit};
pub use code_hash::FOLDERS as CODE_FOLDERS;
pub use measured::Measured;
pub use papers::Papers;
pub use source::{Source, World};
pub use verdict::Verdict;
