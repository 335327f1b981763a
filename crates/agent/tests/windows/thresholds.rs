// SPDX-License-Identifier: MIT OR Apache-2.0
//! Spin thresholds in place of windows: guests are told them, spin as long, and their waits make APPLE's epochs; who lies moves
//! nobody's but its own.

use std::{fs, os::unix::fs::MetadataExt, path::Path, thread, time::Duration};
use unspin_testbed::check;

use unspin_abi::LockKind;
use unspin_agent::{
    Disclosure, Disclosures, PleSource, WindowBound, WindowEpoch, WindowOptions, WindowSteerer,
    WindowTotals,
};
use unspin_policy::steering::{AppleNumbers, WindowPolicy};
use unspin_scenario::Vm;
use unspin_vmm::{Fault, RunOptions, RunReport, VcpuReport};

use crate::vms::{loops, run_with, vm};

/// Below and above every wait for a holder that runs.
const SHORT: u32 = 8;
const LONG: u32 = 1 << 20;

/// Four vCPUs on two CPUs that halt at the end of their patience, each wait for one to three holds of some 80 spins; the hardware
/// stops nobody.
fn halting(pv_page: bool) -> Vm {
    Vm {
        lock: LockKind::from_name("paravirtual_ticket").expect("there is one"),
        user_work: loops(500),
        hold: loops(1_500),
        wakeup_every_iterations: 0,
        load_changes_every_ms: 0,
        pause_exits: false,
        pv_page,
        ..vm(4)
    }
}

/// What came of it: VMs beside each other, with that policy.
struct Seen {
    reports: Vec<RunReport>,
    epochs: Vec<WindowEpoch>,
    totals: WindowTotals,
}

impl Seen {
    fn sum(&self, vm: usize, what: fn(&VcpuReport) -> u64) -> u64 {
        let vcpus = self.reports[vm].vms[0].vcpus.iter();
        vcpus.map(what).sum()
    }

    /// HLTs for locks in 1,000 spins of that VM.
    fn halts(&self, vm: usize) -> u64 {
        let halts = self.sum(vm, |vcpu| vcpu.statistics.lock_halts);
        halts * 1_000 / self.sum(vm, |vcpu| vcpu.statistics.operations)
    }

    /// Spins of waiting loops for each such HLT: no fewer than the threshold.
    fn patience(&self, vm: usize) -> u64 {
        let halts = self.sum(vm, |vcpu| vcpu.statistics.lock_halts);
        self.sum(vm, |vcpu| vcpu.statistics.spin_count) / halts.max(1)
    }

    fn acknowledged(&self, vm: usize) -> u64 {
        self.sum(vm, |vcpu| vcpu.statistics.pv_page_acknowledgements)
    }

    fn cpu_ns(&self, vm: usize) -> u64 {
        self.sum(vm, |vcpu| vcpu.cpu_time_ns)
    }
}

/// Each VM has a run of its own, all at the same time.
fn seen(policy: WindowPolicy, disclosures: Disclosures, vms: Vec<(Fault, Vm)>) -> Seen {
    let mut options = WindowOptions::new(policy);
    options.module = PleSource::Nowhere;
    options.disclosures = disclosures;
    let steerer = WindowSteerer::attach(&options).expect("thresholds can be set");
    assert_eq!(steerer.bound(), WindowBound::Threshold);
    let mut epochs = Vec::new();
    let reports = thread::scope(|scope| {
        let start = |(fault, vm): (Fault, Vm)| {
            let run = RunOptions {
                fault,
                ..RunOptions::default()
            };
            scope.spawn(move || run_with(&run, 300, vec![vm]))
        };
        let runs: Vec<_> = vms.into_iter().map(start).collect();
        while runs.iter().any(|run| !run.is_finished()) {
            thread::sleep(Duration::from_millis(10));
            epochs.extend(steerer.drain().expect("a ring"));
        }
        let ran = runs.into_iter().map(|run| run.join().expect("the VM ran"));
        ran.collect()
    });
    let totals = steerer.totals().expect("a map");
    assert_eq!(
        (totals.refusals, totals.lost_epochs, totals.left_alone),
        (0, 0, 0)
    );
    Seen {
        reports,
        epochs,
        totals,
    }
}

check!(THRESHOLDS: "threshold" => a_guest_spins_as_long_as_it_is_told);
/// The guest's own threshold of 2,048 spins lies between; without a page it keeps that.
fn a_guest_spins_as_long_as_it_is_told() {
    let fixed = |spins| {
        seen(
            WindowPolicy::Fixed(spins),
            everyone(Disclosure::Own),
            vec![(Fault::None, halting(true)), (Fault::None, halting(false))],
        )
    };
    let (short, long) = (fixed(SHORT), fixed(LONG));
    for (name, seen) in [("short", &short), ("long", &long)] {
        println!(
            "  {name}: {} halts for 1,000 spins ({} waiting spins for each), {} without a page ({}); {:?}",
            seen.halts(0),
            seen.patience(0),
            seen.halts(1),
            seen.patience(1),
            seen.totals
        );
        assert_eq!((seen.totals.pv_page, seen.totals.lost_pv_pages), (4, 0));
        assert_eq!(seen.totals.changes, 4, "each vCPU once");
        assert!(seen.acknowledged(0) >= 4 && seen.acknowledged(1) == 0);
    }
    assert!(short.halts(0) > 10 * (long.halts(0) + 1));
    assert!(short.patience(0) < 1_000 && short.patience(1) >= 2_048);
    assert!(short.totals.exits > 300, "{:?}", short.totals);
    assert_eq!(
        short.totals.exits,
        short.sum(0, |vcpu| vcpu.statistics.lock_halts),
        "the halts of who has a page, and no others"
    );
}

fn numbers() -> AppleNumbers {
    AppleNumbers {
        delta: 8,
        lower: 8,
        initial: 16,
        upper: 64,
    }
}

check!(THRESHOLDS: "threshold_apple" => apple_moves_a_guests_threshold);
fn apple_moves_a_guests_threshold() {
    let seen = seen(
        WindowPolicy::Apple(Some(numbers())),
        everyone(Disclosure::Own),
        vec![(Fault::None, halting(true))],
    );
    let of: Vec<u32> = seen.epochs.iter().map(|epoch| epoch.window).collect();
    println!("  thresholds {of:?}; {:?}", seen.totals);
    assert!(of.len() >= 4, "a round is three epochs");
    assert_eq!(of[..3], [16, 24, 8], "desired, more, less");
    assert!(of.iter().all(|spins| (8..=64).contains(spins)));
    assert!(seen.totals.changes > 8, "told anew: {:?}", seen.totals);
    for epoch in &seen.epochs {
        let times = epoch.cpu_ns > epoch.handling_ns && epoch.end_ns > epoch.begin_ns;
        assert!(times && epoch.inefficiency_ppm > 0, "{epoch:?}");
        // A spin of this emulator takes some 10 ns to 1 us.
        assert!((10_000..2_000_000).contains(&epoch.unit_ps), "{epoch:?}");
    }
    if let [first, second, third, fourth, ..] = &seen.epochs[..] {
        let least = [first, second, third];
        let least = least.iter().min_by_key(|epoch| epoch.inefficiency_ppm);
        assert_eq!(Some(fourth.window), least.map(|epoch| epoch.window));
    }
}

check!(THRESHOLDS: "threshold_untold" => who_may_not_be_told_is_left_alone);
/// `--disclose nothing`, `--disclose nothing=CGROUP` and `--disclose nothing=PROCESS`: its page is not touched, and its waits are nobody's
/// epochs; what is said of the process comes before what is said of its cgroup.
fn who_may_not_be_told_is_left_alone() {
    let group = Path::new("/sys/fs/cgroup/threshold_untold");
    fs::create_dir(group).expect("a cgroup");
    fs::write(group.join("cgroup.procs"), "0").expect("this process moves into it");
    let inode = fs::metadata(group).expect("its folder").ino();
    let untold = |disclosures: Disclosures| {
        let vms = vec![(Fault::None, halting(true))];
        let seen = seen(WindowPolicy::Fixed(SHORT), disclosures, vms);
        // Whether anything was counted, and acknowledged.
        let counted = (seen.totals.changes, seen.totals.exits, seen.epochs.len());
        counted == (0, 0, 0) && seen.acknowledged(0) == 0
    };
    assert!(untold(everyone(Disclosure::Nothing)));
    let cgroups = vec![(inode, Disclosure::Nothing)];
    let of_group = Disclosures {
        cgroups,
        ..Disclosures::default()
    };
    assert!(untold(of_group.clone()));
    let processes = vec![(std::process::id(), Disclosure::Own)];
    assert!(!untold(Disclosures {
        processes,
        ..of_group
    }));
    fs::write("/sys/fs/cgroup/cgroup.procs", "0").expect("this process goes back");
    fs::remove_dir(group).expect("it is empty");
}

fn everyone(everyone: Disclosure) -> Disclosures {
    Disclosures {
        everyone,
        ..Disclosures::default()
    }
}

check!(THRESHOLDS: "threshold_lies" => a_guest_that_lies_moves_nobody_elses);
/// A guest that writes every word of its pages at random, the threshold's too, or loses them: the honest one beside it is told, halts
/// as early as beside another honest one, and has its half of the CPUs.
fn a_guest_that_lies_moves_nobody_elses() {
    let beside = |fault| {
        let vms = vec![(Fault::None, halting(true)), (fault, halting(true))];
        let seen = seen(WindowPolicy::Fixed(SHORT), everyone(Disclosure::Own), vms);
        let share = seen.cpu_ns(0) as f64 / (seen.cpu_ns(0) + seen.cpu_ns(1)) as f64;
        println!(
            "  beside {fault:?}: {} waiting spins for each halt (the other: {}), {share:.3} of the CPU time; {:?}",
            seen.patience(0),
            seen.patience(1),
            seen.totals
        );
        // The guest's own threshold is 2,048.
        assert!(
            (SHORT.into()..1_000).contains(&seen.patience(0)),
            "{fault:?}"
        );
        (seen, share)
    };
    let (_, fair) = beside(Fault::None);
    for fault in [Fault::PvPageLies, Fault::PvPageGone] {
        let (seen, share) = beside(fault);
        // Who halts less uses more of its half; no more than that.
        assert!(share > fair.min(0.5) - 0.1, "{fault:?}: {share} of {fair}");
        assert!(seen.acknowledged(0) >= 4, "{fault:?}");
        let operations = seen.sum(1, |vcpu| vcpu.statistics.operations);
        assert!(operations > 100, "{fault:?}: the liar goes on, too");
        let told = |epoch: &WindowEpoch| epoch.window == SHORT;
        assert!(seen.epochs.iter().all(told), "{fault:?}");
    }
}
