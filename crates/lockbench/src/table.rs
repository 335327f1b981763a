// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the threads of a group know of each other (`locks/platform/table.h`), and where their run_states come from.

use std::{alloc::Layout, alloc::handle_alloc_error, io, ptr::NonNull};

use unspin_abi::unspin_thread_run_state;

use crate::ffi::{self, PlatformTable};

/// Threads of a group that can park and have run_states: those with smaller numbers.
pub const WAITERS_MAX: u32 = ffi::WAITERS_MAX;

/// A page that somebody keeps up to date about threads that it has been told of.
///
/// # Safety
/// `first()` points to `len()` structs that stay mapped for as long as `self` lives.
pub unsafe trait RunStatePage: Sync {
    /// The first struct.
    fn first(&self) -> *const unspin_thread_run_state;
    /// How many there are.
    fn len(&self) -> u32;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The struct of that number is about the calling thread from now on.
    ///
    /// # Errors
    /// When the kernel refuses.
    fn register_this_thread(&self, number: u32) -> io::Result<()>;
}

/// Where run_states come from.
#[derive(Clone, Copy, Default)]
pub enum RunStates<'a> {
    /// Nowhere: nobody is ever said to be preempted.
    #[default]
    None,
    /// The kernel's restartable sequences: who was last on my CPU does not run.
    Rseq,
    /// A page that a program in the kernel writes.
    Page(&'a dyn RunStatePage),
}

impl std::fmt::Debug for RunStates<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

impl RunStates<'_> {
    /// The word on the command line and in tables.
    pub fn name(self) -> &'static str {
        match self {
            RunStates::None => "none",
            RunStates::Rseq => "rseq",
            RunStates::Page(_) => "bpf",
        }
    }
}

/// What rseq offers to threads of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RseqOffers {
    /// The area can be registered: [`RunStates::Rseq`] works.
    pub area: bool,
    /// Time-slice extension (Linux 7.0, CONFIG_RSEQ_SLICE_EXTENSION).
    pub slice_extension: bool,
}

/// Asks the kernel, on a thread of its own.
pub fn rseq_offers() -> RseqOffers {
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // SAFETY: one probe at a time; the thread gets its own area back.
    let found = std::thread::spawn(|| unsafe { ffi::driver_probe_rseq() })
        .join()
        .unwrap_or(0);
    RseqOffers {
        area: found & 1 != 0,
        slice_extension: found & 2 != 0,
    }
}

/// Pages in which threads tell the host's scheduler of their critical sections (`abi/bpf/thread_run_state.h`).
///
/// # Safety
/// `first` is valid for reads and writes of `UNSPIN_THREADS_MAX` structs for as long as the value lives.
pub unsafe trait GrantPages: Sync + std::fmt::Debug {
    /// The first of them.
    fn first(&self) -> *mut unspin_abi::unspin_pv_page;
}

/// The calling thread counts in that page from now on.
///
/// # Errors
/// No such page, no scheduler of ours, or another thread's.
pub(crate) fn take_page(pages: &dyn GrantPages, number: u32) -> std::io::Result<()> {
    if number >= unspin_abi::UNSPIN_THREADS_MAX {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: in bounds, as just checked, of memory that the trait's promise covers.
    let taken = unsafe { ffi::driver_take_page(pages.first().add(number as usize), number) };
    taken
        .then_some(())
        .ok_or_else(|| std::io::ErrorKind::NotConnected.into())
}

/// One group's table.
#[derive(Debug)]
pub struct Table(NonNull<PlatformTable>);

// SAFETY: the C side touches it by atomics only.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

impl Default for Table {
    fn default() -> Self {
        Table::new()
    }
}

impl Table {
    /// Without run_states; nobody has joined.
    pub fn new() -> Table {
        // SAFETY: allocates, nothing else.
        let table = unsafe { ffi::driver_table_new() };
        Table(NonNull::new(table).unwrap_or_else(|| handle_alloc_error(Layout::new::<u64>())))
    }

    pub(crate) fn as_ptr(&self) -> *mut PlatformTable {
        self.0.as_ptr()
    }

    /// Threads that join from now on have these run_states; a page's structs from `first` on, one for each number.
    ///
    /// # Safety
    /// A page outlives every thread that joins.
    ///
    /// # Panics
    /// When the page is too short.
    pub unsafe fn set_run_states(&self, run_states: RunStates<'_>, first: u32) {
        let (kind, page) = match run_states {
            RunStates::None => (ffi::RUN_STATES_NONE, std::ptr::null()),
            RunStates::Rseq => (ffi::RUN_STATES_RSEQ, std::ptr::null()),
            RunStates::Page(page) => {
                assert!(
                    first + WAITERS_MAX <= page.len(),
                    "a struct for each number"
                );
                // SAFETY: in bounds, as asserted.
                (ffi::RUN_STATES_PAGE, unsafe {
                    page.first().add(first as usize)
                })
            }
        };
        // SAFETY: a live table; the page outlives its use, as the caller promises.
        unsafe { ffi::driver_table_run_states(self.as_ptr(), kind, page) };
    }

    /// The run_states' source is gone: from now on there are none. What is mapped stays mapped.
    pub fn drop_run_states(&self) {
        // SAFETY: a live table.
        unsafe {
            ffi::driver_table_run_states(self.as_ptr(), ffi::RUN_STATES_NONE, std::ptr::null())
        };
    }

    /// Threads that join from now on ask for time-slice extension.
    pub fn want_slice(&self) {
        // SAFETY: a live table.
        unsafe { ffi::driver_table_wants_slice(self.as_ptr()) };
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: nobody has joined any more: threads borrow it while they do.
        unsafe { ffi::driver_table_free(self.as_ptr()) };
    }
}
