// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's side: tasks as coroutines, and the memory that they share.

pub(crate) mod memory;
pub(crate) mod port;

#[allow(
    non_upper_case_globals,
    non_camel_case_types,
    missing_docs,
    dead_code,
    clippy::undocumented_unsafe_blocks,
    unsafe_op_in_unsafe_fn
)]
pub(crate) mod raw {
    include!(concat!(env!("OUT_DIR"), "/lab.rs"));
}
