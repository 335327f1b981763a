// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest's side: tasks as coroutines, and the memory that they share.
//!
//! A VM's memory is as its locks see it: words that hold values, lines that are somewhere and can be busy, and who watches.
//!
//! A guest task as a coroutine: the C of `c/guest.c` on a stack of its own, which stops at each request to the world.

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

/// A word, by its place in the VM's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(u32);

impl Word {
    /// The line it lies in.
    pub const fn line(self) -> usize {
        self.0 as usize / (LINE_BYTES / WORD_BYTES)
    }
}

/// Who spins on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watcher {
    /// Number of the vCPU in the world.
    pub vcpu: u32,
    pub word: Word,
    pub value: u32,
    /// Until it has the value, not while it has it.
    pub until: bool,
    /// It looks now: on a pCPU, in its loop, and has not seen a change yet.
    pub looks: bool,
}

impl Watcher {
    /// Whether its wait is over when the word holds that.
    #[inline]
    pub const fn is_over(&self, value: u32) -> bool {
        (value == self.value) == self.until
    }
}

/// Where a line is.
#[derive(Clone, Debug)]
pub struct Line {
    /// The pCPU that wrote it last; `NOBODY` at first.
    owner: u32,
    /// Until when it is being handed over, ns: accesses by different pCPUs follow one another.
    pub busy_until_ns: u64,
    /// pCPUs that have a copy, a bit each.
    copies: Box<[u64]>,
    /// Who spins on a word of it, in order of arrival.
    pub watchers: Vec<Watcher>,
}

impl Line {
    /// The pCPU that wrote it last.
    pub fn owner(&self) -> Option<Cpu> {
        (self.owner != NOBODY).then_some(Cpu(self.owner))
    }

    /// Whether that pCPU can read it without asking anybody.
    pub fn has_copy(&self, cpu: Cpu) -> bool {
        self.copies[cpu.index() / 64] >> (cpu.0 % 64) & 1 == 1
    }

    /// Whether that pCPU can write it without asking anybody.
    pub fn is_alone(&self, cpu: Cpu) -> bool {
        self.owner == cpu.0 && !self.is_shared_beside(cpu)
    }

    /// That pCPU has a copy from now on.
    pub fn share(&mut self, cpu: Cpu) {
        self.copies[cpu.index() / 64] |= 1 << (cpu.0 % 64);
    }

    /// That vCPU looks, or does not, from now on; nothing when it does not spin here.
    pub fn set_looks(&mut self, vcpu: u32, looks: bool) {
        if let Some(watcher) = self.watchers.iter_mut().find(|one| one.vcpu == vcpu) {
            watcher.looks = looks;
        }
    }

    /// Only that pCPU has it from now on.
    pub fn own(&mut self, cpu: Cpu) {
        self.copies.fill(0);
        self.copies[cpu.index() / 64] |= 1 << (cpu.0 % 64);
        self.owner = cpu.0;
    }

    /// Whether any pCPU but that one has a copy.
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
    /// The first vCPU's word of unanswered requests, in words.
    unanswered: u32,
}

impl Memory {
    /// With that many locks of a kind (and that tau, if they have one), for so many vCPUs, on a host of so many pCPUs.
    ///
    /// # Panics
    /// When there is no memory, or for a lock kind that does not exist.
    pub fn new((lock_kind, tau_spins): (u32, u32), locks: u32, vcpus: u32, cpus: u32) -> Memory {
        assert!(lock_kind < raw::UNSPIN_LOCK_KIND_COUNT && cpus <= CPUS_MAX);
        // SAFETY: no pointer goes in.
        let size = unsafe { raw::unspin_lab_memory_bytes(lock_kind, locks, vcpus) } as usize;
        // SAFETY: as above.
        let unanswered = unsafe { raw::unspin_lab_unanswered_at(lock_kind, locks, 0) };
        let layout = Layout::from_size_align(size.max(LINE_BYTES), LINE_BYTES).expect("small");
        // SAFETY: the layout's size is not 0.
        let bytes = unsafe { alloc_zeroed(layout) };
        if bytes.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: so many bytes as it asked for, aligned and zero; the kind exists.
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

    /// Where it begins, for the guest's tasks. It stays there.
    pub fn begin(&self) -> *mut u8 {
        self.bytes
    }

    /// The word that a task of this VM names.
    ///
    /// # Panics
    /// When it is not one of this memory: our own C would be wrong.
    #[inline]
    pub fn word(&self, address: *const u8) -> Word {
        let offset = (address as usize).wrapping_sub(self.bytes as usize);
        assert!(offset < self.layout.size() && offset % WORD_BYTES == 0);
        Word((offset / WORD_BYTES) as u32)
    }

    /// The word in which answers to a vCPU's requests are counted down.
    pub fn unanswered(&self, number: u32) -> Word {
        Word(self.unanswered + number * (LINE_BYTES / WORD_BYTES) as u32)
    }

    /// What the word holds.
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

    /// Makes it hold that.
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

    /// The same, to change it.
    #[inline]
    pub fn line_mut(&mut self, word: Word) -> &mut Line {
        &mut self.lines[word.line()]
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody else frees it.
        unsafe { dealloc(self.bytes, self.layout) }
    }
}

/// Enough for the iterations and the locks, all of which are shallow (measured: under 1 KiB); the guard page is below it.
const STACK_BYTES: usize = 16 * 1024;

/// What a guest task wants, as `enum unspin_lab_kind` says. `word`: its address in the VM's memory, or null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub kind: u32,
    pub word: *const u8,
    pub first: u32,
    pub second: u32,
}

thread_local! {
    /// The yielder of the coroutine that runs on this thread now; null while the world does.
    static RUNNING: Cell<*const Yielder<u32, Request>> = const { Cell::new(ptr::null()) };
    /// The task of that coroutine.
    static SELF: Cell<*const raw::unspin_lab_task> = const { Cell::new(ptr::null()) };
}

/// What `c/lab.h` says of it: on a guest task's stack only.
#[unsafe(no_mangle)]
extern "C" fn unspin_lab_self() -> *const raw::unspin_lab_task {
    SELF.get()
}

/// What `c/lab.h` says of it: on a guest task's stack only.
#[unsafe(no_mangle)]
extern "C" fn unspin_lab_perform(kind: u32, word: *const u8, first: u32, second: u32) -> u32 {
    let yielder = RUNNING.get();
    let request = Request {
        kind,
        word,
        first,
        second,
    };
    // SAFETY: `Port::resume` has set it to the yielder on the very stack that calls this, which outlives the call.
    unsafe { &*yielder }.suspend(request)
}

/// A guest task and its stack.
pub struct Port {
    coroutine: Coroutine<u32, Request, (), DefaultStack>,
    yielder: Box<Cell<*const Yielder<u32, Request>>>,
    task: Box<raw::unspin_lab_task>,
}

impl Port {
    /// A task that will begin at the first [`Port::resume`].
    ///
    /// # Errors
    /// When there is no memory for its stack.
    ///
    /// # Safety
    /// What `task` points to must outlive the port and be as `c/lab.h` says.
    pub unsafe fn new(task: raw::unspin_lab_task) -> std::io::Result<Port> {
        let mut task = Box::new(task);
        let yielder = Box::new(Cell::new(ptr::null()));
        let (own, place): (*mut raw::unspin_lab_task, *const Cell<_>) =
            (&raw mut *task, &raw const *yielder);
        let coroutine = Coroutine::with_stack(DefaultStack::new(STACK_BYTES)?, move |with, _| {
            // SAFETY: both boxes live as long as the port, hence as this stack runs; the caller vouches for what
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

    /// Goes on with that answer to the last request (any, the first time) until the next.
    #[inline]
    pub fn resume(&mut self, answer: u32) -> Request {
        RUNNING.set(self.yielder.get());
        SELF.set(&raw const *self.task);
        match self.coroutine.resume(answer) {
            CoroutineResult::Yield(request) => request,
            CoroutineResult::Return(()) => unreachable!("unspin_lab_run() does not return"),
        }
    }

    /// The lock asked for and the one released since the last request, and forgets them.
    #[inline]
    pub fn take_notes(&mut self) -> (Option<u32>, Option<u32>) {
        let note = |word: &mut u32| std::mem::take(word).checked_sub(1);
        // SAFETY: the coroutine, which alone has the pointer, does not run now; the read and write are volatile since it
        // wrote behind the compiler's back.
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
