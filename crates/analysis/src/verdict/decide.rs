// SPDX-License-Identifier: MIT OR Apache-2.0
//! The decision: which of a VM's losses is its trouble.

use super::figures::{Sight, VmFigures};
use crate::explain::cause::Cause;

/// Spin time from which on it is a loss, percent of CPU time. Of the waits that are attributed without a guest's help, 5 of 100
/// are attributed wrongly (docs/performance.md, explain.1): a smaller share may be nothing but that error.
pub const SPIN_PERCENT: f64 = 5.0;
/// Waits for a CPU from which on they are a loss, percent of the time in which vCPUs could run. At 10 % steal hosts' common alert
/// rules fire (awesome-prometheus-alerts, `HostCpuStealNoisyNeighbor`).
pub const STEAL_PERCENT: f64 = 10.0;
/// Sleep for I/O from which on it is the trouble, percent of vCPUs' time: a vCPU in five does nothing else.
pub const IO_PERCENT: f64 = 20.0;
/// Length of a stop from which on it is one that users notice, nanoseconds: QEMU stops a guest for at most so long at the end of
/// a migration unless it is told otherwise (`downtime-limit`, migration/options.c, QEMU 10.0).
pub const STOP_NS: u64 = 300_000_000;

/// What is the matter with a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Its vCPUs spent CPU time waiting for others that were off their CPUs; the cause of most of it.
    Preempted(Cause),
    /// Its vCPUs spent CPU time waiting for others that ran.
    Contention,
    /// Its vCPUs spent CPU time in spin loops, and the events do not say for what.
    Spinning,
    /// Its vCPUs waited for CPUs, and did not spin: too many vCPUs for the host's CPUs, and no more than that.
    Steal,
    /// Its vCPUs slept for I/O.
    Io,
    /// Its VMM was stopped.
    Stopped,
    /// What it lost cannot be seen.
    Blind,
    /// None of its losses is worth a word.
    Fine,
}

impl Finding {
    /// The word for it in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Finding::Preempted(_) => "preempted",
            Finding::Contention => "contention",
            Finding::Spinning => "spinning",
            Finding::Steal => "steal",
            Finding::Io => "io",
            Finding::Stopped => "stopped",
            Finding::Blind => "blind",
            Finding::Fine => "fine",
        }
    }

    /// Its share, percent: of CPU time for spinning, of the time in which vCPUs could run for steal, of vCPUs' time for I/O, of
    /// wall time for stops; `None`: it has none, or nothing was seen.
    pub fn share_percent(self, figures: &VmFigures) -> Option<f64> {
        let (part, whole) = self.share(figures)?;
        (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
    }

    fn share(self, of: &VmFigures) -> Option<(u64, u64)> {
        let could_run = of.running_ns + of.waiting_ns;
        // The first exit of a stream shows spin time from before its first switch, when run time is not known.
        let ran = match of.running_ns {
            0 => 0,
            seen => seen.max(of.spin_time.total()),
        };
        Some(match self {
            Finding::Preempted(_) => (of.preempted_ns(), ran),
            Finding::Contention => (of.spin_time.of(Cause::Contention), ran),
            Finding::Spinning => (of.spin_time.of(Cause::Unknown), ran),
            Finding::Steal => (of.waiting_ns, could_run),
            Finding::Io => (of.io_ns, could_run + of.halted_ns + of.io_ns),
            Finding::Stopped => (of.stopped_ns, of.seen_ns),
            Finding::Blind | Finding::Fine => return None,
        })
    }

    /// From which share on it counts, percent.
    pub fn threshold_percent(self) -> f64 {
        match self {
            Finding::Preempted(_) | Finding::Contention | Finding::Spinning => SPIN_PERCENT,
            Finding::Steal => STEAL_PERCENT,
            Finding::Io => IO_PERCENT,
            Finding::Stopped | Finding::Blind | Finding::Fine => 0.0,
        }
    }

    fn counts(self, of: &VmFigures) -> bool {
        let share = self.share_percent(of).unwrap_or(0.0);
        share > 0.0 && share >= self.threshold_percent()
    }
}

/// What is the matter with the VM, and what else counts, the largest share first.
///
/// A stop goes before anything else if more is lost by it; then preempted holders, waiters and receivers, whatever the VM lost
/// besides: where they are, waits for CPUs are always there, too, and are their cause, not another trouble. Of the rest the largest
/// share counts. Where pause-loop exits cannot be seen, only stops and I/O can be told.
pub fn decide(figures: &VmFigures, sight: &Sight) -> (Finding, Vec<Finding>) {
    let preempted = figures.preempted_cause().map(Finding::Preempted);
    let stopped = (figures.longest_stop_ns >= STOP_NS).then_some(Finding::Stopped);
    let others = [
        Finding::Contention,
        Finding::Spinning,
        Finding::Steal,
        Finding::Io,
    ];
    let mut found: Vec<Finding> = preempted.into_iter().chain(others).collect();
    found.retain(|finding| finding.counts(figures));
    found.extend(stopped);
    let share = |finding: &Finding| finding.share_percent(figures).unwrap_or(0.0);
    found.sort_by(|left, right| share(right).total_cmp(&share(left)));
    if *sight != Sight::Seen {
        found.retain(|finding| matches!(finding, Finding::Stopped | Finding::Io));
        let blind = found.first().copied().unwrap_or(Finding::Blind);
        found.retain(|finding| *finding != blind);
        return (blind, found);
    }
    let lost = |finding: &Finding| matches!(finding, Finding::Preempted(_) | Finding::Stopped);
    let first = found.iter().copied().find(lost);
    let first = first.or(found.first().copied()).unwrap_or(Finding::Fine);
    found.retain(|finding| *finding != first);
    (first, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Ten seconds of two vCPUs: 10 s on a CPU, 1 s of waits for one.
    fn figures() -> VmFigures {
        VmFigures {
            seen_ns: 10 * SECOND,
            running_ns: 10 * SECOND,
            waiting_ns: SECOND,
            halted_ns: 9 * SECOND,
            ..VmFigures::default()
        }
    }

    fn spins(mut figures: VmFigures, cause: Cause, ns: u64) -> VmFigures {
        figures.spin_time.add(cause, ns);
        figures
    }

    fn first(figures: &VmFigures) -> Finding {
        decide(figures, &Sight::Seen).0
    }

    #[test]
    fn nothing_is_the_matter_below_the_thresholds() {
        assert_eq!(first(&VmFigures::default()), Finding::Fine);
        assert_eq!(first(&figures()), Finding::Fine);
        let nearly = spins(figures(), Cause::HolderPreempted, SECOND / 2 - 1);
        assert_eq!(first(&nearly), Finding::Fine);
        let just = spins(figures(), Cause::HolderPreempted, SECOND / 2);
        assert_eq!(first(&just), Finding::Preempted(Cause::HolderPreempted));
        assert_eq!(
            Finding::Preempted(Cause::HolderPreempted).share_percent(&just),
            Some(5.0)
        );
    }

    #[test]
    fn no_share_is_of_less_time_than_was_spun() {
        let of = VmFigures {
            running_ns: 1,
            ..VmFigures::default()
        };
        let of = spins(of, Cause::Unknown, 2_527);
        assert_eq!(Finding::Spinning.share_percent(&of), Some(100.0));
    }

    #[test]
    fn causes_of_preemption_add_up_and_the_largest_names_them() {
        let mut of = spins(figures(), Cause::HolderPreempted, SECOND / 5);
        of = spins(of, Cause::CallUser, SECOND / 4);
        of = spins(of, Cause::NextWaiterPreempted, SECOND / 10);
        assert_eq!(first(&of), Finding::Preempted(Cause::CallUser));
    }

    #[test]
    fn waits_for_cpus_do_not_hide_what_they_cause() {
        let mut of = spins(figures(), Cause::NextWaiterPreempted, SECOND);
        of.waiting_ns = 30 * SECOND;
        let (first, others) = decide(&of, &Sight::Seen);
        assert_eq!(first, Finding::Preempted(Cause::NextWaiterPreempted));
        assert_eq!(others, [Finding::Steal]);
        of.spin_time = Default::default();
        assert_eq!(decide(&of, &Sight::Seen), (Finding::Steal, vec![]));
    }

    #[test]
    fn of_the_rest_the_largest_share_counts() {
        let mut of = spins(figures(), Cause::Contention, 2 * SECOND);
        of = spins(of, Cause::Unknown, SECOND);
        assert_eq!(
            decide(&of, &Sight::Seen),
            (Finding::Contention, vec![Finding::Spinning])
        );
        of.waiting_ns = 10 * SECOND;
        assert_eq!(first(&of), Finding::Steal);
        of.io_ns = 100 * SECOND;
        assert_eq!(first(&of), Finding::Io);
    }

    #[test]
    fn a_stop_counts_from_its_length_on_and_against_what_else_was_lost() {
        let mut of = figures();
        (of.stopped_ns, of.longest_stop_ns) = (2 * SECOND, STOP_NS - 1);
        assert_eq!(first(&of), Finding::Fine);
        of.longest_stop_ns = STOP_NS;
        assert_eq!(first(&of), Finding::Stopped);
        let worse = spins(of.clone(), Cause::HolderPreempted, 3 * SECOND);
        assert_eq!(first(&worse), Finding::Preempted(Cause::HolderPreempted));
        let less = spins(of, Cause::HolderPreempted, SECOND);
        assert_eq!(first(&less), Finding::Stopped);
    }

    #[test]
    fn the_blind_see_stops_and_io_only() {
        let blind = Sight::Blind("pause-loop exits are off".into());
        let mut of = spins(figures(), Cause::Contention, 5 * SECOND);
        of.waiting_ns = 10 * SECOND;
        assert_eq!(decide(&of, &blind), (Finding::Blind, vec![]));
        of.io_ns = 50 * SECOND;
        assert_eq!(decide(&of, &blind).0, Finding::Io);
        (of.stopped_ns, of.longest_stop_ns) = (SECOND, SECOND);
        assert_eq!(decide(&of, &blind), (Finding::Io, vec![Finding::Stopped]));
    }
}
