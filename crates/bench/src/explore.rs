// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every interleaving of a scripted world: a small, exhaustive checker for the locks.
//!
//! Depth first, replaying from the start, and never twice through the same state: a state is the lock's memory, the
//! live stacks and registers, and the order of entries so far. Time passes freely: a bounded wait whose word has not
//! changed may run out at any moment; one without a bound is disabled until its word changes. The world is
//! sequentially consistent; memory orders are ThreadSanitizer's part.

use std::collections::HashMap;

use unspin_abi::LockKind;

pub use crate::findings::Findings;
use crate::script::{FOREVER, Request, World};

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
    /// The lock.
    pub kind: LockKind,
    /// One program per thread, letters as in [`World::new`].
    pub programs: &'a [&'a str],
    /// Words of the lock set at the start, by number.
    pub words: &'a [(usize, u32)],
    /// Threads that go first, one after the other, so far each.
    pub before: &'a [(usize, Until)],
    /// Whether bounded waits may run out.
    pub time_outs: bool,
}

impl<'a> Exploration<'a> {
    /// From the very start, with time-outs.
    pub fn new(kind: LockKind, programs: &'a [&'a str]) -> Self {
        Exploration {
            kind,
            programs,
            words: &[],
            before: &[],
            time_outs: true,
        }
    }

    /// Every interleaving.
    ///
    /// # Panics
    /// When there are more than two million states: choose shorter programs.
    pub fn run(self) -> Findings {
        let mut search = Search {
            world: World::new(self.kind, self.programs),
            exploration: self,
            seen: HashMap::new(),
            edges: Vec::new(),
            complete: Vec::new(),
            findings: Findings::default(),
        };
        search.run();
        search.findings.states = search.seen.len();
        search.findings.hopeless = search.count_hopeless();
        search.findings
    }
}

/// The part of a state that is history.
#[derive(Clone, Debug, Default)]
struct Progress {
    steps: Vec<u8>,
    requests: Vec<u8>,
    entries: Vec<u8>,
    inside: usize,
}

/// A way on: this thread steps, or spends its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    thread: usize,
    time_out: bool,
}

struct Frame {
    state: usize,
    choices: Vec<Choice>,
    next: usize,
}

/// The search: states seen, and which leads to which.
struct Search<'a> {
    world: World,
    exploration: Exploration<'a>,
    seen: HashMap<Vec<u8>, usize>,
    edges: Vec<Vec<usize>>,
    complete: Vec<usize>,
    findings: Findings,
}

impl Search<'_> {
    fn run(&mut self) {
        let mut stack: Vec<Frame> = Vec::new();
        let mut progress = self.replay(&stack);
        loop {
            let (state, is_new) = self.enter_state(&progress);
            if let Some(parent) = stack.last() {
                self.edges[parent.state].push(state);
            }
            let choices = if is_new {
                self.choices(state, &progress)
            } else {
                Vec::new()
            };
            stack.push(Frame {
                state,
                choices,
                next: 0,
            });
            while stack
                .last()
                .is_some_and(|frame| frame.next == frame.choices.len())
            {
                stack.pop();
            }
            let Some(frame) = stack.last_mut() else {
                return;
            };
            frame.next += 1;
            // Going deeper needs one step, going back a replay.
            progress = if is_new && frame.state == state {
                let choice = frame.choices[frame.next - 1];
                self.take(choice, &mut progress);
                progress
            } else {
                self.replay(&stack)
            };
        }
    }

    fn replay(&mut self, stack: &[Frame]) -> Progress {
        let mut progress = Progress::default();
        self.world.start(self.exploration.words);
        for &(thread, until) in self.exploration.before {
            self.take_until(thread, until, &mut progress);
        }
        for frame in stack {
            self.take(frame.choices[frame.next - 1], &mut progress);
        }
        progress
    }

    fn take_until(&mut self, thread: usize, until: Until, progress: &mut Progress) {
        let there = |world: &World| match until {
            Until::Waiting => world.is_waiting(thread),
            Until::Inside => world.pending(thread) == Request::Leave,
            Until::Refused => world.pending(thread) == Request::TryRefused,
            Until::Answered => matches!(world.pending(thread), Request::IsLocked(_)),
        };
        for _ in 0..1_000 {
            if there(&self.world) {
                return;
            }
            let step = Choice {
                thread,
                time_out: false,
            };
            self.take(step, progress);
        }
        panic!("thread {thread} never got there: {until:?}");
    }

    fn enter_state(&mut self, progress: &Progress) -> (usize, bool) {
        let mut key = Vec::with_capacity(1024);
        self.world.append_state(&mut key);
        key.extend_from_slice(&progress.requests);
        key.push(0xff);
        key.extend_from_slice(&progress.entries);
        let next = self.seen.len();
        assert!(next < 2_000_000, "too many states: choose shorter programs");
        let state = *self.seen.entry(key).or_insert(next);
        if state == next {
            self.edges.push(Vec::new());
        }
        (state, state == next)
    }

    fn choices(&mut self, state: usize, progress: &Progress) -> Vec<Choice> {
        let mut choices = Vec::new();
        let mut all_done = true;
        for thread in 0..self.world.threads() {
            let request = self.world.pending(thread);
            all_done &= request == Request::Done;
            let time_out = match request {
                Request::Done => continue,
                Request::Wait { turns, .. } if self.world.is_waiting(thread) => {
                    if turns == FOREVER || !self.exploration.time_outs {
                        continue;
                    }
                    true
                }
                _ => false,
            };
            choices.push(Choice { thread, time_out });
        }
        if all_done {
            self.complete.push(state);
            let place = |entry: &u8| progress.requests.iter().position(|r| r == entry);
            let by_request = progress.entries.iter().filter_map(place).map(|p| p as u8);
            self.findings.orders_by_request.insert(by_request.collect());
            self.findings.orders.insert(progress.entries.clone());
        } else if choices.is_empty() {
            self.findings.deadlocks.push(progress.steps.clone());
        }
        choices
    }

    fn take(&mut self, choice: Choice, progress: &mut Progress) {
        let thread = choice.thread as u8;
        progress.steps.push(thread);
        let request = if choice.time_out {
            let request = self.world.pending(choice.thread);
            self.world.time_out(choice.thread);
            request
        } else {
            self.world.step(choice.thread)
        };
        if !progress.requests.contains(&thread) {
            progress.requests.push(thread);
        }
        match request {
            Request::Enter(by_lock) => {
                progress.entries.push(thread);
                progress.inside += 1;
                if progress.inside > 1 {
                    self.findings.violations.push(progress.steps.clone());
                }
                if !by_lock {
                    self.findings.try_answers.insert(true);
                }
            }
            Request::Leave => progress.inside -= 1,
            Request::TryRefused => {
                self.findings.try_answers.insert(false);
            }
            Request::IsLocked(answer) => {
                self.findings.is_locked_answers.insert(answer);
            }
            _ => {}
        }
    }

    /// States from which no complete one can be reached.
    fn count_hopeless(&self) -> usize {
        let mut backwards = vec![Vec::new(); self.edges.len()];
        for (from, targets) in self.edges.iter().enumerate() {
            for &to in targets {
                backwards[to].push(from);
            }
        }
        let mut hopeful = vec![false; self.edges.len()];
        let mut work = self.complete.clone();
        while let Some(state) = work.pop() {
            if !std::mem::replace(&mut hopeful[state], true) {
                work.extend(&backwards[state]);
            }
        }
        hopeful.iter().filter(|&&hopeful| !hopeful).count()
    }
}
