// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Rust view of `c/script.h`. Sizes are asserted here as they are there.
#![allow(missing_docs)]

use std::ffi::{c_char, c_void};

/// `struct script_request`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ScriptRequest {
    pub kind: u32,
    pub first: u32,
    pub second: u32,
    pub place: u32,
    pub expected: [u32; 2],
    pub desired: [u32; 2],
}
const _: () = assert!(size_of::<ScriptRequest>() == 32);

/// `struct script_world`, opaque.
#[repr(C)]
#[derive(Debug)]
pub struct ScriptWorld {
    _opaque: [u8; 0],
}

/// `struct script_calls`.
#[repr(C)]
#[derive(Debug)]
pub struct ScriptCalls {
    pub create: unsafe extern "C" fn(u32, u32, u32, u32) -> *mut ScriptWorld,
    pub destroy: unsafe extern "C" fn(*mut ScriptWorld),
    pub reset: unsafe extern "C" fn(*mut ScriptWorld),
    pub start: unsafe extern "C" fn(*mut ScriptWorld, *const *const c_char),
    pub lock_memory: unsafe extern "C" fn(*mut ScriptWorld, *mut u32) -> *mut c_void,
    pub pending: unsafe extern "C" fn(*const ScriptWorld, u32) -> *const ScriptRequest,
    pub choices: unsafe extern "C" fn(*const ScriptWorld, u32) -> u32,
    pub act: unsafe extern "C" fn(*mut ScriptWorld, u32, u32),
    pub save: unsafe extern "C" fn(*const ScriptWorld, *mut c_void, u64) -> u64,
    pub restore: unsafe extern "C" fn(*mut ScriptWorld, *const c_void),
    pub finish: unsafe extern "C" fn(*mut ScriptWorld) -> u32,
    pub waiters_max: u32,
    pub reserved: u32,
}
const _: () = assert!(size_of::<ScriptCalls>() == 96);

unsafe extern "C" {
    /// The locks as they are.
    pub static script_calls: ScriptCalls;
    /// The same with room for two waiters in each queue.
    pub static script_calls_two: ScriptCalls;
}
