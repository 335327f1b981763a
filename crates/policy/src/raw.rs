// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generated bindings of `crates/policy/native/bound.h`: types and functions of `policy/`, documented in its headers.
#![allow(non_upper_case_globals, non_camel_case_types, missing_docs)]
#![allow(dead_code, clippy::all)]
// bindgen writes no safety comments.
#![allow(clippy::undocumented_unsafe_blocks)]

include!(concat!(env!("OUT_DIR"), "/policy.rs"));
