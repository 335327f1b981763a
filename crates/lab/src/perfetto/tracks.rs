// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tracks below a task's thread that hold one slice at a time, declared at their first use.

use std::io::Write;

use crate::{
    ids::{Cpu, Lock, Task, Vm},
    perfetto::{messages::TrackDescriptor, output::Output},
};

/// The kind of a track, the top byte of its id, so that no two tracks have one id.
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

/// The id of a track: kind, index (below 2^24) and task.
pub const fn uuid(kind: Kind, track_index: u32, owner: u32) -> u64 {
    (kind as u64) << 56 | (track_index as u64) << 32 | owner as u64
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

/// Tracks of one kind for every task, and what occupies them.
pub struct Tracks<T> {
    kind: Kind,
    name: &'static str,
    /// By task, then by index; `None`: the track is free.
    tracks: Vec<Vec<Option<T>>>,
}

impl<T: PartialEq + Copy> Tracks<T> {
    pub fn new(kind: Kind, name: &'static str, tasks: usize) -> Tracks<T> {
        Tracks {
            kind,
            name,
            tracks: (0..tasks).map(|_| Vec::new()).collect(),
        }
    }

    /// Gives the first free track of this task to `guest`; returns the track.
    pub fn enter<W: Write>(&mut self, out: &mut Output<W>, task: Task, guest: T) -> u64 {
        let tracks = &mut self.tracks[task.index()];
        if let Some(free) = tracks.iter().position(Option::is_none) {
            tracks[free] = Some(guest);
            return uuid(self.kind, free as u32, task.0);
        }
        let track = uuid(self.kind, tracks.len() as u32, task.0);
        declare(out, self.name, tracks.len(), track, task);
        tracks.push(Some(guest));
        track
    }

    /// The track of `guest`.
    pub fn find(&self, task: Task, guest: T) -> Option<u64> {
        let track_index = self.tracks[task.index()]
            .iter()
            .position(|on| *on == Some(guest))?;
        Some(uuid(self.kind, track_index as u32, task.0))
    }

    /// Frees the track of `guest`; returns it.
    pub fn leave(&mut self, task: Task, guest: T) -> Option<u64> {
        let tracks = &mut self.tracks[task.index()];
        let track_index = tracks.iter().position(|on| *on == Some(guest))?;
        tracks[track_index] = None;
        Some(uuid(self.kind, track_index as u32, task.0))
    }

    /// Frees all tracks; returns tasks, occupants and tracks.
    pub fn leave_all(&mut self) -> Vec<(Task, T, u64)> {
        let mut left = Vec::new();
        for (task, tracks) in self.tracks.iter_mut().enumerate() {
            for (track_index, guest) in tracks.iter_mut().enumerate() {
                if let Some(guest) = guest.take() {
                    let track = uuid(self.kind, track_index as u32, task as u32);
                    left.push((Task(task as u32), guest, track));
                }
            }
        }
        left
    }
}

/// One track for every task.
pub struct OneTrack {
    kind: Kind,
    name: &'static str,
    declared: Vec<bool>,
}

impl OneTrack {
    pub fn new(kind: Kind, name: &'static str, tasks: usize) -> OneTrack {
        OneTrack {
            kind,
            name,
            declared: vec![false; tasks],
        }
    }

    /// The track of this task.
    pub fn track<W: Write>(&mut self, out: &mut Output<W>, task: Task) -> u64 {
        let track = uuid(self.kind, 0, task.0);
        if !std::mem::replace(&mut self.declared[task.index()], true) {
            declare(out, self.name, 0, track, task);
        }
        track
    }
}

fn declare<W: Write>(out: &mut Output<W>, name: &str, track_index: usize, track: u64, task: Task) {
    let name = match track_index {
        0 => name.to_owned(),
        track_index => format!("{name} {}", track_index + 1),
    };
    out.descriptor(TrackDescriptor {
        uuid: Some(track),
        name: Some(name),
        parent_uuid: Some(thread_track(task)),
        ..TrackDescriptor::default()
    });
}
