// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest: tasks as coroutines, and the memory that they share.
//!
//! A VM's memory is what its locks see: words with values, and cache lines with a location, a time until which they are
//! busy, and the vCPUs that spin on them.
//!
//! A guest task is a coroutine: the C code of `c/guest.c` on its own stack, which stops at each request to the world.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    cell::Cell,
    ptr,
};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};

use crate::{ids::Cpu, topology::CPUS_MAX};

#[allow(
    non_upper_case_globals,
    non_camel_case_types,
    missing_docs,
    dead_code,
    clippy::undocumented_unsafe_blocks,
    unsafe_op_in_unsafe_fn
)]
pub(crate) mod raw {
    include!(concat!(env!("OUT_DIR"), "/lab.rs"));
}

const LINE_BYTES: usize = 64;
const WORD_BYTES: usize = 4;
const NOBODY: u32 = u32::MAX;

/// A word, by its index in the VM's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u32);

impl Word {
    /// The cache line that contains it.
    pub const fn line(self) -> usize {
        self.0 as usize / (LINE_BYTES / WORD_BYTES)
    }
}

/// A vCPU that spins on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watcher {
    /// Number of the vCPU in the world.
    pub vcpu: u32,
    pub word: Word,
    pub value: u32,
    /// Whether it waits until the word has the value; otherwise while the word has it.
    pub until: bool,
    /// Whether it polls now: it is on a pCPU, in its loop, and has not seen a change yet.
    pub looks: bool,
}

impl Watcher {
    /// Whether its wait ends when the word holds `value`.
    #[inline]
    pub const fn is_over(&self, value: u32) -> bool {
        (value == self.value) == self.until
    }
}

/// A cache line's state.
#[derive(Clone, Debug)]
pub struct Line {
    /// The pCPU that wrote it last; `NOBODY` at first.
    owner: u32,
    /// Time until which it is being transferred, ns: accesses of different pCPUs are serialised.
    pub busy_until_ns: u64,
    /// The pCPUs that have a copy, one bit each.
    copies: Box<[u64]>,
    /// The vCPUs that spin on a word of it, in order of arrival.
    pub watchers: Vec<Watcher>,
}

impl Line {
    /// The pCPU that wrote it last.
    pub fn owner(&self) -> Option<Cpu> {
        (self.owner != NOBODY).then_some(Cpu(self.owner))
    }

    /// Whether this pCPU can read it from its own cache.
    pub fn has_copy(&self, cpu: Cpu) -> bool {
        self.copies[cpu.index() / 64] >> (cpu.0 % 64) & 1 == 1
    }

    /// Whether this pCPU can write it in its own cache.
    pub fn is_alone(&self, cpu: Cpu) -> bool {
        self.owner == cpu.0 && !self.is_shared_beside(cpu)
    }

    /// This pCPU has a copy from now on.
    pub fn share(&mut self, cpu: Cpu) {
        self.copies[cpu.index() / 64] |= 1 << (cpu.0 % 64);
    }

    /// Sets whether this vCPU polls; does nothing if it does not spin on this line.
    pub fn set_looks(&mut self, vcpu: u32, looks: bool) {
        if let Some(watcher) = self.watchers.iter_mut().find(|one| one.vcpu == vcpu) {
            watcher.looks = looks;
        }
    }

    /// Only this pCPU has a copy from now on.
    pub fn own(&mut self, cpu: Cpu) {
        self.copies.fill(0);
        self.copies[cpu.index() / 64] |= 1 << (cpu.0 % 64);
        self.owner = cpu.0;
    }

    /// Whether another pCPU has a copy.
    fn is_shared_beside(&self, cpu: Cpu) -> bool {
        let (place, bit) = (cpu.index() / 64, 1u64 << (cpu.0 % 64));
        let mut words = self.copies.iter().enumerate();
        words.any(|(index, word)| if index == place { word & !bit } else { *word } != 0)
    }
}

/// The memory of one VM.
pub struct Memory {
    bytes: *mut u8,
    layout: Layout,
    lines: Vec<Line>,
    /// Index of the first vCPU's word of missing answers.
    unanswered: u32,
}

impl Memory {
    /// Memory for this many locks of a kind (with this tau, if the kind has one) and vCPUs, on a host with this many
    /// pCPUs.
    ///
    /// # Panics
    /// When there is no memory, or for a lock kind that does not exist.
    pub fn new((lock_kind, tau_spins): (u32, u32), locks: u32, vcpus: u32, cpus: u32) -> Memory {
        assert!(lock_kind < raw::UNSPIN_LOCK_KIND_COUNT && cpus <= CPUS_MAX);
        // SAFETY: no pointer is passed.
        let size = unsafe { raw::unspin_lab_memory_bytes(lock_kind, locks, vcpus) } as usize;
        // SAFETY: as above.
        let unanswered = unsafe { raw::unspin_lab_unanswered_at(lock_kind, locks, 0) };
        let layout = Layout::from_size_align(size.max(LINE_BYTES), LINE_BYTES).expect("small");
        // SAFETY: the layout's size is not 0.
        let bytes = unsafe { alloc_zeroed(layout) };
        if bytes.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the allocation has the size that the C code gave, is aligned and zero; the kind exists.
        unsafe { raw::unspin_lab_memory_init(bytes, lock_kind, locks, tau_spins) };
        let line = Line {
            owner: NOBODY,
            busy_until_ns: 0,
            copies: vec![0; cpus.div_ceil(64) as usize].into(),
            watchers: Vec::new(),
        };
        Memory {
            bytes,
            layout,
            lines: vec![line; layout.size() / LINE_BYTES],
            unanswered: (unanswered / WORD_BYTES as u64) as u32,
        }
    }

    /// Address of the memory, for the guest's tasks. It does not change.
    pub fn begin(&self) -> *mut u8 {
        self.bytes
    }

    /// The word at this address of the VM's memory.
    ///
    /// # Panics
    /// When the address is not in this memory, which would be a mistake in the lab's C code.
    #[inline]
    pub fn word(&self, address: *const u8) -> Word {
        let offset = (address as usize).wrapping_sub(self.bytes as usize);
        assert!(offset < self.layout.size() && offset % WORD_BYTES == 0);
        Word((offset / WORD_BYTES) as u32)
    }

    /// The word that counts the answers missing to a vCPU's shootdown.
    pub fn unanswered(&self, number: u32) -> Word {
        Word(self.unanswered + number * (LINE_BYTES / WORD_BYTES) as u32)
    }

    /// The word's value.
    #[inline]
    pub fn get(&self, word: Word) -> u32 {
        // SAFETY: words are made by `word` and `unanswered`, within the allocation; no guest task runs meanwhile.
        unsafe {
            self.bytes
                .cast::<u32>()
                .add(word.0 as usize)
                .read_volatile()
        }
    }

    /// Sets the word's value.
    #[inline]
    pub fn set(&mut self, word: Word, value: u32) {
        // SAFETY: as in `get`.
        unsafe {
            let place = self.bytes.cast::<u32>().add(word.0 as usize);
            place.write_volatile(value);
        }
    }

    /// The line of a word.
    #[inline]
    pub fn line(&self, word: Word) -> &Line {
        &self.lines[word.line()]
    }

    /// The same, mutable.
    #[inline]
    pub fn line_mut(&mut self, word: Word) -> &mut Line {
        &mut self.lines[word.line()]
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and freed only here.
        unsafe { dealloc(self.bytes, self.layout) }
    }
}

/// Bytes of a task's stack: iterations and locks use little (measured: under 1 KiB); a guard page is below it.
const STACK_BYTES: usize = 16 * 1024;

/// A guest task's request, by `enum unspin_lab_kind`. `word`: its address in the VM's memory, or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub kind: u32,
    pub word: *const u8,
    pub first: u32,
    pub second: u32,
}

thread_local! {
    /// The yielder of the coroutine that runs on this OS thread now; null while the world runs.
    static RUNNING: Cell<*const Yielder<u32, Request>> = const { Cell::new(ptr::null()) };
    /// The task of that coroutine.
    static SELF: Cell<*const raw::unspin_lab_task> = const { Cell::new(ptr::null()) };
}

/// See `c/lab.h`. Called on a guest task's stack only.
#[unsafe(no_mangle)]
extern "C" fn unspin_lab_self() -> *const raw::unspin_lab_task {
    SELF.get()
}

/// See `c/lab.h`. Called on a guest task's stack only.
#[unsafe(no_mangle)]
extern "C" fn unspin_lab_perform(kind: u32, word: *const u8, first: u32, second: u32) -> u32 {
    let yielder = RUNNING.get();
    let request = Request {
        kind,
        word,
        first,
        second,
    };
    // SAFETY: `Port::resume` has set it to the yielder of the very stack that calls this, which outlives the call.
    unsafe { &*yielder }.suspend(request)
}

/// The load at that time of a guest whose load changes at this interval (`c/lab.h`, `enum unspin_lab_load`);
/// 0: never. As the micro guest's `is_second_load()`.
pub fn load_at(changes_every_ns: u64, now_ns: u64) -> u32 {
    match now_ns.checked_div(changes_every_ns) {
        None => raw::UNSPIN_LAB_LOAD_BOTH,
        Some(times) if times % 2 == 0 => raw::UNSPIN_LAB_LOAD_LOCKS,
        Some(_) => raw::UNSPIN_LAB_LOAD_SHOOTDOWNS,
    }
}

/// A guest task and its stack.
pub struct Port {
    coroutine: Coroutine<u32, Request, (), DefaultStack>,
    yielder: Box<Cell<*const Yielder<u32, Request>>>,
    task: Box<raw::unspin_lab_task>,
}

impl Port {
    /// A task that begins at the first [`Port::resume`].
    ///
    /// # Errors
    /// When there is no memory for its stack.
    ///
    /// # Safety
    /// What `task` points to must outlive the port, and satisfy `c/lab.h`.
    pub unsafe fn new(task: raw::unspin_lab_task) -> std::io::Result<Port> {
        let mut task = Box::new(task);
        let yielder = Box::new(Cell::new(ptr::null()));
        let (own, place): (*mut raw::unspin_lab_task, *const Cell<_>) =
            (&raw mut *task, &raw const *yielder);
        let coroutine = Coroutine::with_stack(DefaultStack::new(STACK_BYTES)?, move |with, _| {
            // SAFETY: both boxes live as long as the port, hence as this stack runs; the caller guarantees what
            // the task points to.
            unsafe {
                (*place).set(with);
                RUNNING.set(with);
                raw::unspin_lab_run(own);
            }
        });
        Ok(Port {
            coroutine,
            yielder,
            task,
        })
    }

    /// Continues with this answer to the last request (any value the first time) until the next request.
    #[inline]
    pub fn resume(&mut self, answer: u32) -> Request {
        RUNNING.set(self.yielder.get());
        SELF.set(&raw const *self.task);
        match self.coroutine.resume(answer) {
            CoroutineResult::Yield(request) => request,
            CoroutineResult::Return(()) => unreachable!("unspin_lab_run() does not return"),
        }
    }

    /// The load of the iterations that begin from now on.
    pub fn set_load(&mut self, load: u32) {
        // SAFETY: as in `take_notes`.
        unsafe {
            let task = &raw mut *self.task;
            (&raw mut (*task).load).write_volatile(load);
        }
    }

    /// Returns the locks requested and released since the last request, and clears the notes.
    #[inline]
    pub fn take_notes(&mut self) -> (Option<u32>, Option<u32>) {
        let note = |word: &mut u32| std::mem::take(word).checked_sub(1);
        // SAFETY: the coroutine, which alone has the pointer, does not run now; read and write are volatile since the
        // coroutine changes the value unseen by the compiler.
        unsafe {
            let task = &raw mut *self.task;
            let mut asked = (&raw mut (*task).asked).read_volatile();
            let mut released = (&raw mut (*task).released).read_volatile();
            if asked | released != 0 {
                (&raw mut (*task).asked).write_volatile(0);
                (&raw mut (*task).released).write_volatile(0);
            }
            (note(&mut asked), note(&mut released))
        }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // SAFETY: the stack holds frames of C and of the closure above, none of which owns anything.
        unsafe { self.coroutine.force_reset() }
    }
}
