// SPDX-License-Identifier: MIT OR Apache-2.0
//! A lock of `lib/include/unspin/locks.h` as a Rust struct of the same layout, and its functions.

/// Words of 32 bits: the first ones as given, the others 0.
pub(crate) const fn words<const COUNT: usize>(first: &[u32]) -> [u32; COUNT] {
    let mut words = [0; COUNT];
    let mut at = 0;
    while at < first.len() {
        words[at] = first[at];
        at += 1;
    }
    words
}

/// Declares a lock's struct, `$words` words aligned to `$alignment` bytes that begin as `$initial` and go on with zeroes, and its
/// functions in C: those with a lock, and those that only ask.
macro_rules! lock {
    ($(#[$documentation:meta])* $name:ident, $words:literal, $alignment:literal, [$($initial:literal),*],
     fn { $($function:ident),* }, ask { $($question:ident),* }) => {
        $(#[$documentation])*
        #[repr(C, align($alignment))]
        pub struct $name {
            words: core::cell::UnsafeCell<[u32; $words]>,
        }

        // SAFETY: the words are accessed by the C functions only, which are made for threads that share them, and have no
        // pointer to anything of a thread.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}

        impl $name {
            const fn free() -> Self {
                Self {
                    words: core::cell::UnsafeCell::new(crate::ffi::words(&[$($initial),*])),
                }
            }
        }

        unsafe extern "C" {
            $(fn $function(lock: *const $name);)*
            $(fn $question(lock: *const $name) -> bool;)*
        }
    };
}
pub(crate) use lock;
