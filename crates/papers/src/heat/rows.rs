// SPDX-License-Identifier: MIT OR Apache-2.0
//! The heat map's measurements as `unspin report --papers --json` prints them.

use unspin_report::row;

use super::HeatMap;

row! {
    "remedy", ["report"];
    /// A remedy under a load: one measurement of the heat map. For programs alone: people have the page.
    pub struct RemedyRow {
        /// The map: `lab-papers`, `lab-policies`, `kvm-micro`, `kvm-linux`, `kvm-locks`.
        pub part: &'static str,
        /// What the VMs do.
        pub load: String,
        /// VMs x vCPUs.
        pub shape: String,
        /// vCPUs to CPUs.
        pub overcommit: Option<f64>,
        /// Pause-loop window, what guests publish, and what else a load's rows differ in.
        pub setting: String,
        /// What was done: a policy, a lock, a paper's mechanism.
        pub remedy: String,
        /// What it is compared with.
        pub baseline: String,
        /// Throughput, to the baseline's.
        pub throughput_ratio_to_baseline: f64,
        /// Lower bound of its interval; null where the data has none.
        pub throughput_ratio_to_baseline_low: Option<f64>,
        /// Upper bound.
        pub throughput_ratio_to_baseline_high: Option<f64>,
        /// What the interval is: `95 %` or `least to most`.
        pub interval_is: String,
        /// `higher` or `lower` than the baseline, `not resolved` or `no interval`.
        pub verdict: &'static str,
        /// Pairs or seeds; null where the data does not say.
        pub pairs: Option<u64>,
        /// Whether the map shows it: it is the newest of its cell.
        pub is_shown: bool,
        /// Whether the map says that nothing else measured under this load is better.
        pub is_best: bool,
        /// The folder of benchmarks/ that has it.
        pub benchmark: String,
        /// The line of its rows.jsonl.
        pub line: usize,
        /// The commit that was measured; of runs for the papers a hash of the lab's code; empty where it was not noted.
        pub commit: String,
        /// The day.
        pub date: String,
        /// Why it is older than what it depends on; empty when that is not known of it.
        pub stale: String,
    }
}

impl HeatMap {
    /// A row for each measurement.
    pub fn rows(&self) -> Vec<RemedyRow> {
        let (shown, best) = self.shown();
        let rows = self.entries().iter().enumerate().map(|(number, entry)| {
            let (place, origin) = (entry.place.clone(), entry.origin.clone());
            RemedyRow {
                part: place.part.name(),
                load: place.load,
                shape: place.shape,
                overcommit: place.overcommit,
                setting: place.setting,
                remedy: entry.remedy.clone(),
                baseline: entry.baseline.clone(),
                throughput_ratio_to_baseline: entry.ratio,
                throughput_ratio_to_baseline_low: entry.interval.map(|(low, _)| low),
                throughput_ratio_to_baseline_high: entry.interval.map(|(_, high)| high),
                interval_is: match entry.interval {
                    Some(_) => entry.interval_is.clone(),
                    None => String::new(),
                },
                verdict: entry.verdict(),
                pairs: entry.pairs,
                is_shown: shown.contains(&number),
                is_best: best.contains(&number),
                benchmark: origin.benchmark,
                line: origin.line,
                commit: origin.commit,
                date: origin.date,
                stale: entry.stale.clone(),
            }
        });
        rows.collect()
    }
}
