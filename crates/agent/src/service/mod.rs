// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin steer` leaves behind where it does not end in order: a latch, where it is a service, and what the kernel says.

mod failure_file;
mod latch;
mod taken_back;

pub use failure_file::{FailureFile, NoNewFile, NotKept};
pub use latch::{Latch, LatchError, clear};
pub use taken_back::{EndRow, keep_end};
