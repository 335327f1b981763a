// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `locks/` in a scripted world of at most eight threads, in which the caller chooses every memory access
//! ([`script`]), and explores every interleaving and every order of store buffers ([`explore`]).

pub mod explore;
mod ffi;
mod findings;
mod graph;
mod monitor;
mod request;
mod schedule;
pub mod script;
