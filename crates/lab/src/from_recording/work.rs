// SPDX-License-Identifier: MIT OR Apache-2.0
//! Estimates a guest's work from the spinning that its host saw. Rough by nature: it reports what it assumes.

use super::seen::VmSeen;

/// The work of an iteration if none was seen; any value will do where no vCPU waits.
const UNKNOWN_WORK_NS: u64 = 100_000;
/// See [`UNKNOWN_WORK_NS`].
const UNKNOWN_HOLD_NS: u64 = 1_000;

/// The work of an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Work {
    /// In user mode, ns.
    pub user_ns: u64,
    /// In the kernel without the lock, ns.
    pub kernel_ns: u64,
    /// With the lock held, ns.
    pub hold_ns: u64,
    /// Each vCPU has a lock of its own.
    pub private: bool,
    /// The source of the numbers.
    pub why: String,
}

/// Each iteration has one wait. Useful time T = (running - spinning - handling) / waits. With N vCPUs that queue for
/// one lock, each iteration takes N holds, which equal the iteration's useful time and its wait: hold = (T + wait) / N,
/// at most T. The median stands for the wait, since the mean contains waits for descheduled vCPUs.
pub(super) fn estimate(vm: &VmSeen) -> Work {
    let Some(median_wait_ns) = vm.median_wait_ns.filter(|_| vm.waits > 0 && vm.vcpus > 1) else {
        return Work {
            user_ns: UNKNOWN_WORK_NS,
            kernel_ns: 0,
            hold_ns: UNKNOWN_HOLD_NS,
            private: true,
            why: "No wait of it was seen: private locks, and iterations of any length (100 us is a guess).".to_owned(),
        };
    };
    let useful_ns = vm
        .running_ns
        .saturating_sub(vm.spinning_ns)
        .saturating_sub(vm.handling_ns);
    let iteration_ns = (useful_ns / vm.waits).max(1);
    let in_line_ns = (u128::from(iteration_ns) + u128::from(median_wait_ns)) / vm.vcpus as u128;
    let hold_ns = u64::try_from(in_line_ns).map_or(iteration_ns, |ns| ns.clamp(1, iteration_ns));
    let think_ns = iteration_ns - hold_ns;
    let seen = vm.preempted_user + vm.preempted_kernel;
    let (user_ns, split) = match seen {
        0 => (
            think_ns,
            "in which mode is not known: all work outside of the lock is in user mode".to_owned(),
        ),
        seen => {
            // Preemptions sample the running time; of the time in the kernel, spinning and holding are subtracted
            // first.
            let user = u128::from(vm.running_ns) * u128::from(vm.preempted_user)
                / u128::from(seen)
                / u128::from(vm.waits);
            let user_ns = u64::try_from(user).map_or(think_ns, |ns| ns.min(think_ns));
            (
                user_ns,
                format!(
                    "{} of {seen} preemptions were in user mode",
                    vm.preempted_user
                ),
            )
        }
    };
    Work {
        user_ns,
        kernel_ns: think_ns - user_ns,
        hold_ns,
        private: false,
        why: format!(
            "An iteration has {iteration_ns} ns of work; the median wait is about {median_wait_ns} ns; {split}."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm() -> VmSeen {
        // Four vCPUs, 1,000 iterations with 10 us of work, median wait 6 us: hold = (10 + 6) / 4 us.
        VmSeen {
            vcpus: 4,
            running_ns: 40_000_000,
            spinning_ns: 29_000_000,
            handling_ns: 1_000_000,
            waits: 1_000,
            median_wait_ns: Some(6_000),
            preempted_user: 0,
            preempted_kernel: 0,
        }
    }

    #[test]
    fn a_saturated_lock_is_found_again() {
        let work = estimate(&vm());
        assert_eq!(
            (work.hold_ns, work.user_ns, work.kernel_ns),
            (4_000, 6_000, 0)
        );
        assert!(!work.private);
    }

    #[test]
    fn modes_split_the_rest() {
        let seen = VmSeen {
            preempted_user: 10,
            preempted_kernel: 90,
            ..vm()
        };
        // A tenth of 40 ms over 1,000 iterations is 4 us.
        let work = estimate(&seen);
        assert_eq!((work.user_ns, work.kernel_ns), (4_000, 2_000));
    }

    #[test]
    fn nothing_seen_is_nothing_known() {
        let work = estimate(&VmSeen {
            waits: 0,
            median_wait_ns: None,
            ..vm()
        });
        assert!(work.private && work.why.contains("No wait"));
        let odd = estimate(&VmSeen {
            running_ns: 0,
            median_wait_ns: Some(u64::MAX),
            ..vm()
        });
        assert_eq!((odd.hold_ns, odd.user_ns), (1, 0));
    }
}
