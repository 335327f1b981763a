// SPDX-License-Identifier: MIT OR Apache-2.0
//! What all pairs together show.

use std::collections::BTreeMap;

use unspin_report::{Comparison, Harm as NonInferior, Verdict};

use crate::phase::Phase;

/// What is gained must lie above this with its whole interval: as for a set of `auto` (policy/auto/trial.h), since a scheduler that brings less is not
/// worth being another one.
const GAIN: f64 = 1.01;

/// What was done under our scheduler beside the kernel's, pair by pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// Useful time a second of all VMs together; `None`: there was none in some column.
    pub host: Option<Comparison>,
    /// The same of each VM, by number.
    pub vms: BTreeMap<usize, Comparison>,
    /// What the probe prints; `None`: there is none.
    pub probe: Option<Comparison>,
}

/// What it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Our scheduler does more.
    Better,
    /// It does certainly less than 0.90 for somebody: a VM by number, or by the probe.
    Worse(Option<usize>),
    /// Neither.
    NoDifference,
}

impl Compared {
    /// Of phases that belong to pairs; one that is cut short or without its other half is left out, and so is a VM that was not there in both.
    pub(crate) fn of(phases: &[Phase]) -> Compared {
        let mut pairs: BTreeMap<usize, [Option<&Phase>; 2]> = BTreeMap::new();
        for phase in phases.iter().filter(|phase| phase.whole) {
            pairs.entry(phase.pair).or_default()[usize::from(phase.steered)] = Some(phase);
        }
        let whole: Vec<(&Phase, &Phase)> = pairs
            .into_values()
            .filter_map(|[kernel, steered]| steered.zip(kernel))
            .collect();
        let compared = |figure: &dyn Fn(&Phase) -> Option<f64>| {
            let each = whole.iter();
            let values: Vec<(f64, f64)> = each
                .filter_map(|(steered, kernel)| figure(steered).zip(figure(kernel)))
                .collect();
            Comparison::of(&values)
        };
        let numbers = phases.iter().flat_map(|phase| phase.sum.vms.keys());
        let mut vms = BTreeMap::new();
        for number in numbers {
            if !vms.contains_key(number) {
                let of = compared(&|phase| phase.useful_per_s(*number));
                vms.insert(*number, of);
            }
        }
        let present = vms.into_iter();
        Compared {
            host: compared(&Phase::all_useful_per_s),
            vms: present.filter_map(|(vm, of)| Some((vm, of?))).collect(),
            probe: compared(&Phase::probe_mean),
        }
    }

    /// What that shows.
    pub(crate) fn shows(&self) -> Shown {
        let harms = |of: &Comparison| NonInferior::of(of, NonInferior::CELL) == NonInferior::Harm;
        if let Some((vm, _)) = self.vms.iter().find(|(_, of)| harms(of)) {
            return Shown::Worse(Some(*vm));
        }
        if self.probe.as_ref().is_some_and(harms) {
            return Shown::Worse(None);
        }
        let is = |of: &Comparison, verdict| of.verdict == verdict && of.unusable_pairs == 0;
        let gains =
            |of: &Comparison| is(of, Verdict::Higher) && of.interval.low > GAIN && of.pairs > 1;
        // Whoever has a measure of his own knows better than the host.
        if let Some(probe) = &self.probe {
            if gains(probe) {
                return Shown::Better;
            }
            if is(probe, Verdict::Lower) {
                return Shown::NoDifference;
            }
        }
        let nobody_loses = self.vms.values().all(|of| !is(of, Verdict::Lower));
        let somebody_gains = self.vms.values().any(gains);
        match self.host.as_ref().is_some_and(gains) || (somebody_gains && nobody_loses) {
            true => Shown::Better,
            false => Shown::NoDifference,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ratios: &[f64]) -> Comparison {
        let pairs: Vec<(f64, f64)> = ratios.iter().map(|ratio| (*ratio, 1.0)).collect();
        Comparison::of(&pairs).expect("pairs")
    }

    const MORE: &[f64] = &[2.0, 2.1, 1.9, 2.0];
    const SAME: &[f64] = &[1.0, 1.02, 0.98, 1.01];
    const LITTLE_LESS: &[f64] = &[0.95, 0.951, 0.949, 0.95];
    const LESS: &[f64] = &[0.5, 0.51, 0.49, 0.5];

    fn shows(host: &[f64], vms: &[&[f64]], probe: Option<&[f64]>) -> Shown {
        let compared = Compared {
            host: Some(of(host)),
            vms: vms.iter().map(|ratios| of(ratios)).enumerate().collect(),
            probe: probe.map(of),
        };
        compared.shows()
    }

    #[test]
    fn what_does_more_is_kept() {
        assert_eq!(shows(MORE, &[MORE, SAME], None), Shown::Better);
        // One VM gains, the others go on.
        assert_eq!(shows(SAME, &[MORE, SAME], None), Shown::Better);
        assert_eq!(shows(SAME, &[MORE, LITTLE_LESS], None), Shown::NoDifference);
        // Together they do more, although one does a little less.
        assert_eq!(shows(MORE, &[MORE, LITTLE_LESS], None), Shown::Better);
    }

    #[test]
    fn nobody_may_lose_for_others() {
        assert_eq!(shows(MORE, &[MORE, LESS], None), Shown::Worse(Some(1)));
        assert_eq!(shows(LESS, &[LESS], Some(MORE)), Shown::Worse(Some(0)));
    }

    #[test]
    fn the_probe_knows_better() {
        assert_eq!(shows(MORE, &[MORE], Some(LESS)), Shown::Worse(None));
        assert_eq!(shows(MORE, &[MORE], Some(LITTLE_LESS)), Shown::NoDifference);
        assert_eq!(shows(SAME, &[SAME], Some(MORE)), Shown::Better);
        assert_eq!(shows(MORE, &[MORE], Some(SAME)), Shown::Better);
    }

    #[test]
    fn what_is_not_shown_is_no_difference() {
        assert_eq!(shows(SAME, &[SAME], None), Shown::NoDifference);
        // One pair has no interval, and less than a hundredth is nothing.
        assert_eq!(shows(&[2.0], &[&[2.0]], None), Shown::NoDifference);
        let hardly = &[1.005, 1.0051, 1.0049, 1.005];
        assert_eq!(shows(hardly, &[hardly], None), Shown::NoDifference);
        assert_eq!(Compared::default().shows(), Shown::NoDifference);
    }
}
