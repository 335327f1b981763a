// SPDX-License-Identifier: MIT OR Apache-2.0
//! Queues of domains: which domain takes tasks from which, and that each task gets its share of the whole host.

use super::{MS, SLICE_NS};
use unspin_policy::mechanics::{Standing, TICK_NS, own_standing, takes_again};

/// As far as a slice can make: two slices and a tick.
const REACH_NS: u64 = 2 * SLICE_NS + TICK_NS;

fn at(clock_ns: u64) -> Standing {
    Standing {
        clock_ns,
        offset_ns: 0,
    }
}

#[test]
fn a_task_is_taken_from_who_is_behind_by_more_than_a_slice_makes() {
    let (ours, theirs) = (at(100 * MS), at(100 * MS - REACH_NS));
    assert!(!ours.takes_from(theirs, SLICE_NS));
    assert!(ours.takes_from(at(100 * MS - REACH_NS - 1), SLICE_NS));
    assert!(!theirs.takes_from(ours, SLICE_NS));
    // Times wrap around.
    assert!(at(1).takes_from(at(1u64.wrapping_sub(REACH_NS + 1)), SLICE_NS));
}

#[test]
fn once_a_tick() {
    assert!(!takes_again(5 * MS, 5 * MS + TICK_NS - 1));
    assert!(takes_again(5 * MS, 5 * MS + TICK_NS));
}

#[test]
fn where_no_task_waits_there_is_no_claim() {
    let mut first_ns = 500 * MS;
    let mut behind = at(100 * MS);
    behind.advance(true, &mut first_ns, SLICE_NS);
    assert_eq!(behind.ns(), 100 * MS, "a task waits: it is behind");
    behind.advance(false, &mut first_ns, SLICE_NS);
    assert_eq!(behind.ns(), 500 * MS - REACH_NS, "nobody takes from it");
    assert!(!at(first_ns).takes_from(behind, SLICE_NS));
    assert_eq!(first_ns, 500 * MS);
    // What it was behind by less than that stays.
    behind.clock_ns += 5 * MS;
    behind.advance(false, &mut first_ns, SLICE_NS);
    assert_eq!(behind.ns(), 505 * MS - REACH_NS);
    // Who is ahead is the first one, written every half slice only.
    behind.clock_ns += REACH_NS - 5 * MS + SLICE_NS / 2;
    behind.advance(false, &mut first_ns, SLICE_NS);
    assert_eq!(first_ns, 500 * MS);
    behind.clock_ns += 1;
    behind.advance(true, &mut first_ns, SLICE_NS);
    assert_eq!(first_ns, 500 * MS + SLICE_NS / 2 + 1);
}

#[test]
fn a_cpu_whose_own_task_is_alone_takes_in_time() {
    let first_ns = 500 * MS;
    let own = |own_ns, alone| own_standing(own_ns, alone, first_ns, SLICE_NS);
    // It has no claim for what was before, takes none at first,
    assert_eq!(own(3, true), first_ns - REACH_NS);
    // keeps what it has run since,
    assert_eq!(own(first_ns + REACH_NS, true), first_ns + REACH_NS);
    // is ahead by no more than makes it take of the first domain,
    let most_ns = own(9 * first_ns, true);
    assert!(at(most_ns).takes_from(at(first_ns), SLICE_NS));
    assert_eq!(most_ns, first_ns + 2 * REACH_NS);
    // and takes none for itself where others wait for it.
    assert_eq!(own(first_ns + REACH_NS, false), first_ns - REACH_NS);
    assert!(!at(own(9 * first_ns, false)).takes_from(at(first_ns - REACH_NS), SLICE_NS));
    // Times wrap around.
    assert_eq!(own_standing(5, true, 0u64.wrapping_sub(MS), SLICE_NS), 5);
}

/// Domains of eight CPUs with equal hogs, which run for a tick at a time each and are taken by the rules.
struct Host {
    domains: Vec<(Standing, u64)>,
    /// Each hog's domain, virtual time there, and time run.
    hogs: Vec<(usize, u64, u64)>,
    first_ns: u64,
    now_ns: u64,
    moves: usize,
}

const CPUS: usize = 8;

impl Host {
    fn new(of_each: &[usize]) -> Host {
        let hogs = of_each.iter().enumerate();
        Host {
            domains: vec![(at(0), 0); of_each.len()],
            hogs: hogs
                .flat_map(|(domain, &count)| (0..count).map(move |_| (domain, 0, 0)))
                .collect(),
            first_ns: 0,
            now_ns: 0,
            moves: 0,
        }
    }

    /// All CPUs run for a tick.
    fn tick(&mut self) {
        for domain in 0..self.domains.len() {
            let mut here: Vec<usize> = (0..self.hogs.len())
                .filter(|&hog| self.hogs[hog].0 == domain)
                .collect();
            here.sort_by_key(|&hog| self.hogs[hog].1);
            let waits = here.len() > CPUS;
            for &hog in here.iter().take(CPUS) {
                let standing = &mut self.domains[domain].0;
                standing.clock_ns = standing.clock_ns.max(self.hogs[hog].1);
                standing.advance(waits, &mut self.first_ns, SLICE_NS);
                self.hogs[hog].1 += TICK_NS;
                self.hogs[hog].2 += TICK_NS;
            }
            self.take(domain);
        }
        self.now_ns += TICK_NS;
    }

    fn take(&mut self, domain: usize) {
        let (ours, taken_ns) = self.domains[domain];
        if !takes_again(taken_ns, self.now_ns) {
            return;
        }
        self.domains[domain].1 = self.now_ns;
        // Begun with another one each time, as in bpf/scheduler/domains/take.bpf.h.
        let count = self.domains.len();
        let turn = (self.now_ns / TICK_NS) as usize;
        let waits = |other: usize| self.hogs.iter().filter(|hog| hog.0 == other).count() > CPUS;
        let behind = (0..count)
            .map(|place| (place + turn) % count)
            .find(|&other| ours.takes_from(self.domains[other].0, SLICE_NS) && waits(other));
        let Some(other) = behind else { return };
        let theirs = self.domains[other].0;
        let first = (0..self.hogs.len())
            .filter(|&hog| self.hogs[hog].0 == other)
            .min_by_key(|&hog| self.hogs[hog].1)
            .expect("more than CPUs");
        let moved_ns = self.hogs[first].1 + theirs.offset_ns - ours.offset_ns;
        self.hogs[first].0 = domain;
        self.hogs[first].1 = moved_ns.max((ours.clock_ns).saturating_sub(REACH_NS));
        self.moves += 1;
    }

    /// The greatest difference of a hog's time from the mean, of the mean, over that time.
    fn worst_error(&mut self, ticks: usize) -> f64 {
        let before: Vec<u64> = self.hogs.iter().map(|hog| hog.2).collect();
        self.moves = 0;
        for _ in 0..ticks {
            self.tick();
        }
        let ran: Vec<f64> = self
            .hogs
            .iter()
            .zip(before)
            .map(|(hog, before)| (hog.2 - before) as f64)
            .collect();
        let mean = ran.iter().sum::<f64>() / ran.len() as f64;
        ran.iter()
            .map(|ran| (ran - mean).abs() / mean)
            .fold(0.0, f64::max)
    }
}

/// 2 s are 500 ticks.
#[test]
fn each_hog_gets_its_share_of_the_host() {
    for of_each in [
        &[8, 17][..],
        &[20, 21],
        &[40, 9, 9, 9],
        &[32, 0],
        &[11, 11, 12],
    ] {
        let mut host = Host::new(of_each);
        host.worst_error(250);
        let error = host.worst_error(500);
        let moves = host.moves;
        // A hog of 25 runs for 640 ms in 2 s: a reach is 1.5 % of that.
        let of_reach = REACH_NS as f64 / (500.0 * TICK_NS as f64) * host.hogs.len() as f64
            / (CPUS * of_each.len()) as f64;
        assert!(
            error < 1.5 * of_reach,
            "{of_each:?}: {error}, {moves} moves"
        );
        assert!(moves < 250, "{of_each:?}: {moves} moves in 500 ticks");
    }
}
