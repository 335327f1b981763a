// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spinning waits as a host sees them: runs of pause-loop exits of one vCPU at one place.
//!
//! A wait goes on from exit to exit while the guest does nothing but spin: the same instruction pointer, no exit of
//! another kind between but for host interrupts, and no more time in the guest than the window takes (twice that at
//! most: our rule, because a guest that got its lock, worked, and waits again at the same place shows no other sign). Its
//! length is its time on a CPU: in the guest, and in KVM until the vCPU left its CPU or went on (ruling 17); what it was
//! off its CPU is not in it. The first window of a wait counts as long as a window takes, because before it the guest may
//! have worked.
//!
//! **What a host cannot see**: waits that end within their first window, and what is left of each wait after its last
//! exit. So the histogram begins at one window, and every length is short by up to one.

use std::collections::{BTreeMap, HashMap};

use unspin_events::{Event, What};
use unspin_policy::window_is_quicker;

use crate::waits::histogram::WaitHistogram;

/// A wait's windows take at most so many times the shortest that was seen.
const SLACK: u64 = 2;

/// How long a pause-loop window takes in guest time. First pass over the events.
///
/// From the exits that came soonest after their entry, by the window they had: KVM loads the whole window at every entry
/// (arch/x86/kvm/svm/svm.c, `svm_vcpu_run()`; Intel SDM 3C, "PAUSE-loop exiting"), so no exit comes sooner, and a window
/// twice as long takes twice as long.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowTimes(BTreeMap<u32, WindowTime>);

/// Of one VM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WindowTime {
    /// Of the window that was spun through quickest: its time in the guest, and the window.
    spun_ns: u64,
    spun_units: u64,
    /// The smallest window that was seen.
    smallest: Option<u32>,
    /// The soonest exit of those whose window is not known, nanoseconds.
    unknown_ns: Option<u64>,
}

impl WindowTimes {
    /// The next event.
    pub fn see(&mut self, event: &Event) {
        let (
            What::PauseExit {
                window, inside_ns, ..
            },
            Some(vm),
        ) = (event.what, event.vm)
        else {
            return;
        };
        if inside_ns == 0 {
            return;
        }
        let inside_ns = u64::from(inside_ns);
        let time = self.0.entry(vm).or_default();
        match window.filter(|&window| window > 0) {
            Some(window) => {
                let units = u64::from(window);
                if window_is_quicker(inside_ns, units, time.spun_ns, time.spun_units) {
                    (time.spun_ns, time.spun_units) = (inside_ns, units);
                }
                time.smallest = Some(time.smallest.map_or(window, |known| known.min(window)));
            }
            None => {
                let soonest_ns = time.unknown_ns.unwrap_or(inside_ns);
                time.unknown_ns = Some(soonest_ns.min(inside_ns));
            }
        }
    }

    /// The shortest of all windows of a VM: waits below are not seen. `None`: it had no pause-loop exits.
    pub fn shortest_ns(&self, vm: u32) -> Option<u64> {
        let smallest = self.0.get(&vm)?.smallest;
        self.window_ns(vm, smallest)
    }

    fn window_ns(&self, vm: u32, window: Option<u32>) -> Option<u64> {
        let time = self.0.get(&vm)?;
        match window.filter(|&window| window > 0) {
            // Both are below 2^32.
            Some(window) => (time.spun_ns * u64::from(window)).checked_div(time.spun_units),
            None => time.unknown_ns,
        }
    }
}

/// The waits of one VM.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VmWaits {
    /// By their time on a CPU, nanoseconds.
    pub histogram: WaitHistogram,
    /// Pause-loop exits in them: all of the VM's but those without a time in the guest.
    pub exits: u64,
    /// Time in the guest of all waits, nanoseconds.
    pub spinning_ns: u64,
    /// Time in KVM of all waits, nanoseconds.
    pub handling_ns: u64,
    /// Exits whose instruction pointer the host could not see; their waits may hold several places.
    pub exits_without_location: u64,
    /// Waits that were cut short or apart by lost events.
    pub broken_by_losses: u64,
}

/// Builds [`VmWaits`] from events in order of time. Second pass. Memory: per vCPU.
#[derive(Clone, Debug)]
pub struct SpinWaits<'windows> {
    windows: &'windows WindowTimes,
    vms: BTreeMap<u32, VmWaits>,
    open: HashMap<(u32, u16), Open>,
}

/// A wait that may go on.
#[derive(Clone, Copy, Debug)]
struct Open {
    location: Option<u64>,
    inside_ns: u64,
    handling_ns: u64,
}

impl<'windows> SpinWaits<'windows> {
    /// With the window times of the same events.
    pub fn new(windows: &'windows WindowTimes) -> SpinWaits<'windows> {
        SpinWaits {
            windows,
            vms: BTreeMap::new(),
            open: HashMap::new(),
        }
    }

    /// The next event.
    pub fn see(&mut self, event: &Event) {
        if let What::Lost { .. } = event.what {
            self.close_all(true);
            return;
        }
        let (Some(vm), Some(vcpu)) = (event.vm, event.vcpu) else {
            return;
        };
        match event.what {
            What::PauseExit {
                guest_rip,
                window,
                inside_ns,
                other_exits,
                ..
            } => {
                let Some(window_ns) = self.windows.window_ns(vm, window) else {
                    return;
                };
                let inside_ns = u64::from(inside_ns);
                let continues = other_exits == 0 && inside_ns <= SLACK.saturating_mul(window_ns);
                self.pause_exit(
                    (vm, vcpu),
                    guest_rip,
                    inside_ns.min(window_ns),
                    inside_ns,
                    continues,
                );
            }
            What::PauseEntry { handling_ns, .. } => {
                if let Some(open) = self.open.get_mut(&(vm, vcpu)) {
                    open.handling_ns = open.handling_ns.saturating_add(handling_ns);
                }
            }
            _ => {}
        }
    }

    /// The waits of each VM; those that were still open end with the last event.
    pub fn finish(mut self) -> BTreeMap<u32, VmWaits> {
        self.close_all(false);
        self.vms
    }

    fn pause_exit(
        &mut self,
        vcpu: (u32, u16),
        location: Option<u64>,
        first_ns: u64,
        inside_ns: u64,
        continues: bool,
    ) {
        let of_vm = self.vms.entry(vcpu.0).or_default();
        of_vm.exits += 1;
        of_vm.exits_without_location += u64::from(location.is_none());
        if let Some(open) = self.open.get_mut(&vcpu) {
            if continues && open.location == location {
                open.inside_ns = open.inside_ns.saturating_add(inside_ns);
                return;
            }
        }
        let begun = Open {
            location,
            inside_ns: first_ns,
            handling_ns: 0,
        };
        if let Some(ended) = self.open.insert(vcpu, begun) {
            of_vm.close(ended);
        }
    }

    fn close_all(&mut self, lost: bool) {
        for ((vm, _), ended) in self.open.drain() {
            let of_vm = self.vms.entry(vm).or_default();
            of_vm.broken_by_losses += u64::from(lost);
            of_vm.close(ended);
        }
    }
}

impl VmWaits {
    fn close(&mut self, ended: Open) {
        self.histogram
            .add(ended.inside_ns.saturating_add(ended.handling_ns));
        self.spinning_ns = self.spinning_ns.saturating_add(ended.inside_ns);
        self.handling_ns = self.handling_ns.saturating_add(ended.handling_ns);
    }
}

#[cfg(test)]
mod tests;
