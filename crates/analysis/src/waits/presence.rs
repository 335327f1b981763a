// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the vCPUs of one VM were: on a CPU, or off it, since when and how they left.

use std::collections::BTreeMap;

use unspin_events::{Event, GuestMode, What};

/// How a vCPU left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// It could go on at once (preempted or yielded); otherwise it slept, which for a guest is a halt.
    pub runnable: bool,
    /// The scheduler took the CPU.
    pub preempt: bool,
    /// Where the guest was.
    pub mode: Option<GuestMode>,
    /// Hardware code of the guest's last exit.
    pub exit_code: Option<u32>,
    /// The guest's instruction pointer.
    pub guest_rip: Option<u64>,
    /// Thread that got the CPU.
    pub next_thread: u32,
    /// VM of that thread.
    pub next_vm: Option<u32>,
    /// The CPU.
    pub cpu: u16,
}

/// What a vCPU does from some moment on, until the next change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a CPU.
    On {
        /// Which.
        cpu: u16,
    },
    /// Off it.
    Off(Left),
    /// Events are missing: not known.
    Lost,
}

impl Left {
    /// From a switch out.
    pub fn of(event: &Event) -> Option<Left> {
        let What::SwitchOut {
            next_thread,
            next_vm,
            runnable,
            preempt,
            mode,
            exit_code,
            guest_rip,
        } = event.what
        else {
            return None;
        };
        Some(Left {
            runnable,
            preempt,
            mode,
            exit_code,
            guest_rip,
            next_thread,
            next_vm,
            cpu: event.cpu,
        })
    }
}

impl Place {
    /// Whether it is known to be off its CPU.
    pub fn left(&self) -> Option<&Left> {
        match self {
            Place::Off(left) => Some(left),
            _ => None,
        }
    }

    /// Whether it is known to be on a CPU.
    pub fn is_on(&self) -> bool {
        matches!(self, Place::On { .. })
    }
}

/// The places of one vCPU over time, in order; `(since_ns, place)`.
#[derive(Clone, Debug, Default)]
pub struct Presence {
    changes: Vec<(u64, Place)>,
}

impl Presence {
    /// Notes a change at `time_ns`, which is not before the last one.
    pub fn push(&mut self, time_ns: u64, place: Place) {
        self.changes.push((time_ns, place));
    }

    /// All changes, in order.
    pub fn changes(&self) -> &[(u64, Place)] {
        &self.changes
    }

    /// Index of the place at `time_ns`; `None` before the first change.
    pub fn index_at(&self, time_ns: u64) -> Option<usize> {
        self.changes
            .partition_point(|&(since_ns, _)| since_ns <= time_ns)
            .checked_sub(1)
    }

    /// Place at `time_ns`, and since when; before the first change it is not known.
    pub fn at(&self, time_ns: u64) -> (u64, Place) {
        self.index_at(time_ns)
            .map_or((0, Place::Lost), |index| self.changes[index])
    }

    /// When it is on a CPU for the first time at or after `time_ns`; `None`: not any more in this record.
    pub fn on_after(&self, time_ns: u64) -> Option<u64> {
        let first = self.index_at(time_ns).unwrap_or(0);
        self.changes[first.min(self.changes.len())..]
            .iter()
            .find(|(_, place)| place.is_on())
            .map(|&(since_ns, _)| since_ns.max(time_ns))
    }

    /// Moments of change after `begin_ns` and before `end_ns`.
    pub fn cuts(&self, begin_ns: u64, end_ns: u64) -> impl Iterator<Item = u64> + '_ {
        let first = self
            .changes
            .partition_point(|&(since_ns, _)| since_ns <= begin_ns);
        self.changes[first..]
            .iter()
            .map(|&(since_ns, _)| since_ns)
            .take_while(move |&since_ns| since_ns < end_ns)
    }

    /// The pieces of [begin_ns, end_ns) that it was on a CPU.
    pub fn on_between(&self, begin_ns: u64, end_ns: u64) -> Vec<(u64, u64)> {
        let mut pieces = Vec::new();
        let first = self.index_at(begin_ns).unwrap_or(0);
        for (index, &(since_ns, place)) in self.changes.iter().enumerate().skip(first) {
            if since_ns >= end_ns {
                break;
            }
            let until_ns = self
                .changes
                .get(index + 1)
                .map_or(end_ns, |&(since_ns, _)| since_ns);
            let piece = (since_ns.max(begin_ns), until_ns.min(end_ns));
            if place.is_on() && piece.0 < piece.1 {
                pieces.push(piece);
            }
        }
        pieces
    }

    /// Forgets what ended before `time_ns`.
    pub fn forget_before(&mut self, time_ns: u64) {
        if let Some(index) = self.index_at(time_ns) {
            self.changes.drain(..index);
        }
    }
}

/// The presence of every vCPU of VM `vm`. A vCPU was on its CPU when it was first seen, so before a first switch out it
/// ran, and before a first switch in it did not, in a way that is not known.
pub fn of_vm<'a>(vm: u32, events: impl IntoIterator<Item = &'a Event>) -> BTreeMap<u16, Presence> {
    let mut vcpus: BTreeMap<u16, Presence> = BTreeMap::new();
    for event in events {
        if let (Some(vcpu), true) = (event.vcpu, event.vm == Some(vm)) {
            follow(vcpus.entry(vcpu).or_default(), event);
        }
    }
    vcpus
}

/// Takes one event of the vCPU.
pub fn follow(presence: &mut Presence, event: &Event) {
    let on = Place::On { cpu: event.cpu };
    match event.what {
        What::SwitchIn { .. } => presence.push(event.time_ns, on),
        What::SwitchOut { .. } => {
            if presence.changes.is_empty() {
                presence.push(0, on);
            }
            if let Some(left) = Left::of(event) {
                presence.push(event.time_ns, Place::Off(left));
            }
        }
        // Only a vCPU on its CPU exits.
        What::PauseExit { .. } | What::PauseEntry { .. } if presence.changes.is_empty() => {
            presence.push(0, on);
        }
        _ => {}
    }
}
