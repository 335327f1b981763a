// SPDX-License-Identifier: MIT OR Apache-2.0
//! The scripted world: up to eight threads around one lock, in which the caller chooses every access.
//!
//! The locks are those of `locks/*.h`, compiled against `c/platform_script.h`. A test can make one chosen interleaving,
//! time-out, late store or change of a word; [`crate::explore`] makes all of them.

use std::{
    ffi::{CString, c_char},
    fmt,
    ptr::NonNull,
};

use unspin_abi::LockKind;

use crate::ffi;
pub use crate::request::{FOREVER, Request};

/// What the script can do with a thread: bits of `c/script.h`.
pub mod can {
    /// Carry out its next request.
    pub const STEP: u32 = 1;
    /// Let its oldest store reach memory.
    pub const FLUSH: u32 = 2;
    /// End its wait as if all spins were spent.
    pub const TIME_OUT: u32 = 4;
    /// End its park without cause.
    pub const WAKE: u32 = 8;
    /// Answer its question to the host: [`STEP`] for no, [`YES`] for yes.
    pub const ANSWER: u32 = 16;
    /// No other thread sees its step.
    pub const LOCAL: u32 = 32;
    /// The answer yes.
    pub const YES: u32 = 64;
}

/// A build of the locks.
#[derive(Clone, Copy)]
pub struct Locks(&'static ffi::ScriptCalls);

impl fmt::Debug for Locks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Locks({} waiters)", self.0.waiters_max)
    }
}

impl Locks {
    /// The locks of `locks/`, unchanged.
    pub fn as_they_are() -> Locks {
        // SAFETY: a constant table of script.c.
        Locks(unsafe { &ffi::script_calls })
    }

    /// With places for two waiters in each queue.
    pub fn with_two_places() -> Locks {
        // SAFETY: a constant table of script.c.
        Locks(unsafe { &ffi::script_calls_two })
    }

    /// Another build.
    ///
    /// # Safety
    /// `table` must be a `struct script_calls` of `c/script.c`, compiled from the same headers, and never freed.
    pub unsafe fn from_table(table: NonNull<std::ffi::c_void>) -> Locks {
        // SAFETY: the caller's promise.
        Locks(unsafe { table.cast().as_ref() })
    }
}

/// The host's answers to a lock's queries of run states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunStates {
    /// Always no.
    Never = 0,
    /// Always yes.
    Always = 1,
    /// Either, at each call.
    Any = 2,
}

/// The parameters of a world.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The build of the locks.
    pub locks: Locks,
    /// Which lock, or [`Setting::RCU`].
    pub kind: u32,
    /// One program per thread, letters of `c/script.h`.
    pub programs: &'a [&'a str],
    /// Stores wait in buffers (x86); otherwise memory is sequentially consistent.
    pub store_buffers: bool,
    /// Threads inside read a plain word and change it.
    pub looks: bool,
    /// What the host answers.
    pub run_states: RunStates,
}

impl Setting<'_> {
    /// The `kind` of a world around `locks/parts/rcu.h`, which is no lock.
    pub const RCU: u32 = 1000;
}

/// Up to eight threads around one lock. Only the OS thread that created it may use it.
#[derive(Debug)]
pub struct World {
    calls: &'static ffi::ScriptCalls,
    raw: NonNull<ffi::ScriptWorld>,
    lock: NonNull<u32>,
    words: usize,
    threads: usize,
    programs: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl World {
    /// A sequentially consistent world around a lock as it is, whose thread `i` runs `programs[i]` (1 to 8 of them), not
    /// started yet. Letters: `L` lock, enter, leave, unlock; `T` trylock and the same if it succeeds; `Q` is_locked.
    ///
    /// # Panics
    /// When there are no programs or more than eight, or a program has another letter.
    pub fn new(kind: LockKind, programs: &[&str]) -> World {
        World::of(&Setting {
            locks: Locks::as_they_are(),
            kind: kind.number(),
            programs,
            store_buffers: false,
            looks: false,
            run_states: RunStates::Never,
        })
    }

    /// A world of any setting, not started yet.
    ///
    /// # Panics
    /// As [`World::new`]; when this build has no such lock.
    pub fn of(setting: &Setting) -> World {
        let known = |program: &&str| program.chars().all(|letter| "LTDQRPKEUS".contains(letter));
        let threads = setting.programs.len();
        assert!(
            setting.programs.iter().all(known),
            "letters are those of script.h"
        );
        let calls = setting.locks.0;
        let flags = u32::from(setting.store_buffers) | u32::from(setting.looks) << 1;
        // SAFETY: kind and number of threads are checked by create.
        let raw = unsafe {
            (calls.create)(
                setting.kind,
                threads as u32,
                flags,
                setting.run_states as u32,
            )
        };
        let raw = NonNull::new(raw).expect("a known lock, 1 to 8 threads, and memory for them");
        let mut bytes = 0;
        // SAFETY: `raw` is a live world; the lock's memory lives as long and is aligned to 64 bytes.
        let lock = unsafe { (calls.lock_memory)(raw.as_ptr(), &mut bytes) };
        let programs: Vec<CString> = setting
            .programs
            .iter()
            .map(|program| CString::new(*program).expect("letters only"))
            .collect();
        World {
            calls,
            raw,
            lock: NonNull::new(lock.cast()).expect("inside the world"),
            words: bytes as usize / size_of::<u32>(),
            threads,
            pointers: programs.iter().map(|program| program.as_ptr()).collect(),
            programs,
        }
    }

    /// Restarts all programs: the lock as its init leaves it, then `words` set, and each thread at its first request.
    pub fn start(&mut self, words: &[(usize, u32)]) {
        // SAFETY: `raw` is a live world; there is one pointer per thread, to strings that `self` keeps.
        unsafe { (self.calls.reset)(self.raw.as_ptr()) };
        for &(word, value) in words {
            self.set_word(word, value);
        }
        debug_assert_eq!(self.programs.len(), self.threads);
        // SAFETY: as above.
        unsafe { (self.calls.start)(self.raw.as_ptr(), self.pointers.as_ptr()) };
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The lock's words now, as they are in memory.
    pub fn words(&self) -> Vec<u32> {
        // SAFETY: the lock has `words` aligned words, and no thread runs while the script does.
        unsafe { std::slice::from_raw_parts(self.lock.as_ptr(), self.words) }.to_vec()
    }

    /// One word of the lock now, as it is in memory.
    ///
    /// # Panics
    /// When the lock has no such word.
    pub fn word(&self, word: usize) -> u32 {
        assert!(word < self.words, "the lock has {} words", self.words);
        // SAFETY: inside the lock, just checked; no thread runs while the script does.
        unsafe { self.lock.add(word).read() }
    }

    /// Sets one word of the lock, as another thread could.
    ///
    /// # Panics
    /// When the lock has no such word.
    pub fn set_word(&mut self, word: usize, value: u32) {
        assert!(word < self.words, "the lock has {} words", self.words);
        // SAFETY: inside the lock, just checked.
        unsafe { self.lock.add(word).write(value) };
    }

    /// The next request of `thread`.
    pub fn pending(&self, thread: usize) -> Request {
        assert!(thread < self.threads);
        // SAFETY: `thread` is below the world's number of threads; the request is copied before anything moves.
        Request::from(unsafe { *(self.calls.pending)(self.raw.as_ptr(), thread as u32) })
    }

    /// What can be done with `thread` now: bits of [`can`].
    pub fn choices(&self, thread: usize) -> u32 {
        assert!(thread < self.threads);
        // SAFETY: `thread` is below the world's number of threads.
        unsafe { (self.calls.choices)(self.raw.as_ptr(), thread as u32) }
    }

    /// Does one of [`World::choices`].
    ///
    /// # Panics
    /// When `action` is none of them.
    pub fn act(&mut self, thread: usize, action: u32) {
        let possible = match self.choices(thread) {
            choices if choices & can::ANSWER != 0 => choices | can::STEP | can::YES,
            choices => choices,
        };
        assert!(
            possible & action != 0,
            "thread {thread} cannot do {action}: {:?}",
            self.pending(thread)
        );
        // SAFETY: `thread` was checked, and `action` is possible now.
        unsafe { (self.calls.act)(self.raw.as_ptr(), thread as u32, action) };
    }

    /// Carries out the next request of `thread`, and returns it. A step of a wait is one spin. Does nothing if the
    /// thread has ended.
    ///
    /// # Panics
    /// When its stores must be flushed first, or it sleeps.
    pub fn step(&mut self, thread: usize) -> Request {
        let request = self.pending(thread);
        if request == Request::Done {
            return request;
        }
        let answers = self.choices(thread) & (can::STEP | can::ANSWER) != 0;
        assert!(
            answers || matches!(request, Request::Wait { .. }),
            "thread {thread} cannot step: {request:?}"
        );
        // SAFETY: `thread` was checked by pending(); a wait may always be read.
        unsafe { (self.calls.act)(self.raw.as_ptr(), thread as u32, can::STEP) };
        request
    }

    /// Whether `thread` waits for a word that has not changed, or sleeps.
    pub fn is_waiting(&self, thread: usize) -> bool {
        let stuck = self.choices(thread) & can::STEP == 0;
        stuck && matches!(self.pending(thread), Request::Wait { .. } | Request::Parked)
    }

    /// Ends the wait of `thread` as if all its spins were spent.
    ///
    /// # Panics
    /// When it does not wait, waits without a bound, or its word has changed.
    pub fn time_out(&mut self, thread: usize) {
        self.act(thread, can::TIME_OUT);
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

    /// After all threads have ended: calls is_locked, then trylock. Returns 0 or the bits of `script_finish`
    /// (`c/script.h`). Changes the lock.
    pub fn finish(&mut self) -> u32 {
        // SAFETY: a live world.
        unsafe { (self.calls.finish)(self.raw.as_ptr()) }
    }

    /// Appends the state of this world to `to`: worlds with equal bytes behave the same from then on.
    pub fn save(&self, to: &mut Vec<u8>) {
        const ROOM: usize = 1 << 14;
        let start = to.len();
        to.reserve(ROOM);
        // SAFETY: the capacity passed is that of the vector beyond its length; no more bytes are written.
        let bytes = unsafe {
            let free = to.as_mut_ptr().add(start);
            (self.calls.save)(self.raw.as_ptr(), free.cast(), ROOM as u64)
        };
        let bytes = usize::try_from(bytes).expect("a world is small");
        assert!(bytes <= ROOM, "a lock's stack is small");
        // SAFETY: that many bytes were written.
        unsafe { to.set_len(start + bytes) };
    }

    /// Restores a state that [`World::save`] has saved since the last start of this same world.
    pub fn restore(&mut self, from: &[u8]) {
        // SAFETY: the bytes are those that save() of this world wrote: their lengths are in them.
        unsafe { (self.calls.restore)(self.raw.as_ptr(), from.as_ptr().cast()) };
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // SAFETY: made by create, freed once.
        unsafe { (self.calls.destroy)(self.raw.as_ptr()) };
    }
}
