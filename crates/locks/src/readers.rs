// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks that readers share.

use lock_api::GuardSend;

use crate::ffi::lock;

/// A raw reader-writer lock: its struct, its trait, the types that programs use.
macro_rules! readers {
    ($(#[$documentation:meta])* $raw:ident, $rw:ident, $read_guard:ident, $write_guard:ident, $words:literal, $alignment:literal,
     $lock:ident, $try_lock:ident, $unlock:ident, $is_locked:ident, $read_lock:ident, $try_read_lock:ident, $read_unlock:ident) => {
        lock! {
            $(#[$documentation])* $raw, $words, $alignment, [0],
            fn { $lock, $unlock, $read_lock, $read_unlock }, ask { $try_lock, $is_locked, $try_read_lock }
        }

        // SAFETY: the C functions exclude (crates/lockcheck): a writer is inside alone, readers with other readers at most. The
        // references are valid while they run, and nothing in C keeps them.
        unsafe impl lock_api::RawRwLock for $raw {
            #[allow(clippy::declare_interior_mutable_const)] // the trait asks for it
            const INIT: Self = Self::free();
            type GuardMarker = GuardSend;

            fn lock_shared(&self) {
                // SAFETY: as above.
                unsafe { $read_lock(self) }
            }

            fn try_lock_shared(&self) -> bool {
                // SAFETY: as above.
                unsafe { $try_read_lock(self) }
            }

            unsafe fn unlock_shared(&self) {
                // SAFETY: as above; the caller is inside.
                unsafe { $read_unlock(self) }
            }

            fn lock_exclusive(&self) {
                // SAFETY: as above.
                unsafe { $lock(self) }
            }

            fn try_lock_exclusive(&self) -> bool {
                // SAFETY: as above.
                unsafe { $try_lock(self) }
            }

            unsafe fn unlock_exclusive(&self) {
                // SAFETY: as above; the caller is inside.
                unsafe { $unlock(self) }
            }

            fn is_locked(&self) -> bool {
                // SAFETY: as above.
                unsafe { $is_locked(self) }
            }
        }

        #[doc = concat!("A value that a [`", stringify!($raw), "`] protects.")]
        pub type $rw<T> = lock_api::RwLock<$raw, T>;
        #[doc = concat!("What `read` of a [`", stringify!($rw), "`] returns.")]
        pub type $read_guard<'a, T> = lock_api::RwLockReadGuard<'a, $raw, T>;
        #[doc = concat!("What `write` of a [`", stringify!($rw), "`] returns.")]
        pub type $write_guard<'a, T> = lock_api::RwLockWriteGuard<'a, $raw, T>;
    };
}

readers! {
    /// Linux's queued reader-writer lock, 12 bytes: waiters spin, first come, first served; a reader enters at once while no
    /// writer waits or is inside.
    RawRwlock, Rwlock, RwlockReadGuard, RwlockWriteGuard, 3, 4,
    unspin_rwlock_lock, unspin_rwlock_trylock, unspin_rwlock_unlock, unspin_rwlock_is_locked,
    unspin_rwlock_read_lock, unspin_rwlock_read_trylock, unspin_rwlock_read_unlock
}

#[cfg(feature = "parking")]
readers! {
    /// Linux's rwsem, 1,072 bytes: waiters sleep, and the lock is handed over in order.
    RawRwsem, Rwsem, RwsemReadGuard, RwsemWriteGuard, 268, 16,
    unspin_rwsem_lock, unspin_rwsem_trylock, unspin_rwsem_unlock, unspin_rwsem_is_locked,
    unspin_rwsem_read_lock, unspin_rwsem_read_trylock, unspin_rwsem_read_unlock
}
