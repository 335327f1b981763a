// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the vCPUs of one VM were: on a CPU, or off it, since when and how they left; who ran on which CPU, as far as the events of vCPUs tell: what follows a task that is no vCPU stays unseen until a vCPU
//! comes; and when a vCPU executed guest code, as far as switches and pause-loop exits tell.

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

/// Who has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Occupant {
    /// A vCPU.
    Vcpu {
        /// Its VM.
        vm: u32,
        /// Its number.
        vcpu: u16,
    },
    /// Another task, by thread id.
    Task(u32),
    /// Nobody: the idle task.
    Idle,
}

/// The occupants of all CPUs over time.
#[derive(Clone, Debug, Default)]
pub struct Occupants {
    cpus: BTreeMap<u16, Vec<(u64, Occupant)>>,
}

impl Occupants {
    /// Takes the next event of any VM.
    pub fn follow(&mut self, event: &Event) {
        let occupant = match (event.what, event.vm, event.vcpu) {
            (What::SwitchIn { .. }, Some(vm), Some(vcpu)) => Occupant::Vcpu { vm, vcpu },
            (What::SwitchOut { next_thread: 0, .. }, ..) => Occupant::Idle,
            (What::SwitchOut { next_thread, .. }, ..) => Occupant::Task(next_thread),
            _ => return,
        };
        let cpu = self.cpus.entry(event.cpu).or_default();
        match cpu.last_mut() {
            // One switch: the vCPU that leaves and the one that comes tell of it, in either order.
            Some((at_ns, last)) if *at_ns == event.time_ns => {
                if !matches!(last, Occupant::Vcpu { .. }) {
                    *last = occupant;
                }
            }
            _ => cpu.push((event.time_ns, occupant)),
        }
    }

    /// The pieces of [begin_ns, end_ns) and who had the CPU; `None` before anything is known of it.
    pub fn between(
        &self,
        cpu: u16,
        begin_ns: u64,
        end_ns: u64,
    ) -> impl Iterator<Item = (u64, Option<Occupant>)> + '_ {
        let changes = self.cpus.get(&cpu).map_or(&[][..], |changes| changes);
        let first = changes.partition_point(|&(at_ns, _)| at_ns <= begin_ns);
        let before = first.checked_sub(1).map(|last| changes[last].1);
        let within = changes[first..]
            .iter()
            .take_while(move |(at_ns, _)| *at_ns < end_ns)
            .map(|&(at_ns, occupant)| (at_ns, Some(occupant)));
        let starts: Vec<(u64, Option<Occupant>)> =
            std::iter::once((begin_ns, before)).chain(within).collect();
        let ends: Vec<u64> = starts[1..]
            .iter()
            .map(|&(at_ns, _)| at_ns)
            .chain([end_ns])
            .collect();
        starts
            .into_iter()
            .zip(ends)
            .map(|((at_ns, occupant), until_ns)| (until_ns - at_ns, occupant))
    }
}

/// Times in the guest, `(entered_ns, left_ns)`, in order. Entries after pause-loop exits are known; after other switches in,
/// the guest is entered some `entry_ns` later.
#[derive(Clone, Debug)]
pub(crate) struct GuestTimes {
    times: Vec<(u64, u64)>,
    entered_ns: Option<u64>,
    handling: bool,
    entry_ns: u64,
}

impl GuestTimes {
    /// Nothing yet; a vCPU is first seen while it runs. `entry_ns`: from a switch in to the guest.
    pub fn new(entry_ns: u64) -> GuestTimes {
        GuestTimes {
            times: Vec::new(),
            entered_ns: Some(0),
            handling: false,
            entry_ns,
        }
    }

    /// Takes the vCPU's next event.
    pub fn follow(&mut self, event: &Event) {
        match event.what {
            What::SwitchIn { .. } if !self.handling => {
                self.entered_ns = Some(event.time_ns.saturating_add(self.entry_ns));
            }
            What::PauseEntry { .. } => {
                self.handling = false;
                self.entered_ns = Some(event.time_ns);
            }
            What::PauseExit { .. } => {
                self.handling = true;
                self.leave(event.time_ns);
            }
            What::SwitchOut { .. } => self.leave(event.time_ns),
            _ => {}
        }
    }

    /// No more events: what it does last, it goes on doing.
    pub fn end(&mut self) {
        self.leave(u64::MAX);
    }

    fn leave(&mut self, now_ns: u64) {
        if let Some(entered_ns) = self.entered_ns.take() {
            if entered_ns < now_ns {
                self.times.push((entered_ns, now_ns));
            }
        }
    }

    /// All of them.
    pub fn times(&self) -> &[(u64, u64)] {
        &self.times
    }

    /// When an interrupt sent at `at_ns` was taken: at the next entry. A vCPU that runs has to be kicked out first, which
    /// takes half of an entry, and may lose its CPU on that way. `None`: not any more in this record.
    pub fn interruptible_after(&self, at_ns: u64) -> Option<u64> {
        let first = self.times.partition_point(|&(_, left_ns)| left_ns <= at_ns);
        let &(entered_ns, left_ns) = self.times.get(first)?;
        if entered_ns >= at_ns {
            return Some(entered_ns);
        }
        if left_ns >= at_ns.saturating_add(self.entry_ns) {
            return Some(at_ns.saturating_add(self.entry_ns / 2));
        }
        self.times.get(first + 1).map(|&(entered_ns, _)| entered_ns)
    }
}
