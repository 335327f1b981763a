// SPDX-License-Identifier: MIT OR Apache-2.0
//! What counts as harm, and where it begins.

mod rule;
mod watch;

use std::time::Duration;

use unspin_agent::SteerEnd;

pub use rule::Judged;
use rule::{Rule, Scale, Worse};
pub(crate) use watch::{Key, Watch, figures};

/// How often figures are read and guards asked.
pub(crate) const WINDOW: Duration = Duration::from_millis(250);
/// So many windows in a row are judged together: a second. One that is odd by itself ends nothing.
const GROUP: usize = 4;
/// The same of runs of the probe.
const PROBE_GROUP: usize = 2;
/// From the change of schedulers on guards look away for so long: a sleeper is late by up to 52 ms at an attach (docs/known-issues.md), and a convoy takes up
/// to a second to form or to drain (docs/decisions/auto.md). With a group of windows and what giving the host back takes (0.54 to 0.94 s,
/// docs/known-issues.md) that leaves two of the five seconds.
pub(crate) const SETTLED_AFTER: Duration = Duration::from_secs(1);

/// So long after an attach `auto` tries its sets: three beside the first one, each in at most 12 pairs of two epochs of 250 ms
/// (UNSPIN_TRIAL_PAIRS, UNSPIN_AUTO_EPOCH_NS), 18 s, and some. A set that is tried may do less than the kernel's scheduler for as
/// long: what VMs do meanwhile is left out, and only delays, the probe's failure and the kernel's own watchdog are harm.
pub(crate) const AUTO_LEARNS_FOR: Duration = Duration::from_secs(20);

/// Useful time as a share of the time in which vCPUs wanted to run: below this it is nothing. One vCPU in a thousand.
const USEFUL_FLOOR: f64 = 1e-3;
/// Shorter delays are as good as none, ns: what a switch takes.
const DELAY_FLOOR_NS: f64 = 10_000.0;
/// Run delays that differ by less are no harm, ns. The kernel's directed yields make many short runs with short waits (0.2 ms in a convoy);
/// where each vCPU has its whole slice it waits for those of all before it: six of 4 ms.
const DELAY_LEAST_NS: f64 = 25_000_000.0;
/// The same of the sleeper, ns: what those who wait for disks and networks on spinning media notice first.
const SLEEPER_LEAST_NS: f64 = 5_000_000.0;
/// A probe that prints less prints nothing.
const PROBE_FLOOR: f64 = 1e-9;

/// From where on each guard calls it harm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// A VM's useful time, as a share of the time in which its vCPUs wanted to run, falls by so much, percent.
    pub useful_loss_percent: f64,
    /// A VM's spin time, as a share of its time in the guest, rises by so much, percentage points.
    pub spin_rise_points: f64,
    /// The 99th percentile of a VM's run delays rises to so many times.
    pub run_delay_rise: f64,
    /// The same of the sleeper's delays.
    pub sleeper_delay_rise: f64,
    /// What the probe prints falls by so much, percent.
    pub probe_loss_percent: f64,
}

impl Default for Limits {
    /// A fifth of useful time, as `auto` drops a set (policy/auto/trial.h); 15 points of spin time, by which `auto` tells one load from
    /// another (policy/auto/loads.h); three times the delay: twice is what one more vCPU in the queue of two makes; a fifth of the probe's.
    fn default() -> Limits {
        Limits {
            useful_loss_percent: 20.0,
            spin_rise_points: 15.0,
            run_delay_rise: 3.0,
            sleeper_delay_rise: 3.0,
            probe_loss_percent: 20.0,
        }
    }
}

impl Limits {
    /// Whether they can be.
    ///
    /// # Errors
    /// Which one cannot, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        let percent = |option: &str, value: f64| match value > 0.0 && value < 100.0 {
            true => Ok(()),
            false => Err(format!("{option} is {value}: above 0 and below 100")),
        };
        let factor = |option: &str, value: f64| match value > 1.0 && value.is_finite() {
            true => Ok(()),
            false => Err(format!("{option} is {value}: a factor above 1")),
        };
        percent("--max-useful-loss", self.useful_loss_percent)?;
        percent("--max-spin-rise", self.spin_rise_points)?;
        factor("--max-delay-rise", self.run_delay_rise)?;
        factor("--max-sleeper-rise", self.sleeper_delay_rise)?;
        percent("--max-probe-loss", self.probe_loss_percent)
    }
}

/// What says that there is harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// Useful time of a VM, as a share of the time in which its vCPUs ran or waited for a CPU; 0 to 1.
    UsefulShare,
    /// Spin time of a VM, as a share of its time in the guest; percent.
    SpinShare,
    /// 99th percentile over a VM's vCPUs of the time that they waited for a CPU before each run, in a window; ns.
    RunDelay,
    /// 99th percentile of how late a thread that sleeps for 1 ms wakes up, in a window; ns.
    SleeperDelay,
    /// What the probe prints.
    Probe,
    /// The probe fails, or does not end in time.
    ProbeFails,
    /// The kernel has taken its own scheduler back.
    TakenBack,
    /// All pairs together: a VM, or the probe, does certainly less than 0.90 of what it did.
    Pairs,
}

impl Guard {
    /// Whether it judges how late somebody gets a CPU: that is bounded under every policy.
    pub(crate) fn is_delay(self) -> bool {
        matches!(self, Guard::RunDelay | Guard::SleeperDelay)
    }

    /// One word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Guard::UsefulShare => "useful-share",
            Guard::SpinShare => "spin-share",
            Guard::RunDelay => "run-delay",
            Guard::SleeperDelay => "sleeper-delay",
            Guard::Probe => "probe",
            Guard::ProbeFails => "probe-fails",
            Guard::TakenBack => "taken-back",
            Guard::Pairs => "pairs",
        }
    }

    /// Of those that judge a figure.
    fn rule(self, limits: &Limits) -> Option<Rule> {
        let kept = |percent: f64| 1.0 / (1.0 - percent / 100.0);
        let lower = |floor, percent| Rule {
            scale: Scale::Ratio { floor },
            worse: Worse::Lower,
            by: kept(percent),
            least: 0.0,
            group: GROUP,
        };
        let later = |by, least| Rule {
            scale: Scale::Ratio {
                floor: DELAY_FLOOR_NS,
            },
            worse: Worse::Higher,
            by,
            least,
            group: GROUP,
        };
        Some(match self {
            Guard::UsefulShare => lower(USEFUL_FLOOR, limits.useful_loss_percent),
            Guard::SpinShare => Rule {
                scale: Scale::Odds,
                worse: Worse::Higher,
                by: 1.0,
                least: limits.spin_rise_points,
                group: GROUP,
            },
            Guard::RunDelay => later(limits.run_delay_rise, DELAY_LEAST_NS),
            Guard::SleeperDelay => later(limits.sleeper_delay_rise, SLEEPER_LEAST_NS),
            Guard::Probe => Rule {
                group: PROBE_GROUP,
                ..lower(PROBE_FLOOR, limits.probe_loss_percent)
            },
            Guard::ProbeFails | Guard::TakenBack | Guard::Pairs => return None,
        })
    }
}

/// Values of the probe that a phase of the kernel's scheduler must have, so that it can guard.
pub(crate) const PROBE_VALUES_MIN: usize = 3 * PROBE_GROUP;

/// Harm: why the host was given back.
#[derive(Clone, Debug, PartialEq)]
pub struct Harm {
    /// What says so.
    pub guard: Guard,
    /// The VM's number; `None`: the host.
    pub vm: Option<usize>,
    /// Both figures; `None`: it is no matter of figures.
    pub judged: Option<Judged>,
    /// More about it; may be empty.
    pub message: String,
    /// Why the kernel took its own scheduler back.
    pub end: Option<SteerEnd>,
    /// From when our scheduler began until this was seen.
    pub seen_after: Duration,
    /// From when our scheduler began until the kernel's own was back.
    pub back_after: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_cannot_be_are_refused() {
        assert_eq!(Limits::default().check(), Ok(()));
        let wrong = [
            (
                Limits {
                    useful_loss_percent: 100.0,
                    ..Limits::default()
                },
                "--max-useful-loss",
            ),
            (
                Limits {
                    spin_rise_points: 0.0,
                    ..Limits::default()
                },
                "--max-spin-rise",
            ),
            (
                Limits {
                    run_delay_rise: 1.0,
                    ..Limits::default()
                },
                "--max-delay-rise",
            ),
            (
                Limits {
                    sleeper_delay_rise: f64::INFINITY,
                    ..Limits::default()
                },
                "--max-sleeper-rise",
            ),
            (
                Limits {
                    probe_loss_percent: f64::NAN,
                    ..Limits::default()
                },
                "--max-probe-loss",
            ),
        ];
        for (limits, option) in wrong {
            let says = limits.check().expect_err(option);
            assert!(says.starts_with(option), "{says}");
        }
    }

    #[test]
    fn harm_is_seen_and_undone_within_five_seconds() {
        let seen = SETTLED_AFTER + WINDOW * (GROUP as u32 + 1);
        assert!(seen <= Duration::from_millis(2_250), "{seen:?}");
    }
}
