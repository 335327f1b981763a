// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads that share locks: the memory they share, and the safe face of one lock's C drivers.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    ffi::{CStr, c_void},
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering},
};

use unspin_abi::{unspin_distribution, unspin_guest_statistics};

use crate::{
    baselines::Contender,
    ffi::{self, Driver, DriverOutcome, DriverRun, DriverValidation},
    table::Table,
};

/// Most threads of one group: their numbers must differ from `UNSPIN_NOBODY`, and a guest has no more vCPUs.
pub const THREADS_MAX: u32 = unspin_abi::UNSPIN_GUEST_VCPUS_MAX;
/// A wait of more spins is a stall (VEE'13 section 3, ruling 10).
pub const STALL_SPINS: u32 = 2048;

/// What the threads of a group do.
#[derive(Clone, Debug)]
pub struct Work {
    /// Outside the lock, in loops.
    pub user_work: unspin_distribution,
    /// Outside the lock as well: threads have one privilege level only.
    pub kernel_work: unspin_distribution,
    /// Inside the lock, in loops.
    pub hold: unspin_distribution,
    /// Locks for all, one of them drawn each iteration (1 to 64); 0: one for each thread alone.
    pub locks: u32,
    /// Measured iterations per thread; 0: until [`Phase::stop`].
    pub iterations: u32,
    /// PAUSE at every so many spins of a waiting loop, 1 or more.
    pub pause_every_spins: u32,
    /// Every random number follows from it.
    pub seed: u64,
}

/// Where a run stands; all its groups share it. On a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
pub struct Phase(AtomicU32);

impl Phase {
    /// Threads run, and nothing is kept; or they measure from the start.
    pub fn new(warm_up: bool) -> Self {
        let first = if warm_up {
            ffi::DRIVER_WARM_UP
        } else {
            ffi::DRIVER_MEASURE
        };
        Phase(AtomicU32::new(first))
    }

    /// From each thread's next iteration on, what it counts is kept.
    pub fn measure(&self) {
        self.0.store(ffi::DRIVER_MEASURE, Ordering::Relaxed);
    }

    /// Each thread finishes its iteration.
    pub fn stop(&self) {
        self.0.store(ffi::DRIVER_STOP, Ordering::Relaxed);
    }
}

/// Locks of one kind with what they protect, and the drivers that use them.
#[derive(Debug)]
pub struct Group {
    driver: &'static Driver,
    threads: u32,
    slots: NonNull<u8>,
    layout: Layout,
    count: u32,
    table: Table,
}

// SAFETY: the slots are shared by design; the C drivers touch them by atomics, or under the lock they test.
unsafe impl Send for Group {}
// SAFETY: as above.
unsafe impl Sync for Group {}

impl Group {
    /// Fresh locks for `threads` threads (1 to twice [`THREADS_MAX`]: the latter half has no places in locks that queue) and at most `locks` shared locks.
    ///
    /// # Panics
    /// When a number is out of range.
    pub fn new(lock: impl Into<Contender>, threads: u32, locks: u32) -> Group {
        assert!(
            (1..=2 * THREADS_MAX).contains(&threads) && locks <= unspin_abi::UNSPIN_GUEST_LOCKS_MAX
        );
        let driver = lock.into().driver();
        let count = threads.max(locks);
        let bytes = driver.slot_bytes as usize * count as usize;
        let layout = Layout::from_size_align(bytes, driver.slot_alignment as usize)
            .expect("the driver's alignment is a power of two");
        // SAFETY: a slot is not empty.
        let slots = unsafe { alloc_zeroed(layout) };
        let slots = NonNull::new(slots).unwrap_or_else(|| handle_alloc_error(layout));
        // SAFETY: room for `count` slots with the driver's alignment; nobody else sees them yet.
        unsafe { (driver.prepare)(slots.as_ptr().cast(), count) };
        Group {
            driver,
            threads,
            slots,
            layout,
            count,
            table: Table::new(),
        }
    }

    /// What its threads know of each other.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The lock's name as its C driver was compiled for it.
    pub fn lock_name(&self) -> &'static str {
        // SAFETY: a string literal.
        unsafe { CStr::from_ptr(self.driver.name) }
            .to_str()
            .unwrap_or("?")
    }

    fn run(&self, work: &Work, phase: &Phase) -> DriverRun {
        assert!(work.locks <= self.count && work.pause_every_spins > 0);
        DriverRun {
            user_work: &work.user_work,
            kernel_work: &work.kernel_work,
            hold: &work.hold,
            slots: self.slots.as_ptr().cast(),
            phase: phase.0.as_ptr(),
            seed: work.seed,
            locks: work.locks,
            iterations: work.iterations,
            pause_every_spins: work.pause_every_spins,
            stall_spins: STALL_SPINS,
            table: self.table.as_ptr(),
            reserved: 0,
        }
    }

    /// Takes and releases locks as thread `thread` (each number by one thread only) until the run ends.
    pub fn run_iterations(
        &self,
        work: &Work,
        phase: &Phase,
        thread: u32,
    ) -> (Box<unspin_guest_statistics>, Box<DriverOutcome>) {
        assert!(thread < self.threads);
        let run = self.run(work, phase);
        let mut statistics = Box::<unspin_guest_statistics>::default();
        let mut outcome = Box::<DriverOutcome>::default();
        // SAFETY: `run` and all it points to outlive the call, the slots are as many as it may index (thread below
        // threads, locks not above count), both results are this thread's alone.
        unsafe { (self.driver.iterations)(&run, thread, &mut *statistics, &mut *outcome) };
        (statistics, outcome)
    }

    /// `work.iterations` spins of lock or trylock at random as thread `thread`, with mutual exclusion checked.
    pub fn validate(&self, work: &Work, phase: &Phase, thread: u32) -> DriverValidation {
        assert!(thread < self.threads);
        let run = self.run(work, phase);
        let mut validation = DriverValidation::default();
        // SAFETY: as in spins().
        unsafe { (self.driver.validate)(&run, thread, &mut validation) };
        validation
    }

    /// Least TSC cycles per lock-unlock pair of several batches, by this thread alone.
    pub fn uncontended_cycles_per_pair(&mut self) -> f64 {
        const PAIRS: u32 = 20_000;
        const BATCHES: u32 = 10;
        let slots: *mut c_void = self.slots.as_ptr().cast();
        let least = (0..BATCHES)
            // SAFETY: `&mut self`: nobody else uses the slots.
            .map(|_| unsafe { (self.driver.latency)(slots, PAIRS) })
            .min()
            .unwrap_or(0);
        least as f64 / f64::from(PAIRS)
    }

    /// Entries into all critical sections, from counters that are right only under mutual exclusion.
    pub fn entries(&mut self) -> u64 {
        // SAFETY: `&mut self`: the threads are back.
        unsafe { (self.driver.entries)(self.slots.as_ptr().cast(), self.count) }
    }

    /// How many of the locks say that they are taken; 0 when all threads are back.
    pub fn still_locked(&mut self) -> u64 {
        // SAFETY: as above.
        unsafe { (self.driver.still_locked)(self.slots.as_ptr().cast(), self.count) }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // SAFETY: allocated in new() with this layout.
        unsafe { dealloc(self.slots.as_ptr(), self.layout) };
    }
}
