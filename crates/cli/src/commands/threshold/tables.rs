// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `unspin threshold`.

use std::collections::BTreeMap;

use unspin_analysis::{
    CpuTimes, Thresholds, VmWaits, WaitHistogram, WindowTimes, predicted_wall_gain, thresholds,
};
use unspin_recording::{GuestVm, Recorded};
use unspin_report::{Document, Table, row};

/// Longest bar, characters.
const BAR: f64 = 30.0;

row! {
    "problem", ["threshold"];
    /// A reason why the recording is not whole.
    struct ProblemRow {
        /// In words.
        problem: String = ("not whole", Text),
    }
}

row! {
    "vm", ["threshold"];
    /// A VM's time, and what of it went into waiting loops.
    struct VmRow {
        /// The VM's number.
        vm: String = ("VM", Text),
        /// Its name.
        name: String = ("name", Text),
        /// CPU time of its vCPUs; ns.
        guest_ns: f64 = ("guest time", Nanoseconds),
        /// Waits that pause-loop exits show.
        waits: Option<u64> = ("waits seen", Count),
        /// Time on a CPU in these, a lower bound; ns.
        spinning_ns: Option<f64> = ("spinning", Nanoseconds),
        /// Of that, time in KVM's handling of exits; ns.
        handling_ns: Option<u64> = ("of it in KVM", Nanoseconds),
        /// Share of `spinning_ns` in `guest_ns`; percent.
        spinning_percent: Option<f64> = ("%", Percent),
        /// CPU time of other VMs and of the host; ns.
        others_ns: f64 = ("others' time", Nanoseconds),
        /// By how much it would run faster without spinning (Friebel 2008); percent.
        predicted_wall_gain_percent: Option<f64> = ("wall gain %", Percent),
        /// CPU time by the guest's own figures; ns.
        guest_reported_cpu_ns: Option<f64> = ("guest tells: of", Nanoseconds),
        /// Time spun by the guest's own figures; ns.
        guest_reported_spinning_ns: Option<f64> = ("spinning", Nanoseconds),
        /// Share of it in CPU time, both as the guest says; percent.
        guest_reported_spinning_percent: Option<f64> = ("%", Percent),
        /// The same gain, of the guest's figures; percent.
        guest_reported_wall_gain_percent: Option<f64> = ("wall gain %", Percent),
    }
}

row! {
    "interval", ["threshold"];
    /// Between which lengths of waits a threshold parts ordinary waits from those for a preempted vCPU.
    struct IntervalRow {
        /// Whose figures: `host` or `guest`.
        source: &'static str = ("seen by", Text),
        /// Of which VM, or `all`.
        scope: String = ("VMs", Text),
        /// Waits shorter than this are not seen; ns.
        unseen_below_ns: Option<u64> = ("unseen below", Nanoseconds),
        /// The most frequent length of ordinary waits; ns.
        ordinary_peak_ns: Option<f64> = ("ordinary peak", Nanoseconds),
        /// Begin of the interval; ns.
        from_ns: Option<f64> = ("interval from", Nanoseconds),
        /// End of the interval; ns.
        to_ns: Option<f64> = ("to", Nanoseconds),
        /// The most frequent length of waits for preempted vCPUs; ns.
        preemption_peak_ns: Option<f64> = ("preemption peak", Nanoseconds),
        /// Whether there is such an interval.
        verdict: &'static str = ("verdict", Text),
    }
}

row! {
    "histogram", ["threshold"];
    /// Waits of one range of lengths.
    struct HistogramRow {
        /// Whose figures: `host` or `guest`.
        source: &'static str,
        /// Of which VM, or `all`.
        scope: String,
        /// The least length, up to that of the next row; ns.
        from_ns: f64 = ("from", Nanoseconds),
        /// Waits.
        waits: u64 = ("waits", Count),
        /// Share in all waits; percent.
        waits_percent: f64 = ("%", Percent),
        /// The share as a bar.
        waits_bar: String = ("by count", Text),
        /// Their time; ns.
        time_ns: f64 = ("time", Nanoseconds),
        /// Share in the time of all waits; percent.
        time_percent: f64 = ("%", Percent),
        /// The share as a bar.
        time_bar: String = ("by time", Text),
        /// Which side of the interval: `ordinary`, `interval` or `preemption`; null without one.
        side: Option<&'static str> = ("", Text),
    }
}

row! {
    "threshold", ["threshold"];
    /// What it costs to end spinning after some time.
    struct ChoiceRow {
        /// Whose figures: `host` or `guest`.
        source: &'static str,
        /// Of which VM, or `all`.
        scope: String,
        /// The time after which spinning would end; ns.
        threshold_ns: f64 = ("threshold", Nanoseconds),
        /// Whether it lies in the interval: `yes` or `no`; null without one.
        in_interval: Option<&'static str> = ("in interval", Text),
        /// Share of ordinary waits that would end needlessly; percent.
        needless_percent: Option<f64> = ("ordinary exits %", Percent),
        /// Waits that would end there.
        exits: u64 = ("waits that exit", Count),
        /// Time that all waits spin until then; ns.
        spin_ns: f64 = ("spin time before", Nanoseconds),
        /// Its share in guest time; percent.
        spin_percent: Option<f64> = ("% of guest time", Percent),
    }
}

/// One kind of evidence about one set of VMs.
struct View {
    source: &'static str,
    scope: String,
    histogram: WaitHistogram,
    guest_ns: Option<f64>,
    unseen_below_ns: Option<u64>,
}

/// Adds everything that the recording says: of one VM, or of all together.
pub fn add(document: &mut Document, recorded: &Recorded, measured: &Measured, vm: Option<u32>) {
    if !measured.problems.is_empty() {
        let problems = measured.problems.iter().cloned();
        document.table(Table::of(
            "",
            problems.map(|problem| ProblemRow { problem }),
        ));
    }
    document.table(vms(recorded, measured));
    let scope = vm.map_or("all".to_owned(), |vm| recorded.facts().vm_name(vm));
    let mut views = vec![View {
        source: "host",
        scope: scope.clone(),
        histogram: measured.host_histogram(vm),
        guest_ns: Some(measured.running_ns(vm) as f64),
        unseen_below_ns: measured.unseen_below_ns(vm),
    }];
    if let Some(histogram) = measured.guest_histogram(vm) {
        views.push(View {
            source: "guest",
            scope,
            histogram,
            // These waits are on a CPU or off it: no share of CPU time.
            guest_ns: None,
            unseen_below_ns: None,
        });
    }
    let found: Vec<Thresholds> = views
        .iter()
        .map(|view| thresholds(&view.histogram, view.guest_ns))
        .collect();
    document.table(intervals(&views, &found));
    for (view, found) in views.iter().zip(&found) {
        document.table(histogram(view, found));
        document.table(choices(view, found));
    }
    document.note(
        "host: runs of pause-loop exits at one place, their time on a CPU; waits shorter than a window, and the rest of \
         each wait after its last exit, are not seen, so spinning is a lower bound.",
    );
    document.note(
        "guest: every wait for a lock, on a CPU or off it, in the run's window after the warm-up; spin time before a \
         threshold is therefore at most this. wall gain: guest / (guest + others) x spinning (Friebel 2008).",
    );
}

fn vms(recorded: &Recorded, measured: &Measured) -> Table {
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
            name: recorded.facts().vm_name(vm),
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
    Table::of("Guest time, and what of it went into waiting loops", rows)
}

fn intervals(views: &[View], found: &[Thresholds]) -> Table {
    let mut rows = Vec::new();
    for (view, found) in views.iter().zip(found) {
        let at = |bucket: Option<usize>| bucket.map(|bucket| view.histogram.floor_ns(bucket));
        let valley = found.valley;
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
    Table::of("Between ordinary waits and preemption waits", rows)
}

fn histogram(view: &View, found: &Thresholds) -> Table {
    let title = format!(
        "Waits of {} by length, as the {} sees them",
        view.scope, view.source
    );
    let mut rows = Vec::new();
    let waits = &view.histogram;
    let (total, total_ns) = (waits.waits() as f64, waits.total_ns());
    let Some((first, last)) = waits.span() else {
        return Table::of(title, rows);
    };
    let most = |of: &dyn Fn(usize) -> f64| (first..=last).map(of).fold(0.0, f64::max);
    let most_waits = most(&|bucket| waits.count(bucket) as f64);
    let most_ns = most(&|bucket| waits.time_ns(bucket));
    for bucket in first..=last {
        let (count, time_ns) = (waits.count(bucket), waits.time_ns(bucket));
        let side = found.valley.map(|valley| match bucket {
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
    Table::of(title, rows)
}

fn choices(view: &View, found: &Thresholds) -> Table {
    let title = match found.valley {
        Some(_) => format!(
            "What a threshold costs {}, as the {} sees it",
            view.scope, view.source
        ),
        None => format!(
            "What a threshold costs {}, as the {} sees it (of all waits: nothing tells them apart)",
            view.scope, view.source
        ),
    };
    let rows = found.choices.iter().map(|choice| ChoiceRow {
        source: view.source,
        scope: view.scope.clone(),
        threshold_ns: choice.threshold_ns,
        in_interval: choice.in_valley.map(|is| if is { "yes" } else { "no" }),
        needless_percent: percent(choice.needless_share),
        exits: choice.exits,
        spin_ns: choice.spin_ns,
        spin_percent: percent(choice.spin_of_guest),
    });
    Table::of(title, rows)
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

/// What a recording says of waits.
pub struct Measured {
    /// Whether the host's losses leave holes; the recording's problems.
    pub problems: Vec<String>,
    /// CPU times.
    pub times: CpuTimes,
    /// Waits as the host sees them, by VM.
    pub waits: BTreeMap<u32, VmWaits>,
    /// How long windows take.
    pub windows: WindowTimes,
    /// What the guests measured, by the recording's number of the VM.
    pub guests: BTreeMap<u32, GuestVm>,
    /// Nanoseconds of a TSC tick.
    pub tick_ns: Option<f64>,
}

impl Measured {
    /// Waits as the host sees them: of one VM, or of all.
    pub fn host_histogram(&self, vm: Option<u32>) -> WaitHistogram {
        let mut histogram = WaitHistogram::default();
        for (_, waits) in self
            .waits
            .iter()
            .filter(|(other, _)| is_wanted(vm, **other))
        {
            histogram.merge(&waits.histogram);
        }
        histogram
    }

    /// Waits for locks as the guests measured them; `None`: they did not tell.
    pub fn guest_histogram(&self, vm: Option<u32>) -> Option<WaitHistogram> {
        let tick_ns = self.tick_ns?;
        let mut sum: Option<WaitHistogram> = None;
        for (_, guest) in self
            .guests
            .iter()
            .filter(|(other, _)| is_wanted(vm, **other))
        {
            let counts = guest.lock_wait_count.as_slice().try_into().ok()?;
            let sums = guest.lock_wait_sum_cycles.as_slice().try_into().ok()?;
            let histogram = WaitHistogram::new(counts, sums, tick_ns);
            match &mut sum {
                Some(sum) => sum.merge(&histogram),
                None => sum = Some(histogram),
            }
        }
        sum
    }

    /// CPU time in the recording: of one VM, or of all; nanoseconds.
    pub fn running_ns(&self, vm: Option<u32>) -> u64 {
        let vms = self.times.vm_ns.iter();
        vms.filter(|(other, _)| is_wanted(vm, **other))
            .map(|(_, &ns)| ns)
            .sum()
    }

    /// The shortest wait that the host can see.
    pub fn unseen_below_ns(&self, vm: Option<u32>) -> Option<u64> {
        let vms = self.waits.keys().filter(|other| is_wanted(vm, **other));
        vms.filter_map(|&vm| self.windows.shortest_ns(vm)).min()
    }
}

fn is_wanted(vm: Option<u32>, other: u32) -> bool {
    vm.is_none_or(|vm| vm == other)
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
