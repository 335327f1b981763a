// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of a scripted world: a small, exhaustive checker for the locks.
//!
//! Depth first, and never twice through the same state: a state is memory, the stores on their way there, the live stacks and
//! registers, and what the monitor must remember. Scheduling choices are: which thread makes its next access; which thread's
//! oldest store reaches memory (x86's store buffers); that a bounded wait whose word has not changed runs out, at any moment;
//! that a sleeper comes back without cause, at any moment and any number of times; what the host answers. A wait without a
//! bound is disabled until its word changes. Nothing is bounded but the programs.
//!
//! Steps that no other thread can see (a store into one's own buffer, what the program says of itself) are made at once and
//! are no choice: they commute with everything that others do. States are distinguished by 128 bits of a hash.

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
    /// Its trylock has just been refused.
    Refused,
    /// It has its answer from is_locked.
    Answered,
}

/// What to explore.
#[derive(Clone, Debug)]
pub struct Exploration<'a> {
    /// Lock, programs, memory, host.
    pub setting: Setting<'a>,
    /// Words of the lock set at the start, by number.
    pub words: &'a [(usize, u32)],
    /// Threads that go first, one after the other, so far each.
    pub before: &'a [(usize, Until)],
    /// Whether bounded waits may run out.
    pub time_outs: bool,
    /// Whether who waits must enter before who asks later.
    pub is_fifo: bool,
    /// Whether all orders are kept: more states.
    pub keeps_orders: bool,
    /// Faults that end the search as soon as one is seen.
    pub stops_at: &'a [Fault],
    /// More states than this are too many.
    pub states_max: usize,
}

impl<'a> Exploration<'a> {
    /// From the very start, under store buffers, with time-outs, wake-ups and a host that says anything.
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

    /// The same of any setting.
    pub fn of(setting: Setting<'a>) -> Self {
        Exploration {
            setting,
            words: &[],
            before: &[],
            time_outs: true,
            is_fifo: false,
            keeps_orders: false,
            stops_at: &[],
            states_max: 4_000_000,
        }
    }

    /// Every interleaving.
    ///
    /// # Panics
    /// When there are more states than `states_max`: choose shorter programs.
    pub fn run(&self) -> Findings {
        let mut search = Search::of(self);
        search.run();
        search.conclude()
    }

    /// One interleaving: a schedule as the findings print it, request by request. Ends early where it does not apply.
    pub fn replay(&self, schedule: &str) -> Vec<String> {
        Search::of(self).replay(&Schedule::parse(schedule))
    }
}
