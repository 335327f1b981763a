// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks of libunspin for Rust: raw locks of [`lock_api`], for programs with more threads than CPUs. The code is that of
//! `locks/`, which a checker has run in every interleaving of small programs.
//!
//! ```
//! use unspin_locks::UnspinMutex;
//!
//! static SUM: UnspinMutex<u64> = UnspinMutex::new(0);
//!
//! std::thread::scope(|scope| {
//!     for _ in 0..8 {
//!         scope.spawn(|| {
//!             for _ in 0..1_000 {
//!                 *SUM.lock() += 1;
//!             }
//!         });
//!     }
//! });
//! assert_eq!(*SUM.lock(), 8_000);
//! ```
//!
//! Readers share a [`Rwsem`] (they sleep) or a [`Rwlock`] (they spin):
//!
//! ```
//! use unspin_locks::Rwsem;
//!
//! let words = Rwsem::new(vec!["lock"]);
//! words.write().push("holder");
//! let (first, second) = (words.read(), words.read());
//! assert_eq!(first.len(), second.len());
//! assert!(words.try_write().is_none(), "readers are inside");
//! ```
//!
//! The crate is `no_std`. Without features it has the locks that need neither libc nor a number for each thread: [`TasMutex`],
//! [`TicketMutex`], [`PreemptableTicketMutex`], [`Rwlock`]. Feature `std` adds those that do, feature `parking` (the default)
//! those whose waiters sleep. What each promises: docs/libunspin.md.
//!
//! [`lock_api::RawMutexFair`] is implemented where the lock is first come, first served. A guard may go to another thread
//! unless the lock can only be freed by the thread that took it (`mcs`, `linux_mutex`). There is no poisoning, as in
//! parking_lot.
#![no_std]

mod ffi;
mod mutexes;
mod readers;

pub use mutexes::*;
pub use readers::*;

pub use lock_api;
