// SPDX-License-Identifier: MIT OR Apache-2.0
//! How numbers leave the program: tables for people, one JSON object for programs, and the statistics behind them.

mod cell;
mod document;
mod gap;
mod machine;
mod paired;
mod row;
mod student;
mod table;

pub use cell::{Unit, rate};
pub use document::{Document, FORMAT_VERSION};
pub use gap::{Cell as PooledCell, GapClosed, Harm, pooled};
pub use machine::Machine;
pub use paired::{Comparison, Interval, Summary, Verdict, collapsed_share};
pub use row::{Column, RegisteredRow, Row, registered_rows};
pub use student::student_t_975;
pub use table::Table;

#[doc(hidden)]
pub use {
    inventory,
    row::{joined, joined_len, schema},
};

/// The commit this binary was built from: 12 digits, `-dirty` behind them when tracked files differed; "unknown"
/// when it was built outside git.
pub const COMMIT: &str = env!("UNSPIN_COMMIT");
