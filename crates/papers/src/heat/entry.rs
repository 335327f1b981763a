// SPDX-License-Identifier: MIT OR Apache-2.0
//! One measurement of a remedy, and where on the map it stands.

use std::cmp::Ordering;

use serde::Deserialize;

/// Maps that have remedies and baselines of one kind.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// The papers' remedies on the papers' loads, in the lab.
    LabPapers,
    /// Other policies in the lab.
    LabPolicies,
    /// Policies with micro guests under KVM.
    KvmMicro,
    /// Policies with Linux guests under KVM.
    KvmLinux,
    /// Locks of guests under KVM, without a policy.
    KvmLocks,
}

impl Part {
    /// All, in the order in which they are shown.
    pub const ALL: [Part; 5] = [
        Part::LabPapers,
        Part::LabPolicies,
        Part::KvmMicro,
        Part::KvmLinux,
        Part::KvmLocks,
    ];

    /// As the file and `--json` spell it.
    pub fn name(self) -> &'static str {
        match self {
            Part::LabPapers => "lab-papers",
            Part::LabPolicies => "lab-policies",
            Part::KvmMicro => "kvm-micro",
            Part::KvmLinux => "kvm-linux",
            Part::KvmLocks => "kvm-locks",
        }
    }

    /// In words.
    pub fn title(self) -> &'static str {
        match self {
            Part::LabPapers => "The lab: the papers' remedies on the papers' loads",
            Part::LabPolicies => "The lab: unspin's policies",
            Part::KvmMicro => "KVM (testbed): policies, micro guests",
            Part::KvmLinux => "KVM (testbed): policies, unmodified Linux guests",
            Part::KvmLocks => "KVM (testbed): the guests' locks, no policy",
        }
    }
}

/// A row of the map.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Which map.
    pub part: Part,
    /// What the VMs do.
    pub load: String,
    /// VMs x vCPUs of each.
    pub shape: String,
    /// vCPUs to CPUs.
    pub overcommit: Option<f64>,
    /// The pause-loop window, what guests publish, and what else a load's rows differ in.
    pub setting: String,
}

impl Eq for Place {}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Place {
    fn cmp(&self, other: &Place) -> Ordering {
        let words = |of: &Place| (of.shape.clone(), of.setting.clone());
        let overcommit = |of: &Place| of.overcommit.unwrap_or(0.0);
        let part = self.part.cmp(&other.part);
        part.then_with(|| self.load.cmp(&other.load))
            .then_with(|| overcommit(self).total_cmp(&overcommit(other)))
            .then_with(|| words(self).cmp(&words(other)))
    }
}

/// Which data an entry is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The folder of `benchmarks/`.
    pub benchmark: String,
    /// The line of its rows.jsonl, from 1.
    pub line: usize,
    /// The commit that was measured; of the lab's runs for papers the hash of its code; empty: not noted.
    pub commit: String,
    /// The day.
    pub date: String,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Where it stands.
    pub place: Place,
    /// What was done.
    pub remedy: String,
    /// What it is compared with.
    pub baseline: String,
    /// Throughput, to the baseline's.
    pub ratio: f64,
    /// Of the ratio, where the data has one.
    pub interval: Option<(f64, f64)>,
    /// `95 %` or `least to most`.
    pub interval_is: String,
    /// Pairs, or seeds; none where the data does not say.
    pub pairs: Option<u64>,
    /// Which data.
    pub origin: Origin,
    /// Why it is older than what it depends on; empty when that is not known of it.
    pub stale: String,
}

impl Entry {
    /// By place and remedy; the older before the newer, and of one day in the order of the data.
    pub(super) fn order(&self, other: &Entry) -> Ordering {
        let rest = |of: &Entry| {
            let origin = &of.origin;
            (
                of.remedy.clone(),
                origin.date.clone(),
                of.pairs,
                origin.benchmark.clone(),
                origin.line,
            )
        };
        let place = self.place.cmp(&other.place);
        place.then_with(|| rest(self).cmp(&rest(other)))
    }

    /// `higher` or `lower` than the baseline, `not resolved` where the interval includes 1, `no interval` where there is none.
    pub fn verdict(&self) -> &'static str {
        match self.interval {
            None => "no interval",
            Some((low, _)) if low > 1.0 => "higher",
            Some((_, high)) if high < 1.0 => "lower",
            Some(_) => "not resolved",
        }
    }
}

/// VMs x vCPUs over CPUs; none of a shape that is not of that form.
pub(super) fn overcommit(shape: &str, cpus: u32) -> Option<f64> {
    let (vms, vcpus) = shape.split_once('x')?;
    let (vms, vcpus): (u32, u32) = (vms.parse().ok()?, vcpus.parse().ok()?);
    Some(f64::from(vms * vcpus) / f64::from(cpus))
}
