// SPDX-License-Identifier: MIT OR Apache-2.0
//! Critical sections of guests that are not annotated: `policy/steering/counts.h`, `policy/classify/critical_functions.h`.

use std::ffi::CString;

use crate::{classify::ecs_class::EcsClass, raw};

/// The bit of a preempt count that is no part of it.
pub const PREEMPT_NEED_RESCHED: u32 = raw::UNSPIN_PREEMPT_NEED_RESCHED;

/// What was read of one CPU's kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountsSeen {
    /// `__preempt_count`.
    pub preempt_count: u32,
    /// Its idle task runs.
    pub idle: bool,
    /// `rcu_read_lock_nesting` of the task that runs.
    pub rcu_nesting: i32,
    /// Mutexes and reader-writer semaphores that it asks for or holds.
    pub sleeping: u32,
}

impl CountsSeen {
    /// Kinds of critical sections that it is in; 0: none.
    pub fn critical(self) -> u32 {
        let seen = raw::unspin_counts_seen {
            preempt_count: self.preempt_count,
            task_flags: if self.idle { raw::UNSPIN_PF_IDLE } else { 0 },
            rcu_nesting: self.rcu_nesting as u32,
            sleeping: self.sleeping,
        };
        // SAFETY: a live struct, used for the length of the call only.
        unsafe { raw::unspin_counts_critical(&seen) }
    }
}

/// The class of critical section that a Linux kernel is in while it executes that function; `None`: it says nothing.
pub fn critical_function(symbol: &str) -> Option<EcsClass> {
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: a C string, used for the length of the call only.
    EcsClass::of(unsafe { raw::unspin_critical_function(symbol.as_ptr()) })
}
