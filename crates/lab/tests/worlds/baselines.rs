// SPDX-License-Identifier: MIT OR Apache-2.0
//! The proposals of others have their published effects in the lab, and their known costs: lag credit (June 2026) where
//! waiter and target share a run queue, co-scheduling where a VM fits the pCPUs (Sukwong and Kim, EuroSys 2011).
#![allow(missing_docs)]

use unspin_lab::{Counts, Lab, Outcome, run};
use unspin_scenario::Scenario;

/// The results of a scenario under a scheduler, over three seeds.
#[derive(Debug)]
struct Came {
    operations: u64,
    spin_ns: u64,
    yields: u64,
    idle_ns: u64,
    /// CPU time of each VM, ns.
    vms_ns: [u64; 2],
}

fn play(lab: &str, vms: &str) -> Came {
    let mut came = Came {
        operations: 0,
        spin_ns: 0,
        yields: 0,
        idle_ns: 0,
        vms_ns: [0; 2],
    };
    for seed in 21..24 {
        let text =
            format!("seed = {seed}\nduration = \"1s\"\nwarm_up = \"100ms\"\n{vms}\n[lab]\n{lab}\n");
        let scenario = Scenario::parse(&text, "baselines.toml")
            .unwrap_or_else(|error| panic!("{}", error.plain()));
        let lab = Lab::new(&scenario).expect("a lab");
        let mut world = lab.world(&scenario, ()).expect("a world");
        let outcome: Outcome = run(&mut world, &scenario, |_| {}).expect("it runs");
        let sum = |what: fn(&Counts) -> u64| -> u64 {
            outcome.vcpus.iter().map(|vcpu| vcpu.grown(what)).sum()
        };
        came.operations += outcome.operations(None);
        came.spin_ns += sum(|counts| counts.statistics.spin_ns);
        came.yields += sum(|counts| counts.statistics.yields);
        came.idle_ns += outcome.cpus.iter().map(|(_, idle_ns)| idle_ns).sum::<u64>();
        for vcpu in &outcome.vcpus {
            came.vms_ns[vcpu.vm as usize] += vcpu.grown(|counts| counts.times.running_ns);
        }
    }
    println!("{lab}: {came:?}");
    came
}

/// VEE'21's Figure 2: eight vCPUs on one pCPU that wait for a lock and for one another.
const ONE_QUEUE: &str = "[host]\ncpus = 1\n[[vm]]\nvcpus = 8\nlock = \"ticket\"\nlocks = 1\nuser_work = \"0ns\"\n\
    kernel_work = { exponential = \"2ms\" }\nhold = { exponential = \"1ms\" }\nshootdown_every_iterations = 3\n\
    wakeup_every_iterations = 2\ntick_hz = 250\npause_every_spins = 1\n";

/// Two VMs of two vCPUs on two pCPUs: each fits.
const FITS: &str = "[host]\ncpus = 2\nple_window = 3000\nple_gap = 65535\nple_window_fixed = true\n[[vm]]\ncount = 2\n\
    vcpus = 2\nlock = \"ticket\"\nuser_work = { exponential = \"20us\" }\nhold = { exponential = \"5us\" }\n";

/// "The target runs": a directed yield within a run queue is followed, so the same work takes fewer of them.
#[test]
fn lag_credit_helps_within_a_run_queue() {
    let stock = play("scheduler = \"eevdf-7.2\"", ONE_QUEUE);
    let credited = play("scheduler = \"eevdf-7.2+lag-credit\"", ONE_QUEUE);
    assert!(
        credited.operations * 100 > stock.operations * 101,
        "more is done"
    );
    assert!(
        credited.yields * stock.operations < stock.yields * credited.operations,
        "with fewer yields for each"
    );
    // unspin's form of it, beside a yield buddy that is followed only when it is fair.
    let pv_page = play("scheduler = \"steer\"\npolicy = \"yield-buddy\"", ONE_QUEUE);
    let ours = play("scheduler = \"steer\"\npolicy = \"lag-credit\"", ONE_QUEUE);
    assert!(ours.operations * 100 > pv_page.operations * 110);
    assert!(ours.yields * pv_page.operations < pv_page.yields * ours.operations);
}

/// Where waiter and target never share a run queue there is nothing to credit.
#[test]
fn lag_credit_does_nothing_across_run_queues() {
    let stock = play("scheduler = \"eevdf-7.2\"", FITS);
    let credited = play("scheduler = \"eevdf-7.2+lag-credit\"", FITS);
    assert_eq!(credited.operations, stock.operations);
}

/// Four vCPUs that yield to each other beside two busy threads get no more than their third of two pCPUs. Credit that was
/// charged to no task gave them everything.
#[test]
fn lag_credit_buys_no_share() {
    let vms = FITS.replacen("count = 2\nvcpus = 2", "vcpus = 4", 1);
    let ours = play(
        "scheduler = \"steer\"\npolicy = \"lag-credit\"\ncpu_hogs = 2",
        &vms,
    );
    let share = ours.vms_ns[0] as f64 / (3.0 * 2.0 * 0.9e9);
    assert!((0.31..0.37).contains(&share), "{share}");
}

/// Tasks that are scheduled together do not wait for tasks that are not: spinning decreases, without pause-loop exits.
#[test]
fn a_gang_spins_less_where_it_fits() {
    let no_exits = |lab: &str| play(&format!("{lab}\nwindow_control = \"off\""), FITS);
    let stock = no_exits("scheduler = \"eevdf-7.2\"");
    let strict = no_exits("scheduler = \"gang\"");
    assert!(strict.operations * 100 > stock.operations * 102);
    assert!(strict.spin_ns * 3 < stock.spin_ns * 2);
    let apart = no_exits("scheduler = \"steer\"");
    let relaxed = no_exits("scheduler = \"steer\"\npolicy = \"gang\"");
    assert!(relaxed.operations > apart.operations);
    assert!(relaxed.spin_ns < apart.spin_ns);
}

/// A VM whose vCPUs wait for each other beside one that never waits: whether called or cut, each has its half, and no
/// pCPU is idle.
#[test]
fn gangs_buy_no_share() {
    let vms = format!(
        "{FITS}[[vm]]\nvcpus = 2\nlock = \"ticket\"\nlocks = \"private\"\nuser_work = \"1ms\"\nhold = \"1us\"\n"
    );
    let vms = vms.replacen("count = 2", "count = 1", 1);
    // Each VM is a cgroup of the same weight, whichever vCPU calls.
    let relaxed = play("scheduler = \"steer\"\npolicy = \"gang\"", &vms);
    let [gang_ns, other_ns] = relaxed.vms_ns;
    let share = gang_ns as f64 / (gang_ns + other_ns) as f64;
    assert!((0.49..0.51).contains(&share), "{share}");
    assert!(
        relaxed.idle_ns < 1_000_000,
        "they are idle before they start, no more"
    );
}
