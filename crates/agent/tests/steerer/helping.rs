// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policies `helping` and `slice`, with real VMs on a real KVM.

use std::collections::BTreeMap;
use unspin_testbed::check;

use unspin_agent::Steerer;
use unspin_scenario::Vm;
use unspin_vmm::RunReport;

use super::{
    host::{counter, still_there},
    observer_vms::run_for,
    vms::{fighting, steer},
};

/// Slices of waiting before help is asked for: above the 3 x 300 loops that one of 4 vCPUs waits for the others' holds would be
/// wasted on a descheduled holder, and below a slice by far.
const HELP_AFTER_SPINS: u32 = 400;

/// A VM that asks for help itself: KVM sees no PAUSE and yields nothing.
fn asking(vcpus: u32, pv_page: bool) -> Vm {
    Vm {
        pause_exits: false,
        help_after_spins: HELP_AFTER_SPINS,
        pv_page,
        ..fighting(vcpus)
    }
}

fn operations(report: &RunReport, vm: usize) -> u64 {
    let vcpus = report.vms[vm].vcpus.iter();
    vcpus.map(|vcpu| vcpu.statistics.operations).sum()
}

/// CPU time of the first of two VMs over that of both.
fn share(report: &RunReport) -> f64 {
    let cpu_ns = |vm: usize| -> f64 {
        let vcpus = report.vms[vm].vcpus.iter();
        vcpus.map(|vcpu| vcpu.cpu_time_ns as f64).sum()
    };
    cpu_ns(0) / (cpu_ns(0) + cpu_ns(1))
}

check!(STEERER_LONG: help_drains_what_kvm_cannot);
/// 1 VM x 4 vCPUs on 2 CPUs, one that fits, and stock: with pause-loop exits off nobody but the guest knows that it waits.
pub fn help_drains_what_kvm_cannot() {
    let run = |vm| operations(&run_for(300, vec![vm]), 0) as f64;
    let (ideal, stock) = (run(asking(2, false)), run(asking(4, false)));
    let steerer = steer("helping", |options| {
        options.decision_log_bytes = 16 << 20;
        options.run_statistics = true;
    });
    let set = |policies: &str| {
        let policies = policies.parse().expect("policies");
        steerer.set_policies(policies).expect("at any time");
    };
    let closed = |rate: f64| (rate - stock) / (ideal - stock);
    let helped = run(asking(4, false));
    an_ask_costs_little(&steerer);
    set("loan,helping");
    let lent = run(asking(4, true));
    set("refuse-yields");
    let refused = run(asking(4, false));
    println!(
        "  {stock} of {ideal} operations stock, {helped} helped ({:.3} of the gap closed), {lent} lent to ({:.3}), {refused} refused",
        closed(helped),
        closed(lent)
    );
    assert_eq!(counter(&steerer, "directed"), 0, "KVM has no say here");
    for (name, least) in [("asked", 20), ("helped", 20), ("honoured", 20), ("lent", 1)] {
        assert!(counter(&steerer, name) >= least, "{name}");
    }
    // A convoy takes a while to form: what is refused for 300 ms closes something, too.
    assert!(closed(helped) > 0.1 && closed(lent) > 0.85 && closed(refused) < closed(helped));
    // However often it asks, it gets its half.
    set("helping");
    let share = share(&run_for(2_000, vec![asking(4, false), asking(4, false)]));
    println!("  a share of {share:.4} where 0.5 is fair");
    still_there(&steerer);
    let mut kinds = BTreeMap::new();
    let drained = steerer.drain_decisions(&mut |record| {
        assert!(record.replays(), "{record:?}");
        let answer = format!("{:?}", record.decided());
        *kinds.entry((record.event, answer)).or_insert(0u32) += 1;
    });
    drained.expect("the kernel tells");
    println!("  {kinds:?}");
    for answer in ["Direct", "Lend(1000000)", "Refuse"] {
        assert!(kinds.contains_key(&(4, answer.to_owned())), "{answer}");
    }
}

/// Under icount a nanosecond is half an instruction; an ask and the way back are two entries. Log included.
fn an_ask_costs_little(steerer: &Steerer) {
    let programs = steerer.programs().expect("the kernel tells");
    let entry = programs
        .iter()
        .find(|program| program.name.ends_with("kvm_entry"));
    let entry = entry.expect("it is loaded");
    let (asked, helped) = (counter(steerer, "asked"), counter(steerer, "helped"));
    let instructions = entry.run_time_ns / 2 / entry.run_count;
    println!(
        "  {asked} asks, {helped} of them answered, in {} entries of {instructions} instructions in the mean",
        entry.run_count
    );
    assert!(entry.run_count < 3 * asked + 1_000 && instructions < 8_000);
}

check!(GUESTS: a_slice_lasts_what_it_says);
/// A slice below a tick ends on time, one above lasts longer: counted in switches of four vCPUs that never wait.
pub fn a_slice_lasts_what_it_says() {
    let steerer = steer("refuse-yields", |_| ());
    let switches = |policies: &str| {
        let policies = policies.parse().expect("policies");
        steerer.set_policies(policies).expect("at any time");
        let before = counter(&steerer, "switches");
        let alone = Vm {
            locks: unspin_scenario::LockSharing::Private,
            ..asking(4, false)
        };
        run_for(200, vec![alone]);
        counter(&steerer, "switches") - before
    };
    let (short, kernel, long) = (
        switches("slice=500us"),
        switches("refuse-yields"),
        switches("slice=20ms"),
    );
    still_there(&steerer);
    println!(
        "  in 200 ms {short} switches with 500 us, {kernel} with the kernel's slice, {long} with 20 ms"
    );
    // Two CPUs for 200 ms are 800 slices of 500 us.
    assert!((700..1_200).contains(&short), "{short}");
    assert!(kernel < short / 2 && long < kernel);
}
