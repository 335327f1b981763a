// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks: a slice while a vCPU waits, a slice while it holds the lock, an arrow from the release to the next holder.

use std::io::Write;

use crate::{
    ids::{Lock, Task},
    perfetto::{
        output::{Label, Output},
        trace_ids::TraceIds,
        tracks::{Kind, Tracks, waiters_track},
    },
};

/// The locks of all tasks.
pub struct Locks {
    /// Each lock that a task waits for or holds has its own track.
    tracks: Tracks<Lock>,
    locks: Vec<OneLock>,
}

#[derive(Default)]
struct OneLock {
    waiting: Vec<Task>,
    holding: Vec<Task>,
    /// The arrow from the last release, if a task waited then; the next holder ends it.
    handover: Option<u64>,
}

impl Locks {
    pub fn new(trace_ids: &TraceIds) -> Locks {
        Locks {
            tracks: Tracks::new(Kind::Locks, "locks", trace_ids.tasks.len()),
            locks: trace_ids.locks.iter().map(|_| OneLock::default()).collect(),
        }
    }

    pub fn asked<W: Write>(
        &mut self,
        out: &mut Output<W>,
        trace_ids: &TraceIds,
        now_ns: u64,
        task: Task,
        lock: Lock,
    ) {
        let one = &mut self.locks[lock.index()];
        if one.waiting.contains(&task) || one.holding.contains(&task) {
            return; // the same wait, or already held: a lock may request itself again
        }
        one.waiting.push(task);
        out.counter(now_ns, waiters_track(lock), one.waiting.len() as i64);
        let track = self.tracks.enter(out, task, lock);
        let name = format!("wait {}", trace_ids.lock(lock).name);
        out.slice_begin(now_ns, track, label(&name));
    }

    pub fn taken<W: Write>(
        &mut self,
        out: &mut Output<W>,
        trace_ids: &TraceIds,
        now_ns: u64,
        task: Task,
        lock: Lock,
    ) {
        let one = &mut self.locks[lock.index()];
        if one.holding.contains(&task) {
            return;
        }
        let track = match remove(&mut one.waiting, task) {
            true => {
                out.counter(now_ns, waiters_track(lock), one.waiting.len() as i64);
                let track = self.tracks.find(task, lock);
                track.inspect(|track| out.slice_end(now_ns, *track))
            }
            false => None,
        };
        one.holding.push(task);
        let handover = one.handover.take();
        let track = track.unwrap_or_else(|| self.tracks.enter(out, task, lock));
        let name = format!("hold {}", trace_ids.lock(lock).name);
        let label = Label {
            flows_end: handover.into_iter().collect(),
            ..label(&name)
        };
        out.slice_begin(now_ns, track, label);
    }

    pub fn released<W: Write>(&mut self, out: &mut Output<W>, now_ns: u64, task: Task, lock: Lock) {
        let one = &mut self.locks[lock.index()];
        if !remove(&mut one.holding, task) {
            return;
        }
        let Some(track) = self.tracks.leave(task, lock) else {
            return;
        };
        let mut flows = Vec::new();
        if !one.waiting.is_empty() && one.handover.is_none() {
            let flow = out.new_flow();
            one.handover = Some(flow);
            flows.push(flow);
        }
        let label = Label {
            flows,
            ..Label::default()
        };
        out.slice_end_with(now_ns, track, label);
    }

    /// Ends every slice. An arrow whose lock has no new holder yet ends at one of the waiters.
    pub fn finish<W: Write>(&mut self, out: &mut Output<W>, now_ns: u64) {
        for (task, lock, track) in self.tracks.leave_all() {
            let one = &mut self.locks[lock.index()];
            let waits = one.waiting.contains(&task);
            let handover = waits.then(|| one.handover.take()).flatten();
            let label = Label {
                flows_end: handover.into_iter().collect(),
                ..Label::default()
            };
            out.slice_end_with(now_ns, track, label);
        }
    }
}

fn label(name: &str) -> Label<'_> {
    Label {
        category: "lock",
        name,
        ..Label::default()
    }
}

/// Whether the slice existed.
fn remove(tasks: &mut Vec<Task>, task: Task) -> bool {
    let found = tasks.iter().position(|one| *one == task);
    found.is_some_and(|place| tasks.swap_remove(place) == task)
}
