// SPDX-License-Identifier: MIT OR Apache-2.0
//! A dry run takes every decision, and changes nothing.

use std::collections::BTreeMap;
use unspin_testbed::check;

use unspin_abi::LockKind;
use unspin_agent::{DryRun, ObserveOptions, Observer, SteerOptions};
use unspin_policy::steering::{
    Decision, DecisionRecord, UNSPIN_GRANT, UNSPIN_LEND, UNSPIN_ON_POLL, UNSPIN_ON_SLICE_END,
    UNSPIN_ON_YIELD,
};
use unspin_scenario::Vm;

use super::{
    host::state,
    observer_vms::{loops, run_for},
    vms::{fighting, operations},
};

fn dry_run(policies: &str, change: impl FnOnce(&mut SteerOptions)) -> DryRun {
    let mut options = SteerOptions {
        policies: policies.parse().expect("policies"),
        decision_log_bytes: 16 << 20,
        ..SteerOptions::default()
    };
    change(&mut options);
    match DryRun::attach(&options) {
        Ok(dry_run) => dry_run,
        Err(error) => panic!("{error}"),
    }
}

fn decisions(dry_run: &DryRun) -> Vec<DecisionRecord> {
    let mut records = Vec::new();
    let drained = dry_run.drain_decisions(&mut |record| records.push(record));
    drained.expect("the kernel tells");
    records
}

check!(STEERER_LONG: a_dry_run_decides_as_the_scheduler_would);
/// Each yield that KVM's own counters know is asked about, and each answer is in the log and replays to the bit.
pub fn a_dry_run_decides_as_the_scheduler_would() {
    let mut observer = Observer::attach(&ObserveOptions::default()).expect("it can be observed");
    let dry_run = dry_run("loan,kernel-exit", |options| {
        options.processes = vec![std::process::id()];
    });
    observer.reset().expect("the kernel lets us");
    run_for(300, vec![fighting(4)]);
    assert_eq!(state(), "disabled");
    let records = decisions(&dry_run);
    let answers = dry_run.answers().expect("the kernel tells");
    let (pv_page, losses) = dry_run.losses().expect("the kernel tells");
    assert_eq!(pv_page, 4);
    assert_eq!((losses.threads, losses.answers), (0, 0), "{losses:?}");
    assert_eq!(
        (losses.unlogged, losses.pv_page_failures),
        (0, 0),
        "{losses:?}"
    );
    // The program of hypercalls alone can be preempted half way; guests repeat what was missed.
    for program in dry_run.programs().expect("the kernel tells") {
        let may_miss = program.name.ends_with("kvm_hypercall");
        assert!(may_miss || program.recursion_misses == 0, "{program:?}");
    }
    let of = |event: u32| answers.iter().filter(move |it| it.event == event);
    let times = |event: u32| of(event).map(|it| it.count).sum::<u64>();
    let counters = observer.counters().expect("the kernel tells");
    let honoured: u64 = counters.iter().map(|it| it.yield_to_boosted).sum();
    println!(
        "  {honoured} yields, {} slices that ended",
        times(UNSPIN_ON_SLICE_END)
    );
    // Who leaves its CPU and could go on has either yielded, or its slice has ended.
    let left: u64 = counters.iter().map(|it| it.switches_out_runnable).sum();
    assert!(times(UNSPIN_ON_SLICE_END) < left, "{left} left their CPUs");
    // The fair class honours whatever it is asked.
    assert_eq!(times(UNSPIN_ON_YIELD), honoured);
    // Those before both sides had entered their guest were not asked.
    let asked: u64 = answers
        .iter()
        .filter(|it| it.asked)
        .map(|it| it.count)
        .sum();
    assert_eq!(asked, records.len() as u64);
    assert!(asked > 500 && records.iter().all(DecisionRecord::replays));
    assert_eq!(times(UNSPIN_ON_POLL), 0);
    for (event, action) in [
        (UNSPIN_ON_YIELD, UNSPIN_LEND),
        (UNSPIN_ON_SLICE_END, UNSPIN_GRANT),
    ] {
        assert!(
            of(event).any(|it| it.action == action),
            "{event}: no {action}"
        );
    }
    // Who is chosen is another vCPU of the same VM.
    let vcpus: BTreeMap<u32, u32> = of(UNSPIN_ON_SLICE_END)
        .map(|it| (it.thread, it.vcpu))
        .collect();
    assert_eq!(vcpus.len(), 4);
    for answer in of(UNSPIN_ON_YIELD).filter(|it| it.asked) {
        let (vcpu, thread) = answer.candidate.expect("yields have one");
        assert_eq!(vcpus.get(&thread), Some(&vcpu), "{answer:?}");
        assert!(thread != answer.thread && answer.vm == 0, "{answer:?}");
    }
    facts_are_honest(&records);
}

/// A candidate is off its CPU, for a time that is known, and what its guest said is as old as that.
fn facts_are_honest(records: &[DecisionRecord]) {
    for record in records {
        let (own, candidate) = (&record.facts.self_, &record.facts.candidate);
        assert_eq!(
            (own.descheduled.value, own.borrows.value),
            (0, 0),
            "{record:?}"
        );
        if record.event != UNSPIN_ON_YIELD {
            assert_eq!(own.mode.age_ns, 0, "{record:?}");
            continue;
        }
        assert!(own.spun.value > 0, "{record:?}");
        if matches!(record.decided(), Decision::Lend(_)) {
            assert_eq!(candidate.descheduled.value, 1, "{record:?}");
            assert_eq!(
                candidate.critical.age_ns, candidate.descheduled.age_ns,
                "{record:?}"
            );
        }
    }
}

check!(STEERER_LONG: a_dry_run_asks_about_chosen_processes_only);
/// `--vm`: nobody is asked about others; that the chosen one is asked about, the check above says.
pub fn a_dry_run_asks_about_chosen_processes_only() {
    let dry_run = dry_run("loan", |options| options.processes = vec![1]);
    run_for(100, vec![fighting(4)]);
    let answers = dry_run.answers().expect("the kernel tells");
    assert!(
        !answers.is_empty() && answers.iter().all(|it| !it.asked),
        "{answers:?}"
    );
    assert!(decisions(&dry_run).is_empty());
}

/// Pairs of runs, in the order ABBA.
const PAIRS: u32 = 5;
/// 97.5 % of Student's t with 4 degrees of freedom.
const T: f64 = 2.776;

check!(STEERER_LONG: a_dry_run_changes_nothing);
/// What a VM gets done while its vCPUs are asked about is what it gets done without: no harm, as the project defines it for
/// a cell. Its lock is one that does not collapse, and seldom asked for: what a VM in a convoy gets done differs by a fifth
/// from run to run, whatever watches.
pub fn a_dry_run_changes_nothing() {
    let lock = LockKind::from_name("test_and_test_and_set").expect("there is one");
    let stock = || {
        let vm = Vm {
            lock,
            user_work: loops(20_000),
            ..fighting(4)
        };
        operations(&run_for(150, vec![vm])) as f64
    };
    let dry = || {
        let dry_run = dry_run("loan,kernel-exit", |_| ());
        let done = stock();
        assert_eq!(state(), "disabled");
        assert!(decisions(&dry_run).len() > 50);
        done
    };
    let ratios: Vec<f64> = (0..PAIRS)
        .map(|pair| {
            let (without, with) = match pair % 2 {
                0 => (stock(), dry()),
                _ => {
                    let with = dry();
                    (stock(), with)
                }
            };
            (with / without).ln()
        })
        .collect();
    let number = f64::from(PAIRS);
    let mean = ratios.iter().sum::<f64>() / number;
    let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
    let half = T * (squares / (number - 1.0) / number).sqrt();
    let (low, high) = ((mean - half).exp(), (mean + half).exp());
    println!("  {ratios:.3?}");
    println!("  {:.3} of stock, from {low:.3} to {high:.3}", mean.exp());
    assert!(low > 0.90, "{low} to {high} of stock");
}
