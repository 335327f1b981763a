// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lanes: tracks below a task's thread that hold one slice at a time. They are declared when they are first needed.

use std::io::Write;

use unspin_lab::ids::{Cpu, Lock, Task, Vm};

use crate::{messages::TrackDescriptor, output::Output};

/// What a track is of. Its number stands in the top byte of a track's id, so that no two tracks have one id.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum Kind {
    Process = 1,
    Thread = 2,
    Mode = 3,
    Locks = 4,
    Interrupts = 5,
    Events = 6,
    Borrowed = 7,
    Runnable = 8,
    Waiters = 9,
}

/// The id of a track: kind, lane (below 2^24) and whose it is.
pub const fn uuid(kind: Kind, lane: u32, owner: u32) -> u64 {
    (kind as u64) << 56 | (lane as u64) << 32 | owner as u64
}

pub fn process_track(vm: Vm) -> u64 {
    uuid(Kind::Process, 0, vm.0)
}

pub fn thread_track(task: Task) -> u64 {
    uuid(Kind::Thread, 0, task.0)
}

pub fn runnable_track(cpu: Cpu) -> u64 {
    uuid(Kind::Runnable, 0, cpu.0)
}

pub fn waiters_track(lock: Lock) -> u64 {
    uuid(Kind::Waiters, 0, lock.0)
}

/// Lanes of one kind, for every task: who is on which.
pub struct Lanes<T> {
    kind: Kind,
    name: &'static str,
    /// By task, then by lane; `None`: the lane is free.
    lanes: Vec<Vec<Option<T>>>,
}

impl<T: PartialEq + Copy> Lanes<T> {
    pub fn new(kind: Kind, name: &'static str, tasks: usize) -> Lanes<T> {
        Lanes {
            kind,
            name,
            lanes: (0..tasks).map(|_| Vec::new()).collect(),
        }
    }

    /// The first free lane of that task is `guest`'s from now on; its track.
    pub fn enter<W: Write>(&mut self, out: &mut Output<W>, task: Task, guest: T) -> u64 {
        let lanes = &mut self.lanes[task.index()];
        if let Some(free) = lanes.iter().position(Option::is_none) {
            lanes[free] = Some(guest);
            return uuid(self.kind, free as u32, task.0);
        }
        let track = uuid(self.kind, lanes.len() as u32, task.0);
        declare(out, self.name, lanes.len(), track, task);
        lanes.push(Some(guest));
        track
    }

    /// The track that `guest` is on.
    pub fn find(&self, task: Task, guest: T) -> Option<u64> {
        let lane = self.lanes[task.index()]
            .iter()
            .position(|on| *on == Some(guest))?;
        Some(uuid(self.kind, lane as u32, task.0))
    }

    /// `guest` leaves; the track that it was on.
    pub fn leave(&mut self, task: Task, guest: T) -> Option<u64> {
        let lanes = &mut self.lanes[task.index()];
        let lane = lanes.iter().position(|on| *on == Some(guest))?;
        lanes[lane] = None;
        Some(uuid(self.kind, lane as u32, task.0))
    }

    /// Everybody leaves: their tasks, themselves, their tracks.
    pub fn leave_all(&mut self) -> Vec<(Task, T, u64)> {
        let mut left = Vec::new();
        for (task, lanes) in self.lanes.iter_mut().enumerate() {
            for (lane, guest) in lanes.iter_mut().enumerate() {
                if let Some(guest) = guest.take() {
                    let track = uuid(self.kind, lane as u32, task as u32);
                    left.push((Task(task as u32), guest, track));
                }
            }
        }
        left
    }
}

/// One lane for every task.
pub struct OneLane {
    kind: Kind,
    name: &'static str,
    declared: Vec<bool>,
}

impl OneLane {
    pub fn new(kind: Kind, name: &'static str, tasks: usize) -> OneLane {
        OneLane {
            kind,
            name,
            declared: vec![false; tasks],
        }
    }

    /// That task's track.
    pub fn track<W: Write>(&mut self, out: &mut Output<W>, task: Task) -> u64 {
        let track = uuid(self.kind, 0, task.0);
        if !std::mem::replace(&mut self.declared[task.index()], true) {
            declare(out, self.name, 0, track, task);
        }
        track
    }
}

fn declare<W: Write>(out: &mut Output<W>, name: &str, lane: usize, track: u64, task: Task) {
    let name = match lane {
        0 => name.to_owned(),
        lane => format!("{name} {}", lane + 1),
    };
    out.descriptor(TrackDescriptor {
        uuid: Some(track),
        name: Some(name),
        parent_uuid: Some(thread_track(task)),
        ..TrackDescriptor::default()
    });
}
