// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks each run step by step: which threads are inside, and in which order they may enter.

use crate::{
    findings::Fault,
    request::{By, Request},
    script::World,
};

const THREADS_MAX: usize = 8;

/// A thread's progress at the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Outside,
    /// It requests the lock and has not accessed it yet.
    Asks,
    Tries,
    /// It has changed the lock by a read-modify-write and waits: in a FIFO lock, threads that request the lock later
    /// enter later.
    Queues,
}

/// The history of a run, kept only with `keeps_orders`, because it distinguishes states that are otherwise the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// Threads in order of their first access.
    pub requests: Vec<u8>,
    /// Threads in order of entry.
    pub entries: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Monitor {
    writers: u8,
    readers: u8,
    /// Set of threads.
    inside: u8,
    /// Whether it is checked that no unlock accesses the lock once another thread has got it.
    frees_last: bool,
    /// Then: sets of threads that unlock: of writers, of all, and of those that another one has followed meanwhile.
    leaving_writers: u8,
    leaving: u8,
    overtaken: u8,
    phase: [Phase; THREADS_MAX],
    reads: [bool; THREADS_MAX],
    marked: [bool; THREADS_MAX],
    /// Set of threads that must enter before this one.
    before: [u8; THREADS_MAX],
    pub history: Option<History>,
}

impl Monitor {
    pub fn new(keeps_history: bool, frees_last: bool) -> Monitor {
        Monitor {
            frees_last,
            history: keeps_history.then(History::default),
            ..Monitor::default()
        }
    }

    /// Appends the part of the monitor that affects later checks to a state's key.
    pub fn append_to(&self, key: &mut Vec<u8>) {
        key.extend([
            self.inside,
            self.leaving_writers,
            self.leaving,
            self.overtaken,
        ]);
        for thread in 0..THREADS_MAX {
            let flags = u8::from(self.reads[thread]) | u8::from(self.marked[thread]) << 1;
            key.extend([self.phase[thread] as u8 | flags << 4, self.before[thread]]);
        }
        if let Some(history) = &self.history {
            key.extend_from_slice(&history.requests);
            key.push(0xff);
            key.extend_from_slice(&history.entries);
        }
    }

    fn note_request(&mut self, thread: usize) {
        if let Some(history) = &mut self.history {
            let thread = thread as u8;
            if !history.requests.contains(&thread) {
                history.requests.push(thread);
            }
        }
    }

    /// `thread` is about to access memory.
    pub fn accesses(&mut self, thread: usize) {
        self.note_request(thread);
        if self.phase[thread] != Phase::Asks {
            return;
        }
        self.phase[thread] = Phase::Tries;
        self.before[thread] = (0..THREADS_MAX)
            .filter(|&other| self.phase[other] == Phase::Queues)
            // Readers share the lock, so their order among each other is not checked.
            .filter(|&other| !(self.reads[other] && self.reads[thread]))
            .fold(0, |set, other| set | 1 << other);
    }

    /// `thread` has changed a word by a read-modify-write.
    pub fn marks(&mut self, thread: usize) {
        self.marked[thread] |= self.phase[thread] == Phase::Tries;
    }

    /// `thread` has reached its next request.
    pub fn arrives(&mut self, thread: usize, world: &World) {
        if self.phase[thread] == Phase::Tries && self.marked[thread] && world.is_waiting(thread) {
            self.phase[thread] = Phase::Queues;
        }
    }

    /// Whether `thread` is inside.
    pub fn is_inside(&self, thread: usize) -> bool {
        self.inside & 1 << thread != 0
    }

    /// Whether `thread` unlocks, and another thread has got the lock meanwhile.
    pub fn is_overtaken(&self, thread: usize) -> bool {
        self.overtaken & 1 << thread != 0
    }

    fn leaves(&mut self, thread: usize, writes: bool) {
        self.inside &= !(1 << thread);
        self.leaving |= u8::from(self.frees_last) << thread;
        self.leaving_writers |= u8::from(self.frees_last && writes) << thread;
    }

    /// The unlock of `thread` has returned.
    fn has_left(&mut self, thread: usize) {
        for set in [
            &mut self.leaving,
            &mut self.leaving_writers,
            &mut self.overtaken,
        ] {
            *set &= !(1 << thread);
        }
    }

    fn forget(&mut self, thread: usize) {
        self.phase[thread] = Phase::Outside;
        self.marked[thread] = false;
        self.reads[thread] = false;
        self.before[thread] = 0;
        for before in &mut self.before {
            *before &= !(1 << thread);
        }
    }

    fn enters(&mut self, thread: usize, reads: bool, is_fifo: bool) -> Option<Fault> {
        let overtakes = is_fifo && self.before[thread] != 0;
        self.forget(thread);
        if let Some(history) = &mut self.history {
            history.entries.push(thread as u8);
        }
        self.inside |= 1 << thread;
        self.has_left(thread);
        // A reader shares the lock with readers that have not left it yet.
        self.overtaken |= if reads {
            self.leaving_writers
        } else {
            self.leaving
        };
        if reads {
            self.readers += 1;
        } else {
            self.writers += 1;
        }
        if self.writers > 1 || self.writers == 1 && self.readers > 0 {
            return Some(Fault::TwoInside);
        }
        overtakes.then_some(Fault::OutOfOrder)
    }

    /// `thread` has issued a request of the program around the lock.
    pub fn says(&mut self, thread: usize, request: Request, is_fifo: bool) -> Option<Fault> {
        match request {
            Request::Ask(by) => {
                self.has_left(thread);
                self.phase[thread] = Phase::Asks;
                self.reads[thread] = by == By::Read;
            }
            Request::Enter(_) => return self.enters(thread, false, is_fifo),
            Request::EnterToRead => return self.enters(thread, true, is_fifo),
            Request::Leave => {
                self.writers -= 1;
                self.leaves(thread, true);
            }
            Request::LeaveFromRead => {
                self.readers -= 1;
                self.leaves(thread, false);
            }
            Request::TryRefused => self.forget(thread),
            Request::Wrong(..) => return Some(Fault::Wrong),
            Request::Astray => return Some(Fault::Astray),
            _ => {}
        }
        None
    }
}
