// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fairness that VEE'13 sections 4.3 and 4.4 promise of the preemptable ticket lock, over seeds in the lab: the
//! bound on overtakes while holds are shorter than tau, waits without variance without preemption, more preempted
//! holders than with tickets.
#![allow(missing_docs)]

use unspin_lab::{
    LabHost, World,
    costs::Costs,
    ids::{Cpu, Task},
    scheduler::{RoundRobin, from_name},
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use unspin_policy::{Control, Vendor, WindowRule};
use unspin_scenario::Scenario;

const VCPUS: u32 = 6;
const HOLD: &str = "{ exponential = \"7us\" }";
/// The paper's tau, and one just above the holds, with which waiters often time out.
const TAUS_SPINS: [u32; 2] = [16_384, 2_048];

/// One wait for the lock that has ended.
struct Wait {
    wait_ns: u64,
    /// Acquisitions by requests that came later, since the waiter last got a pCPU.
    overtaken: u32,
    /// The longest hold that it saw since then, ns.
    longest_hold_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Request {
    asked_ns: u64,
    number: u64,
    overtaken: u32,
    longest_hold_ns: u64,
    waits: bool,
}

/// Observes which vCPUs wait for the lock, and which overtake which.
#[derive(Default)]
struct Fairness {
    requests: [Request; VCPUS as usize],
    drawn: u64,
    held_since_ns: Option<u64>,
    waits: Vec<Wait>,
}

impl Fairness {
    fn taken(&mut self, now_ns: u64, taker: usize) {
        let number = self.requests[taker].number;
        self.requests[taker].waits = false;
        for other in self.requests.iter_mut().filter(|other| other.waits) {
            other.overtaken += u32::from(other.number < number);
        }
        let taken = self.requests[taker];
        self.held_since_ns = Some(now_ns);
        self.waits.push(Wait {
            wait_ns: now_ns - taken.asked_ns,
            overtaken: taken.overtaken,
            longest_hold_ns: taken.longest_hold_ns,
        });
    }
}

impl Observer for Fairness {
    fn on_event(&mut self, now_ns: u64, _: Cpu, task: Option<Task>, what: TraceEvent) {
        let place = task
            .map(Task::index)
            .filter(|task| *task < self.requests.len());
        match (what, place) {
            (TraceEvent::LockAsked { .. }, Some(asker)) => {
                self.drawn += 1;
                self.requests[asker] = Request {
                    asked_ns: now_ns,
                    number: self.drawn,
                    waits: true,
                    ..Request::default()
                };
            }
            (TraceEvent::LockTaken { .. }, Some(taker)) => self.taken(now_ns, taker),
            (TraceEvent::LockReleased { .. }, _) => {
                let hold_ns = now_ns - self.held_since_ns.take().unwrap_or(now_ns);
                for waiter in self.requests.iter_mut().filter(|one| one.waits) {
                    waiter.longest_hold_ns = waiter.longest_hold_ns.max(hold_ns);
                }
            }
            (TraceEvent::SwitchIn { task }, _) => {
                // "While it does not run, anybody may": the count starts when it runs again.
                if let Some(request) = self.requests.get_mut(task.index()) {
                    (request.overtaken, request.longest_hold_ns) = (0, 0);
                }
            }
            _ => {}
        }
    }
}

/// A run of one VM; returns its observer, and how often a vCPU was preempted while it held the lock.
fn run(
    seed: u64,
    (lock, tau_spins): (&str, u32),
    cpus: u32,
    hold: &str,
    iterations: u32,
) -> (Fairness, u64, u64) {
    let text = format!(
        "seed = {seed}\niterations = {iterations}\n[[vm]]\nvcpus = {VCPUS}\nlock = \"{lock}\"\nlocks = 1\nuser_work = {{ exponential = \"9us\" }}\n\
         kernel_work = \"0ns\"\nhold = {hold}\ntick_hz = 0\npause_every_spins = 1\n"
    );
    let scenario = Scenario::parse(&text, "fairness.toml").expect("a scenario");
    let topology = Topology::flat(cpus).expect("pCPUs");
    let scheduler = match seed % 3 {
        0 => from_name("cfs-5.6+hz=1000", topology, 1).expect("a name"),
        1 => from_name("eevdf-7.2", topology, 1).expect("a name"),
        _ => Box::new(RoundRobin::new(cpus, 300_000)),
    };
    let host = LabHost {
        window: WindowRule::new(Control::Off, Vendor::Amd),
        tau_spins,
        ..LabHost::new(topology)
    };
    let watcher = Fairness::default();
    let world = World::new(&scenario, host, Costs::default(), scheduler, watcher);
    let mut world = world.expect("a world");
    world.run_until(1 << 42).expect("it ends");
    let holding = world.vcpus().map(|(.., one)| one.preemptions_holding).sum();
    let end_ns = world.now_ns();
    (world.into_observer(), holding, end_ns)
}

fn tau_ns(tau_spins: u32) -> u64 {
    let costs = Costs::default();
    u64::from(tau_spins) * u64::from(costs.wait_spin_ps + costs.pause_ps) / 1_000
}

/// Claim O09: at most as many requests overtake a request as there are vCPUs, while holds are shorter than tau.
/// Counterexamples are printed with their seed; with longer holds (a preempted holder) the bound is exceeded, which
/// shows that the test can fail.
#[test]
fn overtakes_are_at_most_the_vcpus_while_holds_are_shorter_than_tau() {
    check_overtakes(crate::common::seeds(120));
}

pub fn check_overtakes(seeds: u64) {
    for tau_spins in TAUS_SPINS {
        let (mut waits, mut within, mut most, mut beyond) = (0u64, 0u64, 0, 0);
        for (seed, cpus) in (0..seeds).flat_map(|seed| [(seed, 2), (seed, 4)]) {
            let lock = ("preemptable_ticket", tau_spins);
            let (seen, ..) = run(seed, lock, cpus, HOLD, 60);
            waits += seen.waits.len() as u64;
            for wait in &seen.waits {
                if wait.longest_hold_ns >= tau_ns(tau_spins) {
                    beyond = beyond.max(wait.overtaken);
                    continue;
                }
                within += 1;
                most = most.max(wait.overtaken);
                let passed = wait.overtaken;
                assert!(passed <= VCPUS, "seed {seed}, {cpus} pCPUs: {passed}");
            }
        }
        println!(
            "tau {tau_spins}: {waits} waits, {within} with holds below tau: at most {most} overtakes; {beyond} in the others"
        );
        assert!(within > waits / 2 && most > 0, "the bound must be tried");
    }
}

/// Without preemption each waiter waits for the same number of holds: with constant work waits hardly vary.
#[test]
fn waits_hardly_vary_without_preemption() {
    let variation = |lock: &str| {
        let (seen, ..) = run(1, (lock, TAUS_SPINS[0]), VCPUS, "\"20us\"", 400);
        let waits: Vec<f64> = seen
            .waits
            .iter()
            .skip(200)
            .map(|one| one.wait_ns as f64)
            .collect();
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let square =
            waits.iter().map(|wait| (wait - mean).powi(2)).sum::<f64>() / waits.len() as f64;
        square.sqrt() / mean
    };
    let (ticket, preemptable) = (variation("ticket"), variation("preemptable_ticket"));
    let generic = variation("test_and_set");
    println!(
        "coefficient of variation: ticket {ticket:.3}, preemptable {preemptable:.3}, test-and-set {generic:.3}"
    );
    assert!((ticket - preemptable).abs() < 0.01);
    assert!(preemptable < 0.15 && generic > 2.0 * preemptable);
}

/// Section 4.4: more holders are preempted than with tickets. With a tau just above the holds; with the paper's tau,
/// with which hardly any waiter times out here, there is no visible difference (2,543 and 2,682 in 2,000 runs).
#[test]
fn more_holders_are_preempted_in_a_second_than_with_tickets() {
    let seeds = crate::common::seeds(120);
    let preempted = |lock: &str| {
        let runs = (0..seeds).map(|seed| run(seed, (lock, TAUS_SPINS[1]), 2, HOLD, 300));
        let sums = runs.fold((0, 0, 0), |sums, (seen, holding, end_ns)| {
            let taken = seen.waits.len() as u64;
            (sums.0 + holding, sums.1 + taken, sums.2 + end_ns)
        });
        let per_second = sums.0 as f64 * 1e9 / sums.2 as f64;
        let per_million = sums.0 as f64 * 1e6 / sums.1 as f64;
        println!(
            "{lock}: {per_second:.1} preempted holders a second, {per_million:.0} in a million acquisitions"
        );
        per_second
    };
    assert!(preempted("preemptable_ticket") > preempted("ticket"));
}
