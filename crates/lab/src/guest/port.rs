// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest task as a coroutine: the C of `c/guest.c` on a stack of its own, which stops at each request to the world.

use std::{cell::Cell, ptr};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};

use super::raw;

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
