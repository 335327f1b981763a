// SPDX-License-Identifier: MIT OR Apache-2.0
//! The raw locks in Rust: that they exclude, are laid out as in C, begin as C makes them, and are fair where they say so.

use std::{fs, path::Path, thread};

use unspin_locks::{
    lock_api::{Mutex, RawMutex, RawMutexFair, RawRwLock, RwLock},
    *,
};

const THREADS: u64 = 2;
const ROUNDS: u64 = 50;

fn counts<Raw: RawMutex + Send + Sync>() {
    let sum = Mutex::<Raw, u64>::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    match sum.try_lock() {
                        Some(mut sum) if round % 2 == 0 => *sum += 1,
                        other => {
                            drop(other);
                            *sum.lock() += 1;
                        }
                    }
                }
            });
        }
    });
    let guard = sum.lock();
    assert_eq!(*guard, THREADS * ROUNDS);
    assert!(sum.is_locked() && sum.try_lock().is_none());
    drop(guard);
    assert!(!sum.is_locked());
}

#[test]
fn every_mutex_counts() {
    counts::<RawTas>();
    counts::<RawTicket>();
    counts::<RawPreemptableTicket>();
    counts::<RawMcs>();
    counts::<RawQspinlock>();
    counts::<RawHelping>();
    counts::<RawParavirtualTicket>();
    counts::<RawParavirtualPreemptableTicket>();
    counts::<RawParavirtualQspinlock>();
    counts::<RawLinuxMutex>();
    counts::<RawUnspinMutex>();
}

fn shares<Raw: RawRwLock + Send + Sync>() {
    let pair = RwLock::<Raw, (u64, u64)>::new((0, 0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    {
                        let mut pair = pair.write();
                        pair.0 += 1;
                        pair.1 += 1;
                    }
                    let pair = pair.read();
                    assert_eq!(pair.0, pair.1);
                }
            });
        }
    });
    let (first, second) = (pair.read(), pair.try_read().expect("readers share"));
    assert_eq!((first.0, second.1), (THREADS * ROUNDS, THREADS * ROUNDS));
    assert!(pair.try_write().is_none());
    assert!(pair.is_locked() && !pair.is_locked_exclusive());
    drop((first, second));
    let writer = pair.write();
    assert!(pair.try_read().is_none() && pair.is_locked_exclusive());
    drop(writer);
    assert!(!pair.is_locked());
}

#[test]
fn readers_share_and_writers_do_not() {
    shares::<RawRwlock>();
    shares::<RawRwsem>();
}

/// A lock in C: its name, bytes and alignment in lib/include/unspin/locks.h, which C asserts to be those of locks/.
fn in_c(name: &str) -> (usize, usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let header = fs::read_to_string(root.join("lib/include/unspin/locks.h")).expect("the header");
    let begin = format!("UNSPIN_DECLARE_LOCK({name}, ");
    let line = header.lines().find_map(|line| line.strip_prefix(&begin));
    let line = line.unwrap_or_else(|| panic!("{name} is not in the header"));
    let (words, alignment) = line
        .strip_suffix(')')
        .and_then(|line| line.split_once(", "))
        .expect("words and alignment");
    let words: usize = words.parse().expect("words");
    (4 * words, alignment.parse().expect("bytes"))
}

/// The C function that makes a lock of that name free, and the check that Rust's constant is the same.
macro_rules! same_as_in_c {
    ($($raw:ty, $name:literal, $init:ident;)*) => {
        unsafe extern "C" { $(fn $init(lock: *mut $raw);)* }

        fn bytes_of<T>(value: &T) -> &[u8] {
            // SAFETY: a live value of words, without padding.
            unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
        }

        #[test]
        fn layouts_and_constants_are_those_of_c() {
            $(
                assert_eq!((size_of::<$raw>(), align_of::<$raw>()), in_c($name), $name);
                let mut made = <$raw>::default_for_test();
                // SAFETY: C writes the words that its struct has, which is as large.
                unsafe { $init(&mut made) };
                let constant = <$raw>::default_for_test();
                assert_eq!(bytes_of(&made), bytes_of(&constant), $name);
            )*
        }
    };
}

/// The constant of either trait.
trait DefaultForTest {
    fn default_for_test() -> Self;
}
macro_rules! constants {
    ($trait:ident: $($raw:ty),*) => { $(impl DefaultForTest for $raw {
        fn default_for_test() -> Self { <$raw as $trait>::INIT }
    })* };
}
constants!(RawMutex: RawTas, RawTicket, RawPreemptableTicket, RawMcs, RawQspinlock, RawHelping, RawParavirtualTicket,
    RawParavirtualPreemptableTicket, RawParavirtualQspinlock, RawLinuxMutex, RawUnspinMutex);
constants!(RawRwLock: RawRwlock, RawRwsem);

same_as_in_c! {
    RawTas, "test_and_test_and_set", unspin_test_and_test_and_set_init;
    RawTicket, "ticket", unspin_ticket_init;
    RawPreemptableTicket, "preemptable_ticket", unspin_preemptable_ticket_init;
    RawMcs, "mcs", unspin_mcs_init;
    RawQspinlock, "qspinlock", unspin_qspinlock_init;
    RawHelping, "helping", unspin_helping_init;
    RawParavirtualTicket, "paravirtual_ticket", unspin_paravirtual_ticket_init;
    RawParavirtualPreemptableTicket, "paravirtual_preemptable_ticket", unspin_paravirtual_preemptable_ticket_init;
    RawParavirtualQspinlock, "paravirtual_qspinlock", unspin_paravirtual_qspinlock_init;
    RawLinuxMutex, "linux_mutex", unspin_linux_mutex_init;
    RawUnspinMutex, "mutex", unspin_mutex_init;
    RawRwlock, "rwlock", unspin_rwlock_init;
    RawRwsem, "rwsem", unspin_rwsem_init;
}

/// Who is fair: the type says it.
#[test]
fn fair_locks_unlock_fairly() {
    fn fair<Raw: RawMutexFair>() {
        let lock = Mutex::<Raw, u32>::new(7);
        lock_api::MutexGuard::unlock_fair(lock.lock());
        assert!(!lock.is_locked());
    }
    fair::<RawTicket>();
    fair::<RawMcs>();
    fair::<RawHelping>();
    fair::<RawParavirtualTicket>();
}

/// A guard may be dropped by another thread, where another thread may unlock.
#[test]
fn guards_of_locks_without_owners_may_be_sent() {
    fn sends<Raw: RawMutex<GuardMarker = lock_api::GuardSend> + Sync>() {
        let lock = Mutex::<Raw, u32>::new(7);
        let guard = lock.lock();
        thread::scope(|scope| {
            scope.spawn(|| drop(guard));
        });
        assert!(lock.try_lock().is_some());
    }
    sends::<RawTas>();
    sends::<RawTicket>();
    sends::<RawPreemptableTicket>();
    sends::<RawQspinlock>();
    sends::<RawHelping>();
    sends::<RawParavirtualTicket>();
    sends::<RawParavirtualPreemptableTicket>();
    sends::<RawParavirtualQspinlock>();
    sends::<RawUnspinMutex>();
}
