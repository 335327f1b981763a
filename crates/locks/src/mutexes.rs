// SPDX-License-Identifier: MIT OR Apache-2.0
//! The locks that one thread holds at a time.

#[cfg(feature = "std")]
use lock_api::GuardNoSend;
use lock_api::GuardSend;

use crate::ffi::lock;

/// A raw mutex: its struct, its trait, the two types that programs use.
macro_rules! mutex {
    ($(#[$documentation:meta])* $raw:ident, $mutex:ident, $guard:ident, $marker:ty, $words:literal, $alignment:literal,
     [$($initial:literal),*], $lock:ident, $try_lock:ident, $unlock:ident, $is_locked:ident) => {
        lock! {
            $(#[$documentation])* $raw, $words, $alignment, [$($initial),*],
            fn { $lock, $unlock }, ask { $try_lock, $is_locked }
        }

        // SAFETY: the C functions exclude (crates/lockcheck): between lock or a successful try_lock and unlock no other
        // thread's lock returns. The references are valid while they run, and nothing in C keeps them.
        unsafe impl lock_api::RawMutex for $raw {
            #[allow(clippy::declare_interior_mutable_const)] // the trait asks for it
            const INIT: Self = Self::free();
            type GuardMarker = $marker;

            fn lock(&self) {
                // SAFETY: as above.
                unsafe { $lock(self) }
            }

            fn try_lock(&self) -> bool {
                // SAFETY: as above.
                unsafe { $try_lock(self) }
            }

            unsafe fn unlock(&self) {
                // SAFETY: as above; the caller holds it.
                unsafe { $unlock(self) }
            }

            fn is_locked(&self) -> bool {
                // SAFETY: as above.
                unsafe { $is_locked(self) }
            }
        }

        #[doc = concat!("A value that a [`", stringify!($raw), "`] protects.")]
        pub type $mutex<T> = lock_api::Mutex<$raw, T>;
        #[doc = concat!("What the lock of a [`", stringify!($mutex), "`] returns.")]
        pub type $guard<'a, T> = lock_api::MutexGuard<'a, $raw, T>;
    };
}

/// First come, first served: each unlock hands the lock to who has waited longest.
macro_rules! fair {
    ($raw:ident) => {
        // SAFETY: unlock is fair always.
        unsafe impl lock_api::RawMutexFair for $raw {
            unsafe fn unlock_fair(&self) {
                // SAFETY: the caller holds it.
                unsafe { lock_api::RawMutex::unlock(self) }
            }
        }
    };
}

mutex! {
    /// Test-and-test-and-set, 4 bytes: waiters spin, in no order.
    RawTas, TasMutex, TasGuard, GuardSend, 1, 4, [0],
    unspin_test_and_test_and_set_lock, unspin_test_and_test_and_set_trylock, unspin_test_and_test_and_set_unlock,
    unspin_test_and_test_and_set_is_locked
}

mutex! {
    /// A ticket lock, 8 bytes: waiters spin, first come, first served.
    RawTicket, TicketMutex, TicketGuard, GuardSend, 2, 4, [0],
    unspin_ticket_lock, unspin_ticket_trylock, unspin_ticket_unlock, unspin_ticket_is_locked
}
fair! { RawTicket }

mutex! {
    /// A ticket lock in which waiters that do not run are passed after a while, 16 bytes: waiters spin.
    RawPreemptableTicket, PreemptableTicketMutex, PreemptableTicketGuard, GuardSend, 4, 4, [0, 0, 0, 16384],
    unspin_preemptable_ticket_lock, unspin_preemptable_ticket_trylock, unspin_preemptable_ticket_unlock,
    unspin_preemptable_ticket_is_locked
}

#[cfg(feature = "std")]
mutex! {
    /// A queue lock, 4,224 bytes: each waiter spins on a cache line of its own, first come, first served.
    RawMcs, McsMutex, McsGuard, GuardNoSend, 1056, 64, [0],
    unspin_mcs_lock, unspin_mcs_trylock, unspin_mcs_unlock, unspin_mcs_is_locked
}
#[cfg(feature = "std")]
fair! { RawMcs }

#[cfg(feature = "std")]
mutex! {
    /// Linux's queued spinlock, 4,224 bytes: waiters spin, in the order in which they queued.
    RawQspinlock, QspinlockMutex, QspinlockGuard, GuardSend, 1056, 64, [0],
    unspin_qspinlock_lock, unspin_qspinlock_trylock, unspin_qspinlock_unlock, unspin_qspinlock_is_locked
}

#[cfg(feature = "std")]
mutex! {
    /// A ticket lock whose waiters let others run after every 2,048 spins, 12 bytes: first come, first served.
    RawHelping, HelpingMutex, HelpingGuard, GuardSend, 3, 4, [0, 0, 2048],
    unspin_helping_lock, unspin_helping_trylock, unspin_helping_unlock, unspin_helping_is_locked
}
#[cfg(feature = "std")]
fair! { RawHelping }

#[cfg(feature = "parking")]
mutex! {
    /// The one to take, 8 bytes: one waiter spins while the holder runs, the others sleep, and all do while it was preempted.
    RawUnspinMutex, UnspinMutex, UnspinMutexGuard, GuardSend, 2, 8, [0],
    unspin_mutex_lock, unspin_mutex_trylock, unspin_mutex_unlock, unspin_mutex_is_locked
}

#[cfg(feature = "parking")]
mutex! {
    /// A ticket lock whose waiters sleep after a while, 272 bytes: first come, first served.
    RawParavirtualTicket, ParavirtualTicketMutex, ParavirtualTicketGuard, GuardSend, 68, 4, [0],
    unspin_paravirtual_ticket_lock, unspin_paravirtual_ticket_trylock, unspin_paravirtual_ticket_unlock,
    unspin_paravirtual_ticket_is_locked
}
#[cfg(feature = "parking")]
fair! { RawParavirtualTicket }

#[cfg(feature = "parking")]
mutex! {
    /// As [`RawPreemptableTicket`], 24 bytes, with waiters that sleep after a while.
    RawParavirtualPreemptableTicket, ParavirtualPreemptableTicketMutex, ParavirtualPreemptableTicketGuard, GuardSend, 6, 4,
    [0, 0, 0, 16384],
    unspin_paravirtual_preemptable_ticket_lock, unspin_paravirtual_preemptable_ticket_trylock,
    unspin_paravirtual_preemptable_ticket_unlock, unspin_paravirtual_preemptable_ticket_is_locked
}

#[cfg(feature = "parking")]
mutex! {
    /// Linux's queued spinlock for guests, 4,224 bytes: waiters sleep in a queue, which newcomers may pass.
    RawParavirtualQspinlock, ParavirtualQspinlockMutex, ParavirtualQspinlockGuard, GuardSend, 1056, 64, [0],
    unspin_paravirtual_qspinlock_lock, unspin_paravirtual_qspinlock_trylock, unspin_paravirtual_qspinlock_unlock,
    unspin_paravirtual_qspinlock_is_locked
}

#[cfg(feature = "parking")]
mutex! {
    /// Linux's mutex, 1,072 bytes: one waiter spins, the others sleep in a queue, which newcomers may pass for a while.
    RawLinuxMutex, LinuxMutex, LinuxMutexGuard, GuardNoSend, 268, 16, [0],
    unspin_linux_mutex_lock, unspin_linux_mutex_trylock, unspin_linux_mutex_unlock, unspin_linux_mutex_is_locked
}
