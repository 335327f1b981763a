// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recording: a folder of Parquet segments, a `recording.json` and a list of hashes beside them.
//!
//! [`Recording`] writes one, [`Recorded`] reads it. A segment holds a second of events; it appears under its name when it
//! is whole, so whatever ends a recording (kill -9, a full disk) costs its last second at most. A reader checks
//! everything: what is damaged or missing is left out and said, never guessed.

mod cut;
mod error;
mod events;
mod guests;
pub mod hashes;
mod manifest;
mod merge;
mod names;
mod pages;
mod pending;
mod reader;
pub mod ring;
mod schema;
mod segment_read;
mod segment_write;
mod writer;

pub use error::Error;
pub use events::Events;
pub use guests::{GuestStatistics, GuestVm};
pub use manifest::{Ended, Manifest};
pub use reader::Recorded;
pub use schema::{SCHEMA_VERSION, SEGMENT_ROWS_MAX};
pub use unspin_events::facts;
pub use writer::{Options, Recording, Summary};
