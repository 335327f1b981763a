// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a vCPU's time went into waiting, and what of its CPU time into spinning.

use unspin_abi::unspin_guest_statistics;

use super::report::VmReport;

/// Times in the window, of one vCPU or summed over several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Wall time.
    wall_ns: f64,
    /// Of it, inside a wait for a lock or for a shootdown's answers, running or not.
    waiting_ns: f64,
    /// Of it, on a CPU, KVM's exits included.
    cpu_ns: f64,
    /// Waiting while on a CPU; `None` when KVM's steal time was not to be had.
    spin_ns: Option<f64>,
}

impl Shares {
    /// Of one vCPU: what its statistics grew by in a window, and its thread's CPU time there.
    pub fn of(
        window: &unspin_guest_statistics,
        cpu_time_ns: u64,
        window_ns: u64,
        tsc_hz: u64,
    ) -> Shares {
        let cycles = window
            .lock_wait_cycles
            .saturating_add(window.shootdown_wait_cycles);
        let stolen_ns = window
            .lock_wait_stolen_ns
            .saturating_add(window.shootdown_wait_stolen_ns);
        // Parked or asleep is waiting, not spinning; what was stolen meanwhile is in that time already.
        let parked_ns = window.lock_parked_cycles as f64 * 1e9 / tsc_hz.max(1) as f64;
        let off_ns = stolen_ns
            .saturating_sub(window.lock_parked_stolen_ns)
            .saturating_add(parked_ns as u64);
        let off_ns = (window.steal_time != 0).then_some(off_ns);
        Shares::new(cycles, off_ns, cpu_time_ns, window_ns, tsc_hz)
    }

    /// Of a whole VM, its vCPUs together.
    pub fn of_vm(vm: &VmReport, tsc_hz: u64) -> Shares {
        let vcpus = vm.vcpus.iter();
        Shares::sum(
            vcpus.map(|vcpu| Shares::of(&vcpu.window, vcpu.cpu_time_ns, vm.window_ns, tsc_hz)),
        )
    }

    /// Of waits of so many TSC cycles, of which `stolen_ns` off the CPU. A wait that began before the window counts with
    /// its part before: it is cut at the window's length, what was spun at the thread's CPU time.
    fn new(
        waiting_cycles: u64,
        stolen_ns: Option<u64>,
        cpu_time_ns: u64,
        window_ns: u64,
        tsc_hz: u64,
    ) -> Shares {
        let wall_ns = window_ns as f64;
        let whole_ns = waiting_cycles as f64 * 1e9 / tsc_hz.max(1) as f64;
        let cpu_ns = (cpu_time_ns as f64).min(wall_ns);
        let spin_ns = |stolen_ns: u64| (whole_ns - stolen_ns as f64).clamp(0.0, cpu_ns);
        Shares {
            wall_ns,
            waiting_ns: whole_ns.min(wall_ns),
            cpu_ns,
            spin_ns: stolen_ns.map(spin_ns),
        }
    }

    /// Of all together.
    pub fn sum(each: impl Iterator<Item = Shares>) -> Shares {
        let none = Shares {
            spin_ns: Some(0.0),
            ..Shares::default()
        };
        each.fold(none, |sum, one| Shares {
            wall_ns: sum.wall_ns + one.wall_ns,
            waiting_ns: sum.waiting_ns + one.waiting_ns,
            cpu_ns: sum.cpu_ns + one.cpu_ns,
            spin_ns: sum.spin_ns.zip(one.spin_ns).map(|(a, b)| a + b),
        })
    }

    /// CPU time, nanoseconds.
    pub fn cpu_ns(self) -> f64 {
        self.cpu_ns
    }

    /// Spinning, nanoseconds; `None` when KVM's steal time was not to be had.
    pub fn spin_ns(self) -> Option<f64> {
        self.spin_ns
    }

    /// Waiting as a share of all time, 0 to 100; not finite without any time.
    pub fn waiting_percent(self) -> f64 {
        100.0 * self.waiting_ns / self.wall_ns
    }

    /// Spinning as a share of CPU time, 0 to 100; not finite without CPU time.
    pub fn spin_percent(self) -> Option<f64> {
        self.spin_ns.map(|spin_ns| 100.0 * spin_ns / self.cpu_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HZ: u64 = 2_000_000_000;

    #[test]
    fn what_was_stolen_was_not_spun() {
        // 2 GHz, 1,000 ns: waits of 1,800 cycles are 900 ns, 500 of them off the CPU; 500 ns on it.
        let shares = Shares::new(1_800, Some(500), 500, 1_000, HZ);
        assert_eq!(shares.waiting_percent(), 90.0);
        assert_eq!(shares.spin_percent(), Some(80.0));
        assert_eq!(
            Shares::new(0, Some(0), 500, 1_000, HZ).spin_percent(),
            Some(0.0)
        );
        assert_eq!(Shares::new(600, None, 500, 1_000, HZ).spin_percent(), None);
    }

    #[test]
    fn what_began_before_the_window_is_cut() {
        let shares = Shares::new(5_000, Some(100), 500, 1_000, HZ);
        assert_eq!(shares.waiting_percent(), 100.0);
        assert_eq!(shares.spin_percent(), Some(100.0));
        // A guest may claim that more was stolen than it waited.
        assert_eq!(
            Shares::new(10, Some(u64::MAX), 500, 1_000, HZ).spin_percent(),
            Some(0.0)
        );
    }

    #[test]
    fn several_are_summed_by_time() {
        let one = Shares::new(2_000, Some(500), 500, 1_000, HZ);
        let other = Shares::new(0, Some(0), 500, 1_000, HZ);
        let both = Shares::sum([one, other].into_iter());
        assert_eq!(
            (both.waiting_percent(), both.spin_percent()),
            (50.0, Some(50.0))
        );
        let unknown = Shares::new(0, None, 500, 1_000, HZ);
        assert_eq!(Shares::sum([one, unknown].into_iter()).spin_percent(), None);
    }
}
