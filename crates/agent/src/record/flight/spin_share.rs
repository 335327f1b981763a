// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which VM's spin share has risen above a threshold, from the events of a recording as they come.
//!
//! The share is what `top` shows as SPIN% but for what pause-loop exits alone do not tell: time spun in the guest by
//! `policy/auto/useful_time.h`, with KVM's handling of those exits, of the CPU time between switches. A wait's last part, that no
//! exit ends, is missing, so the share is a lower one.

use std::collections::VecDeque;

use unspin_events::{Event, GuestMode, What};
use unspin_policy::{
    SpinPlaces,
    auto::{SpinMeter, Stretch, StretchEnd, UsefulTime},
};

use crate::id_map::IdMap;

/// The share is that of so long: one slice of a convoy is no event, and five seconds of one are. Ours.
pub const WINDOW_NS: u64 = 5_000_000_000;
/// A VM that had less of a CPU, of a thousand parts, is not judged: shares of nearly nothing jump. Ours.
const CPU_PERMILLE_MIN: u64 = 100;
/// A vCPU's thread that was not seen for so long is forgotten.
const FORGET_NS: u64 = 60_000_000_000;

/// What VMs spin, and who was above the threshold already.
#[derive(Debug)]
pub(crate) struct SpinShares {
    threshold_percent: u32,
    vms: IdMap<Vm>,
    /// By thread.
    vcpus: IdMap<Vcpu>,
}

#[derive(Debug, Default)]
struct Vm {
    places: SpinPlaces,
    useful: UsefulTime,
    handling_ns: u64,
    cpu_ns: u64,
    /// Time, CPU time and wasted time, all ns, each time it was looked at in the window.
    history: VecDeque<(u64, u64, u64)>,
    /// It was above the threshold, and has not been below since.
    above: bool,
}

#[derive(Debug, Default)]
struct Vcpu {
    vm: u32,
    on_cpu_since_ns: Option<u64>,
    meter: SpinMeter,
    last_ns: u64,
}

/// A VM whose share has risen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Risen {
    pub vm: u32,
    /// Its share; percent.
    pub percent: u32,
}

impl SpinShares {
    /// `threshold_percent`: of its CPU time.
    pub fn new(threshold_percent: u32) -> SpinShares {
        SpinShares {
            threshold_percent,
            vms: IdMap::default(),
            vcpus: IdMap::default(),
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event) {
        if let What::Lost { .. } = event.what {
            // Who left its CPU meanwhile is not known.
            for vcpu in self.vcpus.values_mut() {
                vcpu.on_cpu_since_ns = None;
            }
        }
        let Some(number) = event.vm else { return };
        if !matches!(
            event.what,
            What::SwitchIn { .. }
                | What::SwitchOut { .. }
                | What::PauseExit { .. }
                | What::PauseEntry { .. }
        ) {
            return;
        }
        let now_ns = event.time_ns.max(1);
        let vm = self.vms.entry(number).or_default();
        let vcpu = self.vcpus.entry(event.thread).or_default();
        if vcpu.vm != number {
            *vcpu = Vcpu {
                vm: number,
                ..Vcpu::default()
            };
        }
        vcpu.last_ns = now_ns;
        match event.what {
            What::SwitchIn { .. } => vcpu.on_cpu_since_ns = Some(now_ns),
            What::SwitchOut { .. } => {
                let since_ns = vcpu.on_cpu_since_ns.take();
                vm.cpu_ns += since_ns.map_or(0, |since_ns| now_ns.saturating_sub(since_ns));
            }
            What::PauseExit {
                guest_rip,
                mode,
                window,
                inside_ns,
                ..
            } => {
                vcpu.meter
                    .enter(now_ns.saturating_sub(inside_ns.into()).max(1));
                let stretch = Stretch {
                    now_ns,
                    end: StretchEnd::PauseLoop,
                    pointer: guest_rip,
                    // Which address space it is events do not tell.
                    space: (mode == Some(GuestMode::User)).then_some(1),
                    window,
                };
                vcpu.meter.exit(&mut vm.places, &mut vm.useful, &stretch);
            }
            What::PauseEntry { handling_ns, .. } => vm.handling_ns += handling_ns,
            _ => {}
        }
    }

    /// Who has risen above the threshold. To be called about once a second with the time of the events' clock.
    pub fn risen(&mut self, now_ns: u64) -> Vec<Risen> {
        self.vcpus
            .retain(|_, vcpu| now_ns.saturating_sub(vcpu.last_ns) < FORGET_NS);
        let mut running_ns: IdMap<u64> = IdMap::default();
        for vcpu in self.vcpus.values() {
            let since_ns = vcpu.on_cpu_since_ns.unwrap_or(now_ns);
            *running_ns.entry(vcpu.vm).or_default() += now_ns.saturating_sub(since_ns);
        }
        // Who has no vCPU any more is gone.
        self.vms.retain(|vm, _| running_ns.contains_key(vm));
        let mut risen = Vec::new();
        for (&number, vm) in &mut self.vms {
            let cpu_ns = vm.cpu_ns + running_ns.get(&number).copied().unwrap_or_default();
            let waste_ns = vm.useful.spin_ns + vm.handling_ns;
            let Some(percent) = vm.percent(now_ns, cpu_ns, waste_ns) else {
                continue;
            };
            let above = percent >= self.threshold_percent;
            if above && !vm.above {
                risen.push(Risen {
                    vm: number,
                    percent,
                });
            }
            vm.above = above;
        }
        risen.sort_by_key(|risen| risen.vm);
        risen
    }
}

impl Vm {
    /// Its share over the last window; `None`: it was not seen for so long, or had next to no CPU time.
    fn percent(&mut self, now_ns: u64, cpu_ns: u64, waste_ns: u64) -> Option<u32> {
        self.history.push_back((now_ns, cpu_ns, waste_ns));
        let is_whole =
            |(then_ns, ..): &(u64, u64, u64)| now_ns.saturating_sub(*then_ns) >= WINDOW_NS;
        // The latest that is a window ago stays.
        while self.history.get(1).is_some_and(is_whole) {
            self.history.pop_front();
        }
        let &(then_ns, cpu_then_ns, waste_then_ns) =
            self.history.front().filter(|oldest| is_whole(oldest))?;
        let cpu_ns = cpu_ns.saturating_sub(cpu_then_ns);
        let waste_ns = waste_ns.saturating_sub(waste_then_ns);
        if cpu_ns * 1000 < (now_ns - then_ns) * CPU_PERMILLE_MIN {
            return None;
        }
        // To the nearest one: a window's length is learned in whole picoseconds a PAUSE.
        u32::try_from(((waste_ns * 100 + cpu_ns / 2) / cpu_ns).min(100)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::test_events::{MS, event, slice, switch_in},
        *,
    };

    /// One vCPU that has its CPU for 10 ms of each 20 ms and spins for `spin_ms` of them in windows of 1 ms.
    fn take_slice(shares: &mut SpinShares, begin_ns: u64, vm: u32, spin_ms: u64) {
        for event in slice(begin_ns, begin_ns + 10 * MS, vm, spin_ms) {
            shares.take(&event);
        }
    }

    /// So many seconds of slices, from that second on; who has risen, with the second.
    fn seconds(shares: &mut SpinShares, from: u64, to: u64, spin_ms: u64) -> Vec<(u64, Risen)> {
        let mut risen = Vec::new();
        for second in from..to {
            for begin in 0..50 {
                take_slice(shares, 1_000 * MS * second + 20 * MS * begin, 7, spin_ms);
            }
            let now = shares.risen(1_000 * MS * (second + 1));
            risen.extend(now.into_iter().map(|risen| (second + 1, risen)));
        }
        risen
    }

    #[test]
    fn who_rises_is_told_once_until_it_has_been_below() {
        let mut shares = SpinShares::new(40);
        assert_eq!(seconds(&mut shares, 0, 10, 3), []);
        // 30 % before, 60 % now: above 40 % over five seconds when two of them are of now.
        let risen = seconds(&mut shares, 10, 30, 6);
        assert_eq!(risen, [(12, Risen { vm: 7, percent: 42 })]);
        assert_eq!(seconds(&mut shares, 30, 40, 1), []);
        let risen = seconds(&mut shares, 40, 50, 9);
        assert_eq!(risen.len(), 1, "{risen:?}");
    }

    #[test]
    fn who_was_above_from_the_beginning_is_told_after_a_window() {
        let mut shares = SpinShares::new(60);
        let risen = seconds(&mut shares, 0, 20, 6);
        assert_eq!(risen, [(6, Risen { vm: 7, percent: 60 })]);
        let mut shares = SpinShares::new(61);
        assert_eq!(seconds(&mut shares, 0, 20, 6), []);
    }

    #[test]
    fn a_vm_that_hardly_runs_is_not_judged() {
        let mut shares = SpinShares::new(10);
        for second in 0..20 {
            take_slice(&mut shares, 1_000 * MS * second, 7, 10);
            assert_eq!(shares.risen(1_000 * MS * (second + 1)), []);
        }
    }

    #[test]
    fn time_over_a_loss_is_nobodys() {
        let mut shares = SpinShares::new(40);
        shares.take(&switch_in(MS, 7));
        let lost = What::Lost {
            events: 3,
            lost_kind: 1,
        };
        shares.take(&Event {
            vm: None,
            ..event(2 * MS, 7, lost)
        });
        shares.risen(10_000 * MS);
        assert_eq!(shares.vms[&7].history.back(), Some(&(10_000 * MS, 0, 0)));
    }

    #[test]
    fn who_is_gone_is_forgotten() {
        let mut shares = SpinShares::new(40);
        seconds(&mut shares, 0, 2, 3);
        shares.risen(63_000 * MS);
        assert!(shares.vms.is_empty() && shares.vcpus.is_empty());
    }
}
