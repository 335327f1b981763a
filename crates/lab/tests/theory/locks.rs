// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lock throughput without preemption, computed from the costs: nothing is fitted.
#![allow(missing_docs)]

use unspin_lab::{LabHost, World, costs::Costs, scheduler::RoundRobin, topology::Topology};
use unspin_scenario::Scenario;

/// Locks taken per second by that many vCPUs, each on its own pCPU, in `window_ns` after a tenth of it.
fn throughput(vcpus: u32, user: &str, hold: &str, locks: &str, window_ns: u64) -> f64 {
    let text = format!(
        "seed = 7\nduration = \"100s\"\n[[vm]]\nvcpus = {vcpus}\nlock = \"ticket\"\nlocks = {locks}\n\
         user_work = {user}\nkernel_work = \"0ns\"\nhold = {hold}\ntick_hz = 0\npause_exits = false\n"
    );
    let scenario = Scenario::parse(&text, "theory.toml").expect("a scenario");
    let topology = Topology::flat(vcpus).expect("pCPUs");
    // Slices that do not end within the run, and no ticks.
    let scheduler = RoundRobin::new(vcpus, 1_000_000_000_000);
    let host = LabHost::new(topology);
    let world = World::new(&scenario, host, Costs::default(), Box::new(scheduler), ());
    let mut world = world.expect("a world");
    let acquisitions = |world: &World<()>| -> u64 {
        world
            .vcpus()
            .map(|(.., statistics)| statistics.acquisitions)
            .sum()
    };
    world.run_until(window_ns / 10).expect("it runs");
    let before = acquisitions(&world);
    world
        .run_until(window_ns / 10 + window_ns)
        .expect("it runs");
    (acquisitions(&world) - before) as f64 * 1e9 / window_ns as f64
}

/// The parts of an iteration with a ticket lock, ns, from the costs. The lock is one cache line.
struct Parts {
    /// An access to a line that another pCPU of the same cache wrote.
    far_ns: f64,
    /// An access to a line that this pCPU has.
    here_ns: f64,
}

impl Parts {
    fn new() -> Parts {
        let costs = Costs::default();
        Parts {
            far_ns: costs.line_cache_ns.into(),
            here_ns: costs.line_hit_ns.into(),
        }
    }

    /// One iteration without waiting, without work and hold: the ticket's fetch-and-add fetches the line, which then
    /// stays for a read of the head, and the unlock's two loads and its store.
    fn alone_ns(&self) -> f64 {
        self.far_ns + 4.0 * self.here_ns
    }

    /// From one hand-over to the next, without the hold, while others queue: the next waiter gets its copy of the head;
    /// during the hold another waiter's fetch-and-add takes the line away, so that the unlock's first load and its
    /// store each fetch it; the load between them finds it.
    fn handed_over_ns(&self) -> f64 {
        3.0 * self.far_ns + self.here_ns
    }

    /// The same if no waiter comes during a hold: the line is there for the unlock's first load. Which of the two a run
    /// of constant times ends in depends on phases, down to a nanosecond.
    fn handed_over_in_peace_ns(&self) -> f64 {
        2.0 * self.far_ns + 2.0 * self.here_ns
    }
}

/// `min(N / (Z + S), 1 / S)` for constant times.
#[test]
fn constant_times_give_the_two_bounds() {
    let parts = Parts::new();
    let (mut worst, mut cells, mut settled) = (0.0f64, 0, 0);
    for hold_ns in [400.0, 2_000.0, 10_000.0] {
        let served_ns = hold_ns + parts.handed_over_ns();
        for ratio in [0, 1, 2, 4, 8, 16] {
            // Half a hold more, so that a vCPU that returns finds the lock held, not just being handed over.
            let think_ns = f64::from(ratio) * served_ns + (hold_ns / 2.0).floor();
            for vcpus in [1, 2, 3, 4, 6, 8, 12, 16, 32, 64] {
                let alone_ns = think_ns + hold_ns + parts.alone_ns();
                // With one vCPU the line is never transferred.
                let alone_ns = match vcpus {
                    1 => alone_ns - parts.far_ns + parts.here_ns,
                    _ => alone_ns,
                };
                let (free, full) = (f64::from(vcpus) / alone_ns, 1.0 / served_ns);
                // Where the two bounds meet, the lock is handed over to some and free for others: S is in between.
                let between = 0.01 + parts.handed_over_ns() / served_ns;
                if (free / full - 1.0).abs() < between && vcpus > 1 {
                    continue;
                }
                let expected = free.min(full) * 1e9;
                let (user, hold) = (format!("\"{think_ns}ns\""), format!("\"{hold_ns}ns\""));
                let window_ns = 400 * (think_ns + f64::from(vcpus) * served_ns) as u64;
                let measured = throughput(vcpus, &user, &hold, "1", window_ns);
                // Always busy: one of the two hand-overs, or a mixture of both.
                let peace = 1e9 / (hold_ns + parts.handed_over_in_peace_ns());
                let most = if vcpus > 1 {
                    peace.min(free * 1e9).max(expected)
                } else {
                    expected
                };
                let error = (expected / measured - 1.0).max(measured / most - 1.0);
                worst = worst.max(error);
                cells += 1;
                settled += u32::from((measured / expected - 1.0).abs() < 0.01);
                assert!(
                    error < 0.01,
                    "N {vcpus}, Z {think_ns}, hold {hold_ns}: {measured:.0} of {expected:.0} per second"
                );
            }
        }
    }
    println!(
        "constant times: {settled} of {cells} cells at the bound, at most {:.3} % off",
        worst * 100.0
    );
    assert!(settled * 10 > cells * 9, "{settled} of {cells}");
}

/// Private locks: no waits, and vCPUs do not affect each other.
#[test]
fn private_locks_scale() {
    let here_ns = Parts::new().here_ns;
    for vcpus in [1, 8, 64] {
        let measured = throughput(vcpus, "\"3us\"", "\"500ns\"", "\"private\"", 20_000_000);
        let expected = f64::from(vcpus) * 1e9 / (3_500.0 + 4.0 * here_ns);
        assert!(
            (measured / expected - 1.0).abs() < 0.001,
            "{vcpus}: {measured:.0} of {expected:.0}"
        );
    }
}

/// The closed queue with one server and N sources, M/M/1//N, by mean value analysis.
fn machine_repairman(sources: u32, think_ns: f64, service_ns: f64) -> f64 {
    let (mut queue, mut throughput) = (0.0, 0.0);
    for present in 1..=sources {
        let response_ns = service_ns * (1.0 + queue);
        throughput = f64::from(present) / (think_ns + response_ns);
        queue = throughput * response_ns;
    }
    throughput * 1e9
}

/// Mean and squared coefficient of variation of the guest's distribution: 256 values.
fn table(mean_ns: u64) -> (f64, f64) {
    let text = format!(
        "seed = 1\niterations = 1\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\nhold = {{ exponential = \"{mean_ns}ns\" }}\n"
    );
    let scenario = Scenario::parse(&text, "table.toml").expect("a scenario");
    let table = scenario.vms[0].hold.quantile_table();
    let mean = table.iter().sum::<u64>() as f64 / 256.0;
    let square = table
        .iter()
        .map(|value| (*value as f64).powi(2))
        .sum::<f64>();
    (mean, square / 256.0 / mean.powi(2) - 1.0)
}

/// Exponential times, within 2 %. The table of 256 steps has the right mean and a variance a little less than 1: the
/// tail beyond 255/256 is one value. (Service times with less variance queue less.)
#[test]
fn exponential_times_give_the_machine_repairman() {
    let parts = Parts::new();
    let hold_ns = 100_000;
    let (mean_ns, variation) = table(hold_ns);
    assert!((mean_ns / hold_ns as f64 - 1.0).abs() < 1e-4, "{mean_ns}");
    assert!((0.985..1.0).contains(&variation), "{variation}");
    let mut worst = 0.0f64;
    for ratio in [1, 4, 16] {
        let think_ns = ratio * hold_ns;
        for vcpus in [2, 4, 8, 16, 32] {
            // Hand-over and unlock are within these tolerances, 0.05 and 0.14 % of the service.
            let fixed_ns = (parts.alone_ns() + parts.handed_over_ns()) / 2.0;
            let expected = machine_repairman(vcpus, think_ns as f64, mean_ns + fixed_ns);
            let user = format!("{{ exponential = \"{think_ns}ns\" }}");
            let hold = format!("{{ exponential = \"{hold_ns}ns\" }}");
            // So many services that their mean is known to within 0.3 % (one standard error).
            let window_ns = 100_000 * 1_000_000_000 / expected as u64;
            let measured = throughput(vcpus, &user, &hold, "1", window_ns);
            let error = measured / expected - 1.0;
            worst = worst.max(error.abs());
            println!("N {vcpus}, Z/S {ratio}: {:+.2} %", error * 100.0);
            assert!(
                error.abs() < 0.02,
                "N {vcpus}, Z/S {ratio}: {measured:.1} of {expected:.1} per second"
            );
        }
    }
    println!(
        "exponential times: table's squared coefficient of variation {variation:.4}; at most {:.2} % off",
        worst * 100.0
    );
}
