// SPDX-License-Identifier: MIT OR Apache-2.0
//! When a vCPU executed guest code, as far as switches and pause-loop exits tell.

use unspin_events::{Event, What};

/// Times in the guest, `(entered_ns, left_ns)`, in order. Entries after pause-loop exits are known; after other switches in,
/// the guest is entered some `entry_ns` later.
#[derive(Clone, Debug)]
pub struct GuestTimes {
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
