// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must hold of policies, with real VMs on a real KVM.

use std::time::Duration;
use unspin_testbed::check;

use unspin_agent::{SteerError, SteerOptions, Steerer, set_running_policies};
use unspin_policy::steering::Policies;
use unspin_scenario::{LockSharing, Vm};
use unspin_vmm::RunReport;

pub mod intel;

use super::{
    host::{counter, still_there},
    observer_vms::{run_for, vm},
};

/// Slices between two PAUSEs, all of which exit on this emulator: the window.
const WINDOW_SPINS: u32 = 200;

/// A VM whose vCPUs fight for one ticket lock, and say so.
pub fn fighting(vcpus: u32) -> Vm {
    Vm {
        wakeup_every_iterations: 0,
        load_changes_every_ms: 0,
        log_records: 0,
        pv_page: true,
        pause_every_spins: WINDOW_SPINS,
        ..vm(vcpus)
    }
}

/// A VM whose vCPUs never wait for one another.
pub fn peaceful(vcpus: u32) -> Vm {
    Vm {
        locks: LockSharing::Private,
        ..fighting(vcpus)
    }
}

pub fn steer(policies: &str, change: impl FnOnce(&mut SteerOptions)) -> Steerer {
    let mut options = SteerOptions {
        policies: policies.parse().expect("policies"),
        ..SteerOptions::default()
    };
    change(&mut options);
    match Steerer::attach(&options) {
        Ok(steerer) => steerer,
        Err(error) => panic!("{error}"),
    }
}

/// What all vCPUs of a run did.
pub fn operations(report: &RunReport) -> u64 {
    let vcpus = report.vms.iter().flat_map(|vm| &vm.vcpus);
    vcpus.map(|vcpu| vcpu.statistics.operations).sum()
}

check!(STEERER: a_loan_drains_the_convoy);
/// 1 VM x 4 vCPUs on 2 CPUs: refusing leaves a convoy of descheduled tickets, lending drains it. Long enough that it does not
/// matter when the first convoy forms: in 300 ms, 324 to 2,135 operations were done without loans.
pub fn a_loan_drains_the_convoy() {
    let none = steer("refuse-yields", |_| ());
    let without = operations(&run_for(600, vec![fighting(4)]));
    still_there(&none);
    assert!(counter(&none, "directed") > 100);
    assert_eq!(counter(&none, "refused"), counter(&none, "directed"));
    let loan = none;
    loan.set_policies("loan".parse().expect("a policy"))
        .expect("at any time");
    let with = operations(&run_for(600, vec![fighting(4)]));
    still_there(&loan);
    println!("  {without} operations without loans, {with} with");
    assert!(with > 5 * without, "{with} with loans, {without} without");
    for name in ["lent", "given_back", "returned", "pv_pages"] {
        assert!(counter(&loan, name) > 0, "{name}");
    }
    // A loan ends by the borrower's word long before its 1 ms.
    let (lent, ns) = (counter(&loan, "lent"), counter(&loan, "borrowed_ns"));
    assert!(ns / lent < 500_000, "{lent} loans took {ns} ns");
}

check!(STEERER_LONG: yielding_buys_no_share);
/// However a VM yields, the one beside it keeps its half.
pub fn yielding_buys_no_share() {
    let steerer = steer("refuse-yields", |_| ());
    // With a grace at slice end there may be no convoy left to lend to.
    for (policy, passes_on) in [
        ("directed-yield", true),
        ("loan", true),
        ("loan,kernel-exit", false),
        ("loan-cpl,kernel-exit", false),
    ] {
        steerer
            .set_policies(policy.parse().expect("policies"))
            .expect("at any time");
        let before = counter(&steerer, "honoured");
        let report = run_for(1_000, vec![fighting(2), peaceful(2)]);
        still_there(&steerer);
        let cpu_ns = |vm: usize| -> f64 {
            let vcpus = report.vms[vm].vcpus.iter();
            vcpus.map(|vcpu| vcpu.cpu_time_ns as f64).sum()
        };
        let share = cpu_ns(0) / (cpu_ns(0) + cpu_ns(1));
        let honoured = counter(&steerer, "honoured") - before;
        println!("  {policy}: {share:.4} after {honoured} yields that were honoured");
        assert!((0.49..0.51).contains(&share), "{policy}: {share}");
        assert!(!passes_on || honoured > 0, "{policy}");
    }
}

check!(STEERER: policies_are_switched_while_vms_run);
/// The next decision is the new policy's: nothing is attached again, and any process may say so.
pub fn policies_are_switched_while_vms_run() {
    let nobody = set_running_policies(Policies::REFUSE_YIELDS);
    assert!(matches!(nobody, Err(SteerError::NotRunning)), "{nobody:?}");
    let steerer = steer("refuse-yields", |_| ());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| run_for(600, vec![fighting(4)]));
        let loan: Policies = "loan".parse().expect("a policy");
        let mut before = 0;
        for (policies, lends) in [
            (Policies::REFUSE_YIELDS, false),
            (loan, true),
            (Policies::REFUSE_YIELDS, false),
        ] {
            set_running_policies(policies).expect("at any time");
            std::thread::sleep(Duration::from_millis(20));
            let (lent, refused) = (counter(&steerer, "lent"), counter(&steerer, "refused"));
            std::thread::sleep(Duration::from_millis(130));
            let now = counter(&steerer, "lent");
            assert_eq!(
                now > lent,
                lends,
                "{policies}: {lent} to {now}, before {before}"
            );
            assert!(
                lends || counter(&steerer, "refused") > refused,
                "{policies}"
            );
            before = now;
        }
        run.join().expect("the VM runs");
    });
    still_there(&steerer);
}

check!(STEERER_LONG: only_chosen_processes_are_steered);
/// `--vm`: other processes' vCPUs are scheduled like any task.
pub fn only_chosen_processes_are_steered() {
    let own = std::process::id();
    for (process, touched) in [(1, false), (own, true)] {
        let steerer = steer("loan", |options| options.processes = vec![process]);
        run_for(150, vec![fighting(4)]);
        assert_eq!(counter(&steerer, "lent") > 0, touched, "process {process}");
        assert!(counter(&steerer, "directed") > 0);
    }
}

check!(STEERER_LONG: decisions_replay_to_the_bit);
/// Every decision that BPF took is taken again by the same functions, compiled for this machine.
pub fn decisions_replay_to_the_bit() {
    let steerer = steer("loan,loan-cpl,kernel-exit", |options| {
        options.decision_log_bytes = 16 << 20;
    });
    run_for(200, vec![fighting(4)]);
    let silent = Vm {
        pv_page: false,
        ..fighting(3)
    };
    run_for(200, vec![silent, fighting(2)]);
    still_there(&steerer);
    let mut records = Vec::new();
    let drained = steerer.drain_decisions(&mut |record| records.push(record));
    drained.expect("the kernel tells");
    assert_eq!(counter(&steerer, "unlogged"), 0);
    let mut kinds = std::collections::BTreeMap::new();
    for record in &records {
        assert!(record.replays(), "{record:?}");
        let answer = format!("{:?}", record.decided());
        *kinds.entry((record.event, answer)).or_insert(0u32) += 1;
    }
    println!("  {} decisions: {kinds:?}", records.len());
    assert!(records.len() as u64 >= counter(&steerer, "directed"));
    // All three questions were put, and yields were both lent to and refused.
    for event in 1..=3 {
        assert!(kinds.keys().any(|(asked, _)| *asked == event), "{kinds:?}");
    }
    assert!(
        kinds.contains_key(&(1, "Lend(1000000)".to_owned())),
        "{kinds:?}"
    );
    assert!(kinds.contains_key(&(1, "Refuse".to_owned())), "{kinds:?}");
}
