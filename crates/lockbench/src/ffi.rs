// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Rust view of `c/driver.h`. Sizes are asserted here as they are there.
#![allow(missing_docs)]

use std::ffi::{c_char, c_void};

use unspin_abi::{unspin_distribution, unspin_guest_statistics, unspin_thread_run_state};

pub const DRIVER_WARM_UP: u32 = 0;
pub const DRIVER_MEASURE: u32 = 1;
pub const DRIVER_STOP: u32 = 2;

/// `struct driver_run`.
#[repr(C)]
pub struct DriverRun {
    pub user_work: *const unspin_distribution,
    pub kernel_work: *const unspin_distribution,
    pub hold: *const unspin_distribution,
    pub slots: *mut c_void,
    pub phase: *const u32,
    pub seed: u64,
    pub locks: u32,
    pub iterations: u32,
    pub pause_every_spins: u32,
    pub stall_spins: u32,
    pub table: *mut PlatformTable,
    pub reserved: u64,
}
const _: () = assert!(size_of::<DriverRun>() == 80);

/// `struct platform_table`, opaque.
#[repr(C)]
#[derive(Debug)]
pub struct PlatformTable {
    _opaque: [u8; 0],
}

/// Buckets of [`DriverOutcome::acquire_count`].
pub const DRIVER_ACQUIRE_BUCKETS: usize = 496;
/// `PLATFORM_WAITERS_MAX` of threads.
pub const WAITERS_MAX: u32 = 64;
/// `enum platform_run_states`.
pub const RUN_STATES_NONE: u32 = 0;
pub const RUN_STATES_RSEQ: u32 = 1;
pub const RUN_STATES_PAGE: u32 = 2;
/// `DRIVER_ECS_ROWS`.
pub const ECS_ROWS: u32 = 7;
/// `BASELINE_COUNT`.
pub const BASELINE_COUNT: usize = 6;

/// `struct driver_outcome`.
#[repr(C)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverOutcome {
    pub entries: u64,
    pub violations: u64,
    pub cpu_ns: u64,
    pub longest_cycles: u64,
    pub parks: u64,
    pub acquire_count: [u64; DRIVER_ACQUIRE_BUCKETS],
}
const _: () = assert!(size_of::<DriverOutcome>() == 40 + 8 * DRIVER_ACQUIRE_BUCKETS);

impl Default for DriverOutcome {
    fn default() -> Self {
        DriverOutcome {
            entries: 0,
            violations: 0,
            cpu_ns: 0,
            longest_cycles: 0,
            parks: 0,
            acquire_count: [0; DRIVER_ACQUIRE_BUCKETS],
        }
    }
}

/// `struct driver_validation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverValidation {
    pub locked: u64,
    pub try_locked: u64,
    pub try_refused: u64,
    pub violations: u64,
}
const _: () = assert!(size_of::<DriverValidation>() == 32);

/// `struct driver`.
#[repr(C)]
#[derive(Debug)]
pub struct Driver {
    pub name: *const c_char,
    pub slot_bytes: u64,
    pub slot_alignment: u64,
    pub prepare: unsafe extern "C" fn(*mut c_void, u32),
    pub entries: unsafe extern "C" fn(*const c_void, u32) -> u64,
    pub still_locked: unsafe extern "C" fn(*const c_void, u32) -> u64,
    pub iterations: unsafe extern "C" fn(
        *const DriverRun,
        u32,
        *mut unspin_guest_statistics,
        *mut DriverOutcome,
    ),
    pub validate: unsafe extern "C" fn(*const DriverRun, u32, *mut DriverValidation),
    pub latency: unsafe extern "C" fn(*mut c_void, u32) -> u64,
}
// SAFETY: the tables are constant, and `name` points to a string literal.
unsafe impl Sync for Driver {}

unsafe extern "C" {
    pub static driver_table: [&'static Driver; unspin_abi::UNSPIN_LOCK_KIND_COUNT as usize];
    pub static baseline_table: [Option<&'static Driver>; BASELINE_COUNT];
    pub static baseline_names: [*const c_char; BASELINE_COUNT];
    pub fn driver_table_new() -> *mut PlatformTable;
    pub fn driver_table_free(table: *mut PlatformTable);
    pub fn driver_table_run_states(
        table: *mut PlatformTable,
        run_states: u32,
        page: *const unspin_thread_run_state,
    );
    pub fn driver_table_wants_slice(table: *mut PlatformTable);
    pub fn driver_probe_rseq() -> u32;
    pub fn driver_ecs_name(row: u32) -> *const c_char;
    pub fn driver_ecs_new(row: u32) -> *mut c_void;
    pub fn driver_ecs_free(object: *mut c_void);
    pub fn driver_ecs_cycles(row: u32, object: *mut c_void, annotated: u32, pairs: u32) -> u64;
    pub fn driver_ecs_left_over() -> u32;
    pub fn driver_take_page(page: *mut unspin_abi::unspin_pv_page, number: u32) -> bool;
    pub fn driver_join(table: *mut PlatformTable, number: u32);
    pub fn driver_leave();
    pub fn driver_tsc() -> u64;
    pub fn driver_time_work(loops: u32) -> u64;
    pub static driver_tau_spins: u32;
    pub fn driver_time_wait(spins: u32, pause_every_spins: u32) -> u64;
}
