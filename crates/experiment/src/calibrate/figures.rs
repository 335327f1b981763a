// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what was timed to the costs of the lab. Differences are taken of medians; the spread is that of the larger term.

use unspin_lockbench::costs::{Near, ThreadCosts};

use super::guest::{GuestTimes, median};

/// A cost of the lab, or why there is none.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its name in `Costs`.
    pub cost: &'static str,
    /// Tries, in the unit that ends the name; empty: not measured.
    pub tries: Vec<f64>,
    /// By what program, or why not.
    pub how: &'static str,
}

/// Switches for each exit of the pair, below which they say nothing.
const SWITCHES_LEAST: f64 = 0.1;
/// Costs below this do not stand still (the lab refuses 0 for some).
const LEAST: f64 = 1.0;

impl Figure {
    fn new(cost: &'static str, tries: Vec<f64>, how: &'static str) -> Figure {
        let finite = tries.into_iter().filter(|value| value.is_finite());
        Figure {
            cost,
            tries: finite.collect(),
            how,
        }
    }

    /// The median, whole and at least 1; `None`: not measured.
    pub fn value(&self) -> Option<u32> {
        let middle = median(&self.tries);
        middle
            .is_finite()
            .then(|| middle.round().clamp(LEAST, f64::from(u32::MAX)) as u32)
    }

    /// A quarter of the tries are below the first, a quarter above the second.
    pub fn quartiles(&self) -> Option<(f64, f64)> {
        let mut tries = self.tries.clone();
        tries.sort_by(f64::total_cmp);
        let last = tries.len().checked_sub(1)?;
        Some((tries[last / 4], tries[last - last / 4]))
    }
}

fn scaled(tries: &[f64], by: f64) -> Vec<f64> {
    tries.iter().map(|value| value * by).collect()
}

fn less(tries: &[f64], other: f64) -> Vec<f64> {
    tries.iter().map(|value| (value - other).max(0.0)).collect()
}

/// The costs that only a guest can show; `None`: threads, without a hypervisor.
struct Guest<'a> {
    times: &'a GuestTimes,
    round_trip: Vec<f64>,
}

/// All costs of the lab, measured or not. `guest`: timed under KVM.
pub fn figures(threads: &ThreadCosts, guest: Option<&GuestTimes>) -> Vec<Figure> {
    let guest = guest.map(|times| {
        let cheapest = median(&times.wbinvd) < median(&times.cpuid);
        let round_trip = if cheapest {
            &times.wbinvd
        } else {
            &times.cpuid
        };
        Guest {
            times,
            round_trip: round_trip.clone(),
        }
    });
    let mut figures = loops(threads, guest.as_ref());
    figures.extend(exits(guest.as_ref()));
    figures.extend(host(threads, guest.as_ref()));
    figures.extend(lines(threads, guest.as_ref()));
    figures.push(Figure::new("smt_speed", Vec::new(), "not measured"));
    figures
}

fn loops(threads: &ThreadCosts, guest: Option<&Guest>) -> Vec<Figure> {
    let (work, wait, pause) = match guest {
        None => (
            &threads.work_loop_ns,
            &threads.wait_spin_ns,
            threads.pause_ns.clone(),
        ),
        Some(Guest { times, .. }) => (
            &times.work,
            &times.wait,
            less(&times.wait_and_pause, median(&times.wait)),
        ),
    };
    vec![
        Figure::new("work_loop_ps", scaled(work, 1_000.0), "the work loop"),
        Figure::new(
            "wait_spin_ps",
            scaled(wait, 1_000.0),
            "a wait without PAUSE for a word that stays",
        ),
        Figure::new(
            "pause_ps",
            scaled(&pause, 1_000.0),
            "what a PAUSE that does not exit adds to it",
        ),
        Figure::new(
            "tsc_mhz",
            threads.tsc_mhz.clone(),
            "the TSC beside CLOCK_MONOTONIC",
        ),
    ]
}

/// What exits take and what KVM does in them.
fn exits(guest: Option<&Guest>) -> Vec<Figure> {
    let of = |cost, tries: &dyn Fn(&Guest) -> Vec<f64>, how| match guest {
        Some(guest) => Figure::new(cost, tries(guest), how),
        None => Figure::new(cost, Vec::new(), "not measured: there is no guest"),
    };
    let trip = guest.map_or(f64::NAN, |guest| median(&guest.round_trip));
    let candidate = guest.map_or(f64::NAN, |guest| {
        // Eight vCPUs have seven others, two one.
        let more = median(&guest.times.pause_exit_of_8) - median(&guest.times.pause_exit_of_2);
        (more / 6.0).max(0.0)
    });
    vec![
        of(
            "exit_ns",
            &|guest| scaled(&guest.round_trip, 0.5),
            "half of the cheapest round trip, WBINVD or CPUID",
        ),
        of(
            "entry_ns",
            &|guest| scaled(&guest.round_trip, 0.5),
            "the other half",
        ),
        of(
            "on_spin_ns",
            &|guest| less(&guest.times.pause_exit_of_2, trip + candidate),
            "a pause-loop exit where the only other vCPU stands still, less round trip and candidate",
        ),
        of(
            "candidate_ns",
            &|guest| {
                let two = median(&guest.times.pause_exit_of_2);
                scaled(&less(&guest.times.pause_exit_of_8, two), 1.0 / 6.0)
            },
            "a sixth of what six more vCPUs that stand still add to it",
        ),
        of(
            "hypercall_ns",
            &|guest| less(&guest.times.hypercall, trip),
            "an unknown hypercall, less the round trip",
        ),
        of(
            "ipi_send_ns",
            &|guest| less(&guest.times.send, trip),
            "an IPI to itself that stays pending, less the round trip",
        ),
        of(
            "handler_ns",
            &|guest| less(&guest.times.interrupt, median(&guest.times.send)),
            "what handling it adds, its EOI included",
        ),
        of(
            "halt_ns",
            &|guest| less(&guest.times.halt, median(&guest.times.interrupt) + trip),
            "what a HLT that it ends at once adds, less the round trip",
        ),
    ]
}

fn host(threads: &ThreadCosts, guest: Option<&Guest>) -> Vec<Figure> {
    let thread_switch = median(&threads.switch_ns);
    let switch = match guest {
        // A switch inside KVM skips the system call: no more than what pause-loop exits that switch take beyond others.
        Some(Guest { times, .. }) => {
            let beyond = median(&times.pause_exit_of_pair) - median(&times.pause_exit_of_2);
            let rate = median(&times.pair_switches);
            let known = rate >= SWITCHES_LEAST && beyond > 0.0;
            let most = if known { beyond / rate } else { f64::INFINITY };
            let load = times.load_and_put.iter();
            load.map(|load| (load + thread_switch).min(most)).collect()
        }
        None => threads.switch_ns.clone(),
    };
    let switch_ns = median(&switch);
    let yield_to = guest.map_or(Vec::new(), |guest| {
        let times = guest.times;
        let switched_ns = median(&times.pair_switches) * switch_ns;
        less(
            &times.pause_exit_of_pair,
            median(&times.pause_exit_of_2) + switched_ns,
        )
    });
    let tick = match guest {
        Some(guest) => less(&guest.times.tick, median(&guest.round_trip)),
        None => threads.tick_ns.clone(),
    };
    vec![
        Figure::new(
            "yield_to_ns",
            yield_to,
            match guest {
                Some(_) => {
                    "a pause-loop exit of two vCPUs on one CPU, less that of one and the switches seen"
                }
                None => "not measured: there is no guest",
            },
        ),
        Figure::new(
            "switch_ns",
            switch,
            match guest {
                Some(_) => {
                    "two threads that yield to one another and KVM_RUN that returns at once, or the pair of yield_to_ns if that is less"
                }
                None => "two threads that yield to one another, less one that yields to nobody",
            },
        ),
        Figure::new(
            "tick_ns",
            tick,
            "gaps in a loop that looks at the TSC, less the round trip of a guest",
        ),
        Figure::new("poll_ns", Vec::new(), "not measured"),
        Figure::new("guest_switch_ns", Vec::new(), "not measured"),
        Figure::new("page_fault_ns", Vec::new(), "not measured"),
        Figure::new(
            "ipi_ns",
            threads.ipi_ns.clone(),
            "an expedited membarrier() beside a busy CPU, less one beside none",
        ),
        Figure::new(
            "wakeup_ns",
            threads.wakeup_ns.clone(),
            "FUTEX_WAKE of a thread asleep on another CPU, less one of nobody",
        ),
    ]
}

const LINES: [(Near, &str); 4] = [
    (Near::Core, "line_core_ns"),
    (Near::Cache, "line_cache_ns"),
    (Near::Socket, "line_socket_ns"),
    (Near::Machine, "line_machine_ns"),
];

fn lines(threads: &ThreadCosts, guest: Option<&Guest>) -> Vec<Figure> {
    let own = guest.map_or(threads.line_hit_ns.clone(), |guest| {
        less(&guest.times.add, median(&guest.times.nothing))
    });
    let mut figures = vec![Figure::new(
        "line_hit_ns",
        own,
        "an atomic addition to a word of its own",
    )];
    let found = &threads.line_ns;
    for (distance, cost) in LINES {
        let at = found.iter().find(|(near, _)| *near == distance);
        // A distance that this machine does not have: the next that it has, farther away first.
        let farther = found.iter().find(|(near, _)| *near > distance);
        let nearer = found.iter().rev().find(|(near, _)| *near < distance);
        let instead = farther.or(nearer);
        figures.push(match (at, instead) {
            (Some((_, tries)), _) => {
                Figure::new(cost, tries.clone(), "a word that two CPUs write in turn")
            }
            (None, Some((_, tries))) => Figure::new(
                cost,
                tries.clone(),
                "no two CPUs here are so near or far: the next distance's",
            ),
            (None, None) => Figure::new(cost, Vec::new(), "not measured: there is one CPU"),
        });
    }
    figures.push(Figure::new("line_waiter_ns", Vec::new(), "not measured"));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(figures: &[Figure], cost: &str) -> Option<u32> {
        let found = figures.iter().find(|figure| figure.cost == cost);
        found.unwrap_or_else(|| panic!("no {cost}")).value()
    }

    #[test]
    fn every_cost_of_the_lab_has_its_figure_and_no_other() {
        let figures = figures(&ThreadCosts::default(), None);
        let costs = serde_json::to_value(unspin_lab::costs::Costs::default()).expect("integers");
        let costs: Vec<&String> = costs.as_object().expect("a struct").keys().collect();
        for cost in &costs {
            assert_eq!(value(&figures, cost), None, "{cost}: nothing was measured");
        }
        assert_eq!(figures.len(), costs.len());
    }

    #[test]
    fn what_is_measured_together_is_taken_apart() {
        let threads = ThreadCosts {
            switch_ns: vec![1_000.0],
            line_ns: vec![(Near::Machine, vec![80.0])],
            ..ThreadCosts::default()
        };
        let guest = GuestTimes {
            work: vec![0.8],
            wait: vec![2.0],
            wait_and_pause: vec![12.0],
            cpuid: vec![900.0, 1_000.0, 1_100.0],
            wbinvd: vec![800.0],
            hypercall: vec![850.0],
            send: vec![1_000.0],
            interrupt: vec![1_900.0],
            halt: vec![3_000.0],
            tick: vec![5_000.0],
            pause_exit_of_2: vec![1_200.0],
            pause_exit_of_8: vec![1_500.0],
            pause_exit_of_pair: vec![4_000.0],
            pair_switches: vec![0.5],
            load_and_put: vec![600.0],
            ..GuestTimes::default()
        };
        let figures = figures(&threads, Some(&guest));
        for (cost, expected) in [
            ("work_loop_ps", 800),
            ("wait_spin_ps", 2_000),
            ("pause_ps", 10_000),
            ("exit_ns", 400),
            ("entry_ns", 400),
            ("candidate_ns", 50),
            ("on_spin_ns", 350),
            ("hypercall_ns", 50),
            ("ipi_send_ns", 200),
            ("handler_ns", 900),
            ("halt_ns", 300),
            ("tick_ns", 4_200),
            ("switch_ns", 1_600),
            ("yield_to_ns", 2_000),
            ("line_cache_ns", 80),
        ] {
            assert_eq!(value(&figures, cost), Some(expected), "{cost}");
        }
        assert_eq!(value(&figures, "tsc_mhz"), None);
    }

    #[test]
    fn quartiles_of_the_tries() {
        let figure = Figure::new("exit_ns", vec![5.0, 1.0, 3.0, 2.0, 4.0, f64::NAN], "");
        assert_eq!(
            (figure.value(), figure.quartiles()),
            (Some(3), Some((2.0, 4.0)))
        );
        assert_eq!(Figure::new("exit_ns", vec![0.2], "").value(), Some(1));
    }
}
