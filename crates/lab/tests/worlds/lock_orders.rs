// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ruling 12: a preemptable ticket lock of tau infinity takes vCPUs in the order of a ticket lock, one of tau 0 in that
//! of a test-and-test-and-set lock. Its additional accesses cost time, and time changes the order of arrival: so cache
//! lines cost nothing here, and orders and times can be compared one by one.
#![allow(missing_docs)]

use unspin_lab::{
    LabHost, World,
    costs::Costs,
    ids::{Cpu, Lock, Task},
    scheduler::{RoundRobin, from_name},
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use unspin_policy::{Control, Vendor, WindowRule};
use unspin_scenario::Scenario;

const FOREVER: u32 = u32::MAX;

/// Which vCPU took which lock, and when.
#[derive(Default)]
struct Order(Vec<(u64, Lock, Option<Task>)>);

impl Observer for Order {
    fn on_event(&mut self, now_ns: u64, _: Cpu, task: Option<Task>, what: TraceEvent) {
        if let TraceEvent::LockTaken { lock } = what {
            self.0.push((now_ns, lock, task));
        }
    }
}

fn free_lines() -> Costs {
    Costs {
        line_hit_ns: 0,
        line_core_ns: 0,
        line_cache_ns: 0,
        line_socket_ns: 0,
        line_machine_ns: 0,
        line_waiter_ns: 0,
        ..Costs::default()
    }
}

/// The order of acquisitions by 6 vCPUs on that many pCPUs.
fn order(seed: u64, lock: &str, tau_spins: u32, cpus: u32, costs: Costs) -> Order {
    let text = format!(
        "seed = {seed}\niterations = 40\n[[vm]]\nvcpus = 6\nlock = \"{lock}\"\nlocks = {}\nuser_work = {{ exponential = \"9us\" }}\n\
         kernel_work = \"0ns\"\nhold = {{ exponential = \"7us\" }}\ntick_hz = 0\n",
        1 + seed % 2
    );
    let scenario = Scenario::parse(&text, "order.toml").expect("a scenario");
    let topology = Topology::flat(cpus).expect("pCPUs");
    let scheduler = match seed % 3 {
        0 => from_name("cfs-5.6+hz=1000", topology, 1).expect("a name"),
        1 => from_name("eevdf-7.2", topology, 1).expect("a name"),
        _ => Box::new(RoundRobin::new(cpus, 100_000)),
    };
    let host = LabHost {
        // Where a wait is divided in two, the hardware's count may end elsewhere.
        window: WindowRule::new(Control::Off, Vendor::Amd),
        tau_spins,
        ..LabHost::new(topology)
    };
    let world = World::new(&scenario, host, costs, scheduler, Order::default());
    let mut world = world.expect("a world");
    world.run_until(1 << 42).expect("it ends");
    world.into_observer()
}

/// On 6 pCPUs no vCPU is preempted; on 4 and 2 holders and waiters are.
#[test]
fn tau_infinity_is_the_ticket_lock_and_tau_0_is_not() {
    check_orders(crate::common::seeds(60));
}

/// With that many seeds.
pub fn check_orders(seeds: u64) {
    let mut differ = 0;
    for seed in 0..seeds {
        for cpus in [6, 4, 2] {
            let ticket = order(seed, "ticket", 0, cpus, free_lines()).0;
            let endless = order(seed, "preemptable_ticket", FOREVER, cpus, free_lines()).0;
            assert_eq!(ticket, endless, "seed {seed}, {cpus} pCPUs");
            let test_and_set = order(seed, "test_and_test_and_set", 0, cpus, free_lines()).0;
            let at_once = order(seed, "preemptable_ticket", 0, cpus, free_lines()).0;
            assert_eq!(test_and_set, at_once, "seed {seed}, {cpus} pCPUs");
            differ += u32::from(ticket != test_and_set);
        }
    }
    // Otherwise the comparison above would show nothing.
    assert!(u64::from(differ) > seeds * 2, "{differ} orders differ");
}

/// The paper's tau with preempted waiters: neither of the two orders.
#[test]
fn the_papers_tau_is_neither() {
    let run = |lock, tau| order(1, lock, tau, 2, free_lines()).0;
    let paper = run("preemptable_ticket", 16_384);
    assert_ne!(paper, run("ticket", 0));
    assert_ne!(paper, run("test_and_test_and_set", 0));
}

/// "The cost differs by the extra atomics (under 6 %)": with the usual costs of lines, without preemption.
#[test]
fn the_extra_accesses_cost_less_than_6_percent() {
    for tau in [16_384, FOREVER] {
        let end_ns = |lock| {
            let order = order(3, lock, tau, 6, Costs::default()).0;
            order.last().expect("acquisitions").0 as f64
        };
        let ratio = end_ns("preemptable_ticket") / end_ns("ticket");
        println!("tau {tau}: {:+.2} % of the run", (ratio - 1.0) * 100.0);
        assert!((0.99..1.06).contains(&ratio), "tau {tau}: {ratio}");
    }
}
