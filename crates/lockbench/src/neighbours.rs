// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads beside those that are measured, which only use CPU time.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{Builder, Scope},
};

use crate::{affinity::Cpus, error::Error, ffi};

/// Iterations of the work loop between two looks at the flag: some tens of microseconds.
const LOOPS: u32 = 50_000;

/// They run until this is dropped.
pub struct Burning(Arc<AtomicBool>);

impl Burning {
    /// Starts so many, on any of those CPUs.
    ///
    /// # Errors
    /// When the system refuses a thread; none runs then.
    pub fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        count: u32,
        cpus: &'scope Cpus,
    ) -> Result<Burning, Error> {
        let burning = Burning(Arc::new(AtomicBool::new(true)));
        for number in 0..count {
            let go_on = Arc::clone(&burning.0);
            let body = move || {
                // Where this is refused it runs on any CPU.
                let _ = cpus.confine_this_thread();
                while go_on.load(Ordering::Relaxed) {
                    // SAFETY: LOOPS is not 0; computes, touches nothing.
                    unsafe { ffi::driver_time_work(LOOPS) };
                }
            };
            Builder::new()
                .name(format!("neighbour{number}"))
                .spawn_scoped(scope, body)
                .map_err(Error::Spawn)?;
        }
        Ok(burning)
    }

    /// All end.
    pub fn stop(self) {}
}

impl Drop for Burning {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
