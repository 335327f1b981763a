// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of a scripted world: a small, exhaustive checker for the locks.
//!
//! The search is depth first and visits each state once. A state is memory, the buffered stores, the live stacks and
//! registers, and the monitor's state. Scheduling choices are: which thread makes its next access; which thread's
//! oldest store reaches memory (x86's store buffers); that a bounded wait whose word has not changed times out, at any
//! moment; that a sleeper returns without cause, at any moment and any number of times; the host's answers. A wait
//! without a bound is disabled until its word changes. Only the programs are bounded.
//!
//! Steps that no other thread can see (a store into the thread's own buffer, requests of the program around the lock)
//! are made at once and are no choice: they commute with all steps of other threads. States are distinguished by a
//! 128-bit hash.

mod search;

use unspin_abi::LockKind;

pub use crate::findings::{Fault, Findings};
use crate::{
    schedule::Schedule,
    script::{Locks, RunStates, Setting},
};
use search::Search;

/// How far a thread goes before the search begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// It waits for a word that has not changed.
    Waiting,
    /// It is inside, about to leave.
    Inside,
    /// Its trylock has just failed.
    Refused,
    /// Its is_locked has just returned.
    Answered,
}

/// What to explore.
#[derive(Clone, Debug)]
pub struct Exploration<'a> {
    /// Lock, programs, memory, host.
    pub setting: Setting<'a>,
    /// Words of the lock set at the start, by number.
    pub words: &'a [(usize, u32)],
    /// Threads that run before the search begins, in this order, each up to the given point.
    pub before: &'a [(usize, Until)],
    /// Whether bounded waits may time out.
    pub time_outs: bool,
    /// Whether a thread that queues must enter before threads that request the lock later.
    pub is_fifo: bool,
    /// Whether no unlock may access the lock once another thread has got it.
    pub frees_last: bool,
    /// Whether the orders of requests and entries are recorded, which makes more states.
    pub keeps_orders: bool,
    /// Faults each of which ends the search at once.
    pub stops_at: &'a [Fault],
    /// The search panics after this many states.
    pub states_max: usize,
}

impl<'a> Exploration<'a> {
    /// All of these programs at the lock as it is, with store buffers, time-outs, spurious wake-ups and every answer of
    /// the host.
    pub fn new(kind: LockKind, programs: &'a [&'a str]) -> Self {
        Exploration::of(Setting {
            locks: Locks::as_they_are(),
            kind: kind.number(),
            programs,
            store_buffers: true,
            looks: true,
            run_states: RunStates::Any,
        })
    }

    /// The same for any setting.
    pub fn of(setting: Setting<'a>) -> Self {
        Exploration {
            setting,
            words: &[],
            before: &[],
            time_outs: true,
            is_fifo: false,
            frees_last: false,
            keeps_orders: false,
            stops_at: &[],
            states_max: 4_000_000,
        }
    }

    /// Explores every interleaving.
    ///
    /// # Panics
    /// When there are more states than `states_max`: choose shorter programs.
    pub fn run(&self) -> Findings {
        let mut search = Search::of(self);
        search.run();
        search.conclude()
    }

    /// Replays a schedule that the findings have printed; returns a line for each request. Ends early if a step is not
    /// possible.
    pub fn replay(&self, schedule: &str) -> Vec<String> {
        Search::of(self).replay(&Schedule::parse(schedule))
    }
}
