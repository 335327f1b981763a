// SPDX-License-Identifier: MIT OR Apache-2.0
//! Segments with several bytes changed at random and a hash that fits: an error or events, never a panic.

mod common;

use std::fs;

use common::{hostile, record, rows, segments, switch};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use unspin_events::Event;

const ROUNDS: usize = 40_000;

#[test]
fn many_bytes_changed_at_once() {
    let seed = [7; 32];
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut draw = |strategy: &dyn Fn(&mut TestRunner) -> u32| strategy(&mut runner);
    let mut below =
        |limit: u32| draw(&|runner| (0..limit).new_tree(runner).expect("a number").current());
    let folder = tempfile::tempdir().expect("a folder");
    let mut events: Vec<Event> = (0..40).map(|time_ns| switch(time_ns, 3)).collect();
    let mut strategies = TestRunner::deterministic();
    for time_ns in 40..80 {
        let drawn = common::any_event()
            .new_tree(&mut strategies)
            .expect("an event");
        events.push(Event {
            time_ns,
            ..drawn.current()
        });
    }
    record(folder.path(), &events, rows(events.len()));
    let path = &segments(folder.path())[0];
    let bytes = fs::read(path).expect("a segment");
    let mut told = 0;
    for _ in 0..ROUNDS {
        let mut changed = bytes.clone();
        for _ in 0..=below(4) {
            let place = below(bytes.len() as u32) as usize;
            changed[place] = match below(4) {
                0 => below(256) as u8,
                1 => changed[place] ^ (1 << below(8)),
                2 => changed[place].wrapping_add(1),
                _ => [0, 0xff, 0x7f, 0x80, 0x10][below(5) as usize],
            };
        }
        if below(8) == 0 {
            changed.truncate(below(bytes.len() as u32 + 1) as usize);
        }
        told += usize::from(hostile(folder.path(), path, &changed));
    }
    assert!(told > ROUNDS / 4, "{told} changes were noticed");
}
