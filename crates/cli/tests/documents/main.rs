// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is written of the commands: the pages of docs/ and what the binary says of itself.

mod book;
mod command_lines;
#[path = "../common/mod.rs"]
mod common;
mod reference_pages;
