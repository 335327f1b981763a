// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of a window, those of the kernel's scheduler, and whether the last ones under ours are harm.

use std::collections::{BTreeMap, VecDeque};

use super::{
    Guard, Judged, Limits,
    rule::{Baseline, Rule},
};
use crate::reading::Window;

/// Whose figure it is: what, and of which VM (by number; `None`: the host's).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) guard: Guard,
    pub(crate) vm: Option<usize>,
}

/// What guards look at in a window.
pub(crate) fn figures(window: &Window) -> Vec<(Key, f64)> {
    let host = Key {
        guard: Guard::SleeperDelay,
        vm: None,
    };
    let late = window.sleeper_p99_ns().map(|ns| (host, ns as f64));
    let of_vms = window.vms.iter().flat_map(|(number, vm)| {
        let figures = [
            (Guard::UsefulShare, vm.useful_share(window.length)),
            (Guard::SpinShare, vm.spin_percent(window.length)),
            (
                Guard::RunDelay,
                vm.run_delay_p99_ns(window.length).map(|ns| ns as f64),
            ),
        ];
        let vm = Some(*number);
        figures
            .into_iter()
            .filter_map(move |(guard, value)| Some((Key { guard, vm }, value?)))
    });
    late.into_iter().chain(of_vms).collect()
}

/// All guards that judge figures.
pub(crate) struct Watch {
    limits: Limits,
    /// Of each phase of the kernel's scheduler.
    kernel: BTreeMap<Key, Vec<Vec<f64>>>,
    baselines: BTreeMap<Key, Baseline>,
    recent: BTreeMap<Key, VecDeque<f64>>,
}

impl Watch {
    pub(crate) fn new(limits: Limits) -> Watch {
        Watch {
            limits,
            kernel: BTreeMap::new(),
            baselines: BTreeMap::new(),
            recent: BTreeMap::new(),
        }
    }

    /// A phase of the kernel's scheduler has ended, in which these were measured.
    pub(crate) fn kernel(&mut self, measured: impl IntoIterator<Item = (Key, f64)>) {
        let mut phase: BTreeMap<Key, Vec<f64>> = BTreeMap::new();
        for (key, value) in measured {
            phase.entry(key).or_default().push(value);
        }
        for (key, values) in phase {
            let all = self.kernel.entry(key).or_default();
            all.push(values);
            let rule = key.guard.rule(&self.limits);
            if let Some(baseline) = rule.and_then(|rule| Baseline::of(rule, all)) {
                self.baselines.insert(key, baseline);
            }
        }
    }

    /// Our scheduler has begun: what was seen under it before is forgotten.
    pub(crate) fn begin(&mut self) {
        self.recent.clear();
    }

    /// Figures under our scheduler; the harm that they show, if any.
    pub(crate) fn steered(
        &mut self,
        seen: impl IntoIterator<Item = (Key, f64)>,
    ) -> Option<(Key, Judged)> {
        let mut harm = None;
        for (key, value) in seen {
            let (Some(baseline), Some(rule)) =
                (self.baselines.get(&key), key.guard.rule(&self.limits))
            else {
                continue; // A VM that came later.
            };
            let recent = self.recent.entry(key).or_default();
            push(recent, value, rule);
            let judged = baseline.judge(recent.make_contiguous());
            harm = harm.or(judged.map(|judged| (key, judged)));
        }
        harm
    }
}

fn push(recent: &mut VecDeque<f64>, value: f64, rule: Rule) {
    if recent.len() == rule.group {
        recent.pop_front();
    }
    recent.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const VMS: usize = 5;
    /// Windows of a phase of 10 s.
    const WINDOWS: usize = 40;
    const PAIRS: usize = 4;

    /// Xorshift (Marsaglia 2003), and normal variates as sums of twelve.
    struct Noise(u64);

    impl Noise {
        fn uniform(&mut self) -> f64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }

        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
        }
    }

    /// A host whose figures vary by `spread` (of their logarithm, of spin time that of its odds), each window's beside the last one's by `alike`; under our
    /// scheduler useful shares are `factor` times as large.
    struct Host {
        noise: Noise,
        state: BTreeMap<Key, f64>,
        spread: f64,
        alike: f64,
    }

    impl Host {
        fn new(seed: u64, spread: f64, alike: f64) -> Host {
            let mut noise = Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            for _ in 0..8 {
                noise.uniform();
            }
            Host {
                noise,
                state: BTreeMap::new(),
                spread,
                alike,
            }
        }

        fn window(&mut self, factor: f64) -> Vec<(Key, f64)> {
            let sleeper = Key {
                guard: Guard::SleeperDelay,
                vm: None,
            };
            let of_vms = (0..VMS).flat_map(|vm| {
                [Guard::UsefulShare, Guard::SpinShare, Guard::RunDelay].map(|guard| Key {
                    guard,
                    vm: Some(vm),
                })
            });
            let keys: Vec<Key> = of_vms.chain([sleeper]).collect();
            let each = keys.into_iter().map(|key| {
                let fresh = self.noise.normal() * (1.0 - self.alike * self.alike).sqrt();
                let state = self.state.entry(key).or_default();
                *state = *state * self.alike + fresh;
                let unrest = (self.spread * *state).exp();
                let value = match key.guard {
                    Guard::UsefulShare => 0.3 * unrest * factor,
                    Guard::SpinShare => 100.0 / (1.0 + 2.0 / unrest),
                    Guard::RunDelay => 6e6 * unrest,
                    _ => 2e5 * unrest,
                };
                (key, value)
            });
            each.collect()
        }

        /// The window under our scheduler in which it ends; `None`: all pairs are measured.
        fn canary(&mut self, factor: f64) -> Option<usize> {
            let mut watch = Watch::new(Limits::default());
            let mut steered = 0;
            for pair in 0..PAIRS {
                let first = pair % 2 == 0;
                for kernel in [first, !first] {
                    if kernel {
                        let phase: Vec<_> = (0..WINDOWS).flat_map(|_| self.window(1.0)).collect();
                        watch.kernel(phase);
                        continue;
                    }
                    watch.begin();
                    for _ in 0..WINDOWS {
                        steered += 1;
                        if watch.steered(self.window(factor)).is_some() {
                            return Some(steered);
                        }
                    }
                }
            }
            None
        }
    }

    /// How many of so many seeds end.
    fn ended(seeds: u64, spread: f64, alike: f64) -> u64 {
        let ends = |seed: &u64| Host::new(*seed, spread, alike).canary(1.0).is_some();
        (1..=seeds).filter(ends).count() as u64
    }

    #[test]
    fn noise_alone_ends_less_than_one_canary_in_a_hundred() {
        const SEEDS: u64 = 3_000;
        for (spread, alike) in [(0.05, 0.0), (0.2, 0.0), (0.5, 0.0), (0.2, 0.5), (0.5, 0.7)] {
            let ended = ended(SEEDS, spread, alike);
            println!("  spread {spread}, alike {alike}: {ended} of {SEEDS}");
            assert!(ended * 100 < SEEDS, "{spread} {alike}: {ended} of {SEEDS}");
        }
    }

    #[test]
    fn harm_is_seen_in_the_first_phase() {
        for seed in 1..=500 {
            // A VM that does a third, among figures that vary by a tenth: within 2 s.
            let seen = Host::new(seed, 0.1, 0.3).canary(1.0 / 3.0);
            assert!(seen.is_some_and(|windows| windows <= 8), "{seed}: {seen:?}");
            // A tenth less is none.
            assert_eq!(Host::new(seed, 0.02, 0.3).canary(0.9), None, "{seed}");
        }
    }

    #[test]
    fn a_vm_that_came_later_is_not_judged_and_each_phase_begins_anew() {
        let key = |vm| Key {
            guard: Guard::UsefulShare,
            vm: Some(vm),
        };
        let mut watch = Watch::new(Limits::default());
        watch.kernel(vec![(key(1), 0.5); 12]);
        assert_eq!(watch.baselines.len(), 1);
        watch.begin();
        for _ in 0..3 {
            assert_eq!(watch.steered([(key(2), 0.0), (key(1), 0.1)]), None);
        }
        // Three of one phase and one of the next are no group.
        watch.begin();
        assert_eq!(watch.steered([(key(1), 0.1)]), None);
        for _ in 0..2 {
            assert_eq!(watch.steered([(key(1), 0.1)]), None);
        }
        let (of, judged) = watch.steered([(key(1), 0.1)]).expect("a second of it");
        assert_eq!(of, key(1));
        assert!(judged.steered < judged.limit && judged.limit < judged.kernel);
    }
}
