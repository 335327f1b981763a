// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scripted world: up to eight threads around one lock, every access made when the script says so.
//!
//! The locks are those of `locks/*.h`, compiled against `c/platform_script.h`. So a test can have one interleaving,
//! one time-out, one change of a word exactly; [`crate::explore`] has them all.

use std::{
    ffi::{CString, c_char},
    ptr::NonNull,
};

use unspin_abi::LockKind;

use crate::ffi;

/// `PLATFORM_FOREVER`: a wait without a bound.
pub const FOREVER: u32 = u32::MAX;

/// What a thread wants to do next. Words are numbered by their place in the lock's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Reads a word.
    Load(usize),
    /// Writes a word.
    Store(usize, u32),
    /// Writes a word and learns what was there.
    Exchange(usize, u32),
    /// Adds to a word and learns what was there.
    FetchAdd(usize, u32),
    /// Writes the third if the word holds the second.
    CompareExchange(usize, u32, u32),
    /// Sets bits and learns what was there.
    FetchOr(usize, u32),
    /// Keeps bits and learns what was there.
    FetchAnd(usize, u32),
    /// A full barrier: nothing to do in a sequentially consistent world.
    Fence,
    /// Waits while the word holds `value`, for so many turns more ([`FOREVER`]: no bound).
    Wait {
        /// The word.
        word: usize,
        /// The value that it waits to see gone.
        value: u32,
        /// Turns left.
        turns: u32,
    },
    /// Has the lock (by `lock` when true, else by `trylock`) and goes in.
    Enter(bool),
    /// Comes out; `unlock` follows.
    Leave,
    /// `trylock` said no.
    TryRefused,
    /// `is_locked` said this.
    IsLocked(bool),
    /// The program has ended.
    Done,
}

/// Up to eight threads around one lock. Only the OS thread that made it may use it.
#[derive(Debug)]
pub struct World {
    raw: NonNull<ffi::ScriptWorld>,
    lock: NonNull<u32>,
    words: usize,
    threads: usize,
    programs: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl World {
    /// A world whose thread `i` runs `programs[i]` (1 to 8 of them), not started yet. Letters: `L` lock, enter,
    /// leave, unlock; `T` trylock and the same if it succeeds; `Q` is_locked.
    ///
    /// # Panics
    /// When there are no programs or more than eight, or a program has another letter.
    pub fn new(kind: LockKind, programs: &[&str]) -> World {
        let known = |program: &&str| program.chars().all(|letter| "LTQ".contains(letter));
        assert!(programs.iter().all(known), "letters are L, T and Q");
        // SAFETY: both arguments are checked by script_new.
        let raw = unsafe { ffi::script_new(kind.number(), programs.len() as u32) };
        let raw = NonNull::new(raw).expect("1 to 8 threads, and memory for them");
        let mut bytes = 0;
        // SAFETY: `raw` is a live world; the lock's memory lives as long and is aligned to 128 bytes.
        let lock = unsafe { ffi::script_lock_memory(raw.as_ptr(), &mut bytes) };
        let programs: Vec<CString> = programs
            .iter()
            .map(|program| CString::new(*program).expect("letters only"))
            .collect();
        World {
            raw,
            lock: NonNull::new(lock.cast()).expect("inside the world"),
            words: bytes as usize / size_of::<u32>(),
            threads: programs.len(),
            pointers: programs.iter().map(|program| program.as_ptr()).collect(),
            programs,
        }
    }

    /// Starts all programs anew: the lock as its init leaves it, `words` set over that, each thread at its first
    /// request.
    pub fn start(&mut self, words: &[(usize, u32)]) {
        // SAFETY: `raw` is a live world; there is one pointer per thread, to strings that `self` keeps.
        unsafe { ffi::script_reset(self.raw.as_ptr()) };
        for &(word, value) in words {
            self.set_word(word, value);
        }
        debug_assert_eq!(self.programs.len(), self.threads);
        // SAFETY: as above.
        unsafe { ffi::script_start(self.raw.as_ptr(), self.pointers.as_ptr()) };
    }

    /// Threads of this world.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The lock's words now.
    pub fn words(&self) -> Vec<u32> {
        // SAFETY: the lock has `words` aligned words, and no thread runs while the script does.
        unsafe { std::slice::from_raw_parts(self.lock.as_ptr(), self.words) }.to_vec()
    }

    /// Sets one word of the lock, as some other thread might have.
    ///
    /// # Panics
    /// When the lock has no such word.
    pub fn set_word(&mut self, word: usize, value: u32) {
        assert!(word < self.words, "the lock has {} words", self.words);
        // SAFETY: inside the lock, just checked.
        unsafe { self.lock.add(word).write(value) };
    }

    fn raw_request(&self, thread: usize) -> ffi::ScriptRequest {
        assert!(thread < self.threads);
        // SAFETY: `thread` is below the world's number of threads; the request is copied before anything moves.
        unsafe { *ffi::script_pending(self.raw.as_ptr(), thread as u32) }
    }

    /// What `thread` wants to do next.
    pub fn pending(&self, thread: usize) -> Request {
        let raw = self.raw_request(thread);
        let word = || {
            let offset = (raw.word as usize).wrapping_sub(self.lock.as_ptr() as usize);
            let word = offset / size_of::<u32>();
            assert!(word < self.words, "a lock touches its own words only");
            word
        };
        match raw.kind {
            1 => Request::Load(word()),
            2 => Request::Store(word(), raw.first),
            3 => Request::Exchange(word(), raw.first),
            4 => Request::FetchAdd(word(), raw.first),
            5 => Request::CompareExchange(word(), raw.first, raw.second),
            6 => Request::Wait {
                word: word(),
                value: raw.first,
                turns: raw.second,
            },
            7 => Request::Enter(raw.first != 0),
            8 => Request::Leave,
            9 => Request::TryRefused,
            10 => Request::IsLocked(raw.first != 0),
            11 => Request::Done,
            12 => Request::FetchOr(word(), raw.first),
            13 => Request::FetchAnd(word(), raw.first),
            14 => Request::Fence,
            other => unreachable!("request {other} of script.h is not known here"),
        }
    }

    /// Lets `thread` do what it wants to, and returns what that was. A wait takes one turn.
    pub fn step(&mut self, thread: usize) -> Request {
        let request = self.pending(thread);
        // SAFETY: `thread` was checked by pending().
        unsafe { ffi::script_step(self.raw.as_ptr(), thread as u32) };
        request
    }

    /// Whether `thread` waits for a word that has not changed.
    pub fn is_waiting(&self, thread: usize) -> bool {
        match self.pending(thread) {
            // SAFETY: pending() gives words inside the lock only, and no thread runs while the script does.
            Request::Wait { word, value, .. } => value == unsafe { self.lock.add(word).read() },
            _ => false,
        }
    }

    /// Spends all turns that `thread` has left.
    ///
    /// # Panics
    /// When it does not wait, waits without a bound, or its word has changed.
    pub fn time_out(&mut self, thread: usize) {
        match self.pending(thread) {
            Request::Wait { turns, .. } if turns != FOREVER && self.is_waiting(thread) => {}
            other => panic!("thread {thread} cannot time out: {other:?}"),
        }
        // SAFETY: `thread` was checked by pending().
        unsafe { ffi::script_time_out(self.raw.as_ptr(), thread as u32) };
    }

    /// Steps `thread` until `until` holds for its next request, and returns that.
    ///
    /// # Panics
    /// After 10,000 steps, or when the program ends first.
    pub fn run_until(&mut self, thread: usize, until: impl Fn(Request) -> bool) -> Request {
        self.run(thread, |world| until(world.pending(thread)))
    }

    /// Steps `thread` until it waits for a word that has not changed, or is about to enter.
    ///
    /// # Panics
    /// As [`World::run_until`].
    pub fn run_to_wait(&mut self, thread: usize) -> Request {
        let enters = |request| matches!(request, Request::Enter(_));
        self.run(thread, |world| {
            world.is_waiting(thread) || enters(world.pending(thread))
        })
    }

    fn run(&mut self, thread: usize, until: impl Fn(&World) -> bool) -> Request {
        for _ in 0..10_000 {
            let request = self.pending(thread);
            if until(self) {
                return request;
            }
            assert_ne!(request, Request::Done, "thread {thread} has ended");
            self.step(thread);
        }
        panic!("thread {thread} is stuck at {:?}", self.pending(thread));
    }

    /// Appends everything that decides this world's future to `key`: the lock's memory and each thread's own state.
    pub fn append_state(&self, key: &mut Vec<u8>) {
        key.extend(self.words().iter().flat_map(|word| word.to_ne_bytes()));
        for thread in 0..self.threads as u32 {
            let mut buffer = [0u8; 4096];
            // SAFETY: the buffer has the capacity that is given; `thread` is below the number of threads.
            let bytes = unsafe {
                ffi::script_local_state(
                    self.raw.as_ptr(),
                    thread,
                    buffer.as_mut_ptr().cast(),
                    buffer.len() as u64,
                )
            };
            let bytes = usize::try_from(bytes).expect("a stack is small");
            key.extend_from_slice(buffer.get(..bytes).expect("a lock's stack is small"));
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: made by script_new, freed once.
        unsafe { ffi::script_free(self.raw.as_ptr()) };
    }
}
