// SPDX-License-Identifier: MIT OR Apache-2.0
//! Friebel's histograms and what each threshold costs, as rows.

use unspin_report::row;

use super::{Thresholds, measured::Measured, predicted_wall_gain, thresholds};
use crate::WaitHistogram;

/// Longest bar, characters.
const BAR: f64 = 30.0;

row! {
    "vm", ["threshold"];
    /// A VM's time, and what of it went into waiting loops.
    pub struct VmRow {
        /// The VM's number.
        pub vm: String = ("VM", Text),
        /// Its name.
        pub name: String = ("name", Text),
        /// CPU time of its vCPUs; ns.
        pub guest_ns: f64 = ("guest time", Nanoseconds),
        /// Waits that pause-loop exits show.
        pub waits: Option<u64> = ("waits seen", Count),
        /// Time on a CPU in these, a lower bound; ns.
        pub spinning_ns: Option<f64> = ("spinning", Nanoseconds),
        /// Of that, time in KVM's handling of exits; ns.
        pub handling_ns: Option<u64> = ("of it in KVM", Nanoseconds),
        /// Share of `spinning_ns` in `guest_ns`; percent.
        pub spinning_percent: Option<f64> = ("%", Percent),
        /// CPU time of other VMs and of the host; ns.
        pub others_ns: f64 = ("others' time", Nanoseconds),
        /// By how much it would run faster without spinning (Friebel 2008); percent.
        pub predicted_wall_gain_percent: Option<f64> = ("wall gain %", Percent),
        /// CPU time by the guest's own figures; ns.
        pub guest_reported_cpu_ns: Option<f64> = ("guest tells: of", Nanoseconds),
        /// Time spun by the guest's own figures; ns.
        pub guest_reported_spinning_ns: Option<f64> = ("spinning", Nanoseconds),
        /// Share of it in CPU time, both as the guest says; percent.
        pub guest_reported_spinning_percent: Option<f64> = ("%", Percent),
        /// The same gain, of the guest's figures; percent.
        pub guest_reported_wall_gain_percent: Option<f64> = ("wall gain %", Percent),
    }
}

row! {
    "interval", ["threshold"];
    /// Between which lengths of waits a threshold parts ordinary waits from those for a preempted vCPU.
    pub struct IntervalRow {
        /// Whose figures: `host` or `guest`.
        pub source: &'static str = ("seen by", Text),
        /// Of which VM, or `all`.
        pub scope: String = ("VMs", Text),
        /// Waits shorter than this are not seen; ns.
        pub unseen_below_ns: Option<u64> = ("unseen below", Nanoseconds),
        /// The most frequent length of ordinary waits; ns.
        pub ordinary_peak_ns: Option<f64> = ("ordinary peak", Nanoseconds),
        /// Begin of the interval; ns.
        pub from_ns: Option<f64> = ("interval from", Nanoseconds),
        /// End of the interval; ns.
        pub to_ns: Option<f64> = ("to", Nanoseconds),
        /// The most frequent length of waits for preempted vCPUs; ns.
        pub preemption_peak_ns: Option<f64> = ("preemption peak", Nanoseconds),
        /// Whether there is such an interval.
        pub verdict: &'static str = ("verdict", Text),
    }
}

row! {
    "histogram", ["threshold"];
    /// Waits of one range of lengths.
    pub struct HistogramRow {
        /// Whose figures: `host` or `guest`.
        pub source: &'static str,
        /// Of which VM, or `all`.
        pub scope: String,
        /// The least length, up to that of the next row; ns.
        pub from_ns: f64 = ("from", Nanoseconds),
        /// Waits.
        pub waits: u64 = ("waits", Count),
        /// Share in all waits; percent.
        pub waits_percent: f64 = ("%", Percent),
        /// The share as a bar.
        pub waits_bar: String = ("by count", Text),
        /// Their time; ns.
        pub time_ns: f64 = ("time", Nanoseconds),
        /// Share in the time of all waits; percent.
        pub time_percent: f64 = ("%", Percent),
        /// The share as a bar.
        pub time_bar: String = ("by time", Text),
        /// Which side of the interval: `ordinary`, `interval` or `preemption`; null without one.
        pub side: Option<&'static str> = ("", Text),
    }
}

row! {
    "threshold", ["threshold"];
    /// What it costs to end spinning after some time.
    pub struct ChoiceRow {
        /// Whose figures: `host` or `guest`.
        pub source: &'static str,
        /// Of which VM, or `all`.
        pub scope: String,
        /// The time after which spinning would end; ns.
        pub threshold_ns: f64 = ("threshold", Nanoseconds),
        /// Whether it lies in the interval: `yes` or `no`; null without one.
        pub in_interval: Option<&'static str> = ("in interval", Text),
        /// Share of ordinary waits that would end needlessly; percent.
        pub needless_percent: Option<f64> = ("ordinary exits %", Percent),
        /// Waits that would end there.
        pub exits: u64 = ("waits that exit", Count),
        /// Time that all waits spin until then; ns.
        pub spin_ns: f64 = ("spin time before", Nanoseconds),
        /// Its share in guest time; percent.
        pub spin_percent: Option<f64> = ("% of guest time", Percent),
    }
}

/// One kind of evidence about one set of VMs.
pub struct View {
    /// Whose figures: `host` or `guest`.
    pub source: &'static str,
    /// The VM's name, or `all`.
    pub scope: String,
    /// The waits.
    pub histogram: WaitHistogram,
    /// What they say of thresholds.
    pub found: Thresholds,
    unseen_below_ns: Option<u64>,
}

/// What the host sees, and what the guests measured if they did: of one VM, or of all together.
pub fn views(measured: &Measured, vm: Option<u32>) -> Vec<View> {
    let scope = vm.map_or("all".to_owned(), |vm| measured.names[&vm].clone());
    let histogram = measured.host_histogram(vm);
    let mut views = vec![View {
        source: "host",
        scope: scope.clone(),
        found: thresholds(&histogram, Some(measured.running_ns(vm) as f64)),
        histogram,
        unseen_below_ns: measured.unseen_below_ns(vm),
    }];
    if let Some(histogram) = measured.guest_histogram(vm) {
        views.push(View {
            source: "guest",
            scope,
            // These waits are on a CPU or off it: no share of CPU time.
            found: thresholds(&histogram, None),
            histogram,
            unseen_below_ns: None,
        });
    }
    views
}

/// Every VM's time.
pub fn vms(measured: &Measured) -> Vec<VmRow> {
    let mut rows = Vec::new();
    let all_ns = measured.running_ns(None) as f64 + measured.times.host_ns as f64;
    for (&vm, &guest_ns) in &measured.times.vm_ns {
        let guest_ns = guest_ns as f64;
        let waits = measured.waits.get(&vm);
        // A guest cannot tell the time that an exit takes from spinning, nor is it of more use.
        let seen_ns = waits.map(|waits| (waits.spinning_ns + waits.handling_ns) as f64);
        let told = measured.guests.get(&vm);
        let others_ns = all_ns - guest_ns;
        let share =
            |part: Option<f64>, whole: f64| part.filter(|_| whole > 0.0).map(|part| part / whole);
        let gain = |share: Option<f64>| {
            let gain = predicted_wall_gain(guest_ns, others_ns, share?)?;
            Some(100.0 * gain)
        };
        let seen_share = share(seen_ns, guest_ns);
        let told_share = told.and_then(|told| share(told.spinning_ns, told.cpu_ns));
        rows.push(VmRow {
            vm: vm.to_string(),
            name: measured.names[&vm].clone(),
            guest_ns,
            waits: waits.map(|waits| waits.histogram.waits()),
            spinning_ns: seen_ns,
            handling_ns: waits.map(|waits| waits.handling_ns),
            spinning_percent: percent(seen_share),
            others_ns,
            predicted_wall_gain_percent: gain(seen_share),
            guest_reported_cpu_ns: told.map(|told| told.cpu_ns),
            guest_reported_spinning_ns: told.and_then(|told| told.spinning_ns),
            guest_reported_spinning_percent: percent(told_share),
            guest_reported_wall_gain_percent: gain(told_share),
        });
    }
    rows
}

/// Whether anything parts the waits of each view.
pub fn intervals(views: &[View]) -> Vec<IntervalRow> {
    let mut rows = Vec::new();
    for view in views {
        let at = |bucket: Option<usize>| bucket.map(|bucket| view.histogram.floor_ns(bucket));
        let valley = view.found.valley;
        let verdict = match (valley, view.histogram.waits()) {
            (Some(_), _) => "a threshold in the interval parts them",
            (None, 0) => "no waits",
            (None, _) => "no valley: nothing parts ordinary from preemption waits",
        };
        rows.push(IntervalRow {
            source: view.source,
            scope: view.scope.clone(),
            unseen_below_ns: view.unseen_below_ns,
            ordinary_peak_ns: at(valley.map(|valley| valley.ordinary_peak)),
            from_ns: at(valley.map(|valley| valley.first)),
            to_ns: at(valley.map(|valley| valley.last + 1)),
            preemption_peak_ns: at(valley.map(|valley| valley.preemption_peak)),
            verdict,
        });
    }
    rows
}

/// A view's waits by length.
pub fn histogram(view: &View) -> Vec<HistogramRow> {
    let mut rows = Vec::new();
    let waits = &view.histogram;
    let (total, total_ns) = (waits.waits() as f64, waits.total_ns());
    let Some((first, last)) = waits.span() else {
        return rows;
    };
    let most = |of: &dyn Fn(usize) -> f64| (first..=last).map(of).fold(0.0, f64::max);
    let most_waits = most(&|bucket| waits.count(bucket) as f64);
    let most_ns = most(&|bucket| waits.time_ns(bucket));
    for bucket in first..=last {
        let (count, time_ns) = (waits.count(bucket), waits.time_ns(bucket));
        let side = view.found.valley.map(|valley| match bucket {
            bucket if bucket < valley.first => "ordinary",
            bucket if bucket > valley.last => "preemption",
            _ => "interval",
        });
        rows.push(HistogramRow {
            source: view.source,
            scope: view.scope.clone(),
            from_ns: waits.floor_ns(bucket),
            waits: count,
            waits_percent: 100.0 * count as f64 / total,
            waits_bar: bar(count as f64, most_waits),
            time_ns,
            time_percent: 100.0 * time_ns / total_ns,
            time_bar: bar(time_ns, most_ns),
            side,
        });
    }
    rows
}

/// What each threshold costs in a view.
pub fn choices(view: &View) -> impl Iterator<Item = ChoiceRow> {
    view.found.choices.iter().map(|choice| ChoiceRow {
        source: view.source,
        scope: view.scope.clone(),
        threshold_ns: choice.threshold_ns,
        in_interval: choice.in_valley.map(|is| if is { "yes" } else { "no" }),
        needless_percent: percent(choice.needless_share),
        exits: choice.exits,
        spin_ns: choice.spin_ns,
        spin_percent: percent(choice.spin_of_guest),
    })
}

fn percent(share: Option<f64>) -> Option<f64> {
    share.map(|share| 100.0 * share)
}

/// At least one character for anything above 0.
fn bar(value: f64, most: f64) -> String {
    let length = match value > 0.0 && most > 0.0 {
        true => (BAR * value / most).round().max(1.0) as usize,
        false => 0,
    };
    "#".repeat(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_even_the_least() {
        assert_eq!(bar(0.0, 10.0), "");
        assert_eq!(bar(0.001, 10.0), "#");
        assert_eq!(bar(10.0, 10.0).len(), 30);
        assert_eq!(bar(0.0, 0.0), "");
    }
}
