// SPDX-License-Identifier: MIT OR Apache-2.0
//! The search through all states, and the path to each, which can be replayed. States are distinguished by a 128-bit
//! hash.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use super::{Exploration, Until};
use crate::{
    findings::{Fault, Findings},
    graph::Graph,
    monitor::{History, Monitor},
    request::Request,
    schedule::{Choice, Schedule},
    script::{World, can},
};

struct Frame {
    state: u32,
    choices: Vec<Choice>,
    next: usize,
    /// Whether a thread queries the host in this state.
    is_answer: bool,
    /// Offset of this state's copy in the buffer of copies.
    saved_at: usize,
    monitor: Monitor,
}

/// The search: the states seen, and the edges between them.
pub(super) struct Search<'a> {
    pub(super) world: World,
    monitor: Monitor,
    exploration: &'a Exploration<'a>,
    seen: HashMap<u128, u32, BuildHasherDefault<Low>>,
    /// For each state the previous state and the choice by which it was first reached.
    pub(super) origins: Vec<(u32, Choice)>,
    graph: Graph,
    findings: Findings,
    key: Vec<u8>,
}

impl<'a> Search<'a> {
    /// A search that has not started.
    pub(super) fn of(exploration: &'a Exploration<'a>) -> Self {
        Search {
            world: World::of(&exploration.setting),
            monitor: Monitor::default(),
            exploration,
            seen: HashMap::default(),
            origins: Vec::new(),
            graph: Graph::default(),
            findings: Findings::default(),
            key: Vec::new(),
        }
    }

    /// Explores every interleaving, until a fault of `stops_at` is found.
    pub(super) fn run(&mut self) {
        let mut copies = Vec::new();
        let mut stack: Vec<Frame> = Vec::new();
        if let Some(fault) = self.begin() {
            return self.findings.fault(fault, || "before the search".into());
        }
        let start = self.enter_state().0;
        self.origins.push((start, Choice::default()));
        self.push(&mut stack, &mut copies, start);
        let mut is_there = true;
        while let Some(frame) = stack.last_mut() {
            let Some(&choice) = frame.choices.get(frame.next) else {
                copies.truncate(frame.saved_at);
                stack.pop();
                is_there = false;
                continue;
            };
            frame.next += 1;
            if !is_there {
                self.world.restore(&copies[frame.saved_at..]);
                self.monitor = frame.monitor.clone();
            }
            is_there = false;
            let from = frame.state;
            let is_answer = frame.is_answer;
            if let Some(fault) = self.take(choice) {
                let path = self.path(from).then(choice);
                self.findings.fault(fault, || path.to_string());
                if self.has_found_enough() {
                    return;
                }
                continue;
            }
            let (to, is_new) = self.enter_state();
            self.graph.edges.push((from, to, choice.way(is_answer)));
            if is_new {
                self.origins.push((from, choice));
                is_there = self.push(&mut stack, &mut copies, to);
                if self.has_found_enough() {
                    return;
                }
            }
        }
    }

    fn has_found_enough(&self) -> bool {
        let mut wanted = self.exploration.stops_at.iter();
        wanted.any(|fault| self.findings.faults.contains_key(fault))
    }

    /// Starts all threads, and runs those of `before` as far as they go.
    pub(super) fn begin(&mut self) -> Option<Fault> {
        self.world.start(self.exploration.words);
        self.monitor = Monitor::new(self.exploration.keeps_orders, self.exploration.frees_last);
        for thread in 0..self.world.threads() {
            if let Some(fault) = self.settle(thread) {
                return Some(fault);
            }
        }
        let before = self.exploration.before;
        before
            .iter()
            .find_map(|&(thread, until)| self.take_until(thread, until))
    }

    fn take_until(&mut self, thread: usize, until: Until) -> Option<Fault> {
        let answers = (
            self.findings.try_answers.len(),
            self.findings.is_locked_answers.len(),
        );
        for _ in 0..1_000 {
            let is_there = match until {
                Until::Waiting => self.world.is_waiting(thread),
                Until::Inside => self.monitor.is_inside(thread),
                Until::Refused => self.findings.try_answers.len() > answers.0,
                Until::Answered => self.findings.is_locked_answers.len() > answers.1,
            };
            if is_there {
                return None;
            }
            let choices = self.world.choices(thread);
            let action = if choices & can::FLUSH != 0 {
                can::FLUSH
            } else {
                can::STEP
            };
            if let Some(fault) = self.take(Choice { thread, action }) {
                return Some(fault);
            }
        }
        panic!("thread {thread} never got there: {until:?}");
    }

    /// Pushes a new state and its choices, if it has any. Returns whether it was pushed.
    fn push(&mut self, stack: &mut Vec<Frame>, copies: &mut Vec<u8>, state: u32) -> bool {
        let saved_at = copies.len();
        self.world.save(copies);
        let choices = self.choices(state);
        if choices.is_empty() {
            copies.truncate(saved_at);
            return false;
        }
        let choices_are_answers = choices.last().is_some_and(|last| last.action == can::YES);
        stack.push(Frame {
            state,
            choices,
            next: 0,
            is_answer: choices_are_answers,
            saved_at,
            monitor: self.monitor.clone(),
        });
        true
    }

    fn enter_state(&mut self) -> (u32, bool) {
        self.key.clear();
        self.world.save(&mut self.key);
        self.monitor.append_to(&mut self.key);
        let next = self.graph.states as u32;
        let state = *self.seen.entry(hash(&self.key)).or_insert(next);
        if state == next {
            self.graph.states += 1;
            let most = self.exploration.states_max;
            assert!(self.graph.states <= most, "more than {most} states");
        }
        (state, state == next)
    }

    fn choices(&mut self, state: u32) -> Vec<Choice> {
        let threads = self.world.threads();
        let possible: Vec<u32> = (0..threads).map(|t| self.world.choices(t)).collect();
        // No other thread sees the host's answer, so it is chosen at once.
        if let Some(thread) = possible.iter().position(|&p| p & can::ANSWER != 0) {
            let answers = [can::STEP, can::YES];
            return answers.map(|action| Choice { thread, action }).to_vec();
        }
        let mut choices = Vec::new();
        for (thread, &possible) in possible.iter().enumerate() {
            for action in [can::STEP, can::FLUSH, can::TIME_OUT, can::WAKE] {
                let may = action != can::TIME_OUT || self.exploration.time_outs;
                if possible & action != 0 && may {
                    choices.push(Choice { thread, action });
                }
            }
        }
        let all_done = (0..threads).all(|t| self.world.pending(t) == Request::Done);
        if all_done && choices.is_empty() {
            self.complete(state);
        } else if choices.iter().all(|choice| choice.action == can::WAKE) {
            let path = self.path(state);
            self.findings.fault(Fault::Deadlock, || path.to_string());
        }
        choices
    }

    fn complete(&mut self, state: u32) {
        self.graph.complete.push(state);
        if let Some(History { requests, entries }) = &self.monitor.history {
            let place = |entry: &u8| requests.iter().position(|r| r == entry);
            let by_request = entries.iter().filter_map(place).map(|p| p as u8);
            self.findings.orders_by_request.insert(by_request.collect());
            self.findings.orders.insert(entries.clone());
        }
        if self.world.finish() != 0 {
            let path = self.path(state);
            self.findings.fault(Fault::LeftLocked, || path.to_string());
        }
    }

    /// Makes all steps of `thread` that no other thread can see.
    fn settle(&mut self, thread: usize) -> Option<Fault> {
        for _ in 0..10_000 {
            let possible = self.world.choices(thread);
            if possible & can::LOCAL == 0 || possible & can::STEP == 0 {
                self.monitor.arrives(thread, &self.world);
                return None;
            }
            let request = self.world.step(thread);
            match request {
                Request::Enter(false) => {
                    self.findings.try_answers.insert(true);
                }
                Request::TryRefused => {
                    self.findings.try_answers.insert(false);
                }
                Request::IsLocked(answer) => {
                    self.findings.is_locked_answers.insert(answer);
                }
                _ => {}
            }
            let fault = self.monitor.says(thread, request, self.exploration.is_fifo);
            if fault.is_some() {
                return fault;
            }
        }
        panic!("thread {thread} continues alone without end");
    }

    pub(super) fn take(&mut self, choice: Choice) -> Option<Fault> {
        let Choice { thread, action } = choice;
        let request = self.world.pending(thread);
        if action != can::FLUSH {
            self.monitor.accesses(thread);
        }
        let accesses = action == can::FLUSH || request.word().is_some();
        if accesses && self.monitor.is_overtaken(thread) {
            return Some(Fault::AfterFree);
        }
        let changes = request.modifies().filter(|_| action == can::STEP);
        let before = changes.map(|word| self.world.word(word));
        self.world.act(thread, action);
        if before != changes.map(|word| self.world.word(word)) {
            self.monitor.marks(thread);
        }
        self.settle(thread)
    }

    pub(super) fn conclude(mut self) -> Findings {
        self.findings.states = self.graph.states;
        self.findings.transitions = self.graph.edges.len();
        if self.has_found_enough() {
            return self.findings;
        }
        (self.findings.executions, self.findings.circling) = self.graph.executions();
        let hopeless = self.graph.hopeless();
        if let Some(&first) = hopeless.iter().min() {
            let path = self.path(first).to_string();
            let entry = (hopeless.len(), path);
            self.findings.faults.insert(Fault::Hopeless, entry);
        }
        self.findings
    }
}

/// A hasher for keys that are hashes already: returns their low bits.
#[derive(Default)]
pub(super) struct Low(u64);

impl Hasher for Low {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }
    fn write_u128(&mut self, value: u128) {
        self.0 = value as u64;
    }
}

/// A 128-bit hash of `bytes`: two chains, each of invertible steps (xor, multiplication by an odd number, shift).
pub(super) fn hash(bytes: &[u8]) -> u128 {
    let (mut a, mut b) = (bytes.len() as u64, 0x243f_6a88_85a3_08d3_u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        let word = u64::from_le_bytes(word);
        a = (a ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        a ^= a >> 32;
        b = (b ^ word.rotate_left(29)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        b ^= b >> 29;
    }
    u128::from(a.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ b >> 31) << 64 | u128::from(b ^ a)
}

impl Search<'_> {
    /// The choices that lead from the start to `state`.
    pub(super) fn path(&self, state: u32) -> Schedule {
        let mut choices = Vec::new();
        let mut at = state as usize;
        while at != 0 {
            let (from, choice) = self.origins[at];
            choices.push(choice);
            at = from as usize;
        }
        choices.reverse();
        Schedule(choices)
    }

    /// What happens on that way, request by request; ends early where it does not apply.
    pub(super) fn replay(&mut self, schedule: &Schedule) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(fault) = self.begin() {
            return vec![format!("{fault:?}")];
        }
        for &choice in &schedule.0 {
            let request = self.world.pending(choice.thread);
            let line = format!("{choice:<3} {request:?}");
            let fault = self.take(choice);
            lines.push(format!("{line:<50} {:?}", self.world.words()));
            if let Some(fault) = fault {
                lines.push(format!("{fault:?}"));
                break;
            }
        }
        for thread in 0..self.world.threads() {
            let next = self.world.pending(thread);
            lines.push(format!("thread {thread}: {next:?}"));
        }
        lines
    }
}
