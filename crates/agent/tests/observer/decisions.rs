// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policies make the same decisions in the kernel and here, to the bit: on facts that are drawn, unlikely ones too.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapFlags, ObjectBuilder, ProgramInput};
use unspin_policy::steering::DecisionRecord;
use unspin_testbed::check;

/// bpf/policies/main.bpf.c
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/policies.bpf.o"));
/// RECORDS
const RECORDS: u32 = 1024;
/// Rounds of so many records: 65,536 decisions.
const ROUNDS: u64 = 64;
/// Of those that are built in, with samples and rules of candidates: a user's needs a build of its own.
const POLICIES: u32 = 0x7fff_ffff;
/// Up to the bit of `spin-samples`: UNSPIN_POLICY_SPIN_SAMPLES.
const POLICY_BITS: u32 = 14;
/// One above those of enum unspin_policy_event, which begin at 1.
const EVENTS: u32 = 7;

/// Xorshift (Marsaglia 2003): what is drawn need not be good.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A word of a fact: a small number, one at the edge of what is known, a length of time, or any.
    fn word(&mut self) -> u32 {
        let any = self.next();
        match any >> 61 {
            0..3 => (any >> 8) as u32 % 4,
            3 => u32::MAX - (any >> 8) as u32 % 3,
            4 | 5 => (any >> 8) as u32 % 4_000_000,
            _ => any as u32,
        }
    }

    fn record(&mut self) -> DecisionRecord {
        let words: Vec<u32> = (0..size_of::<DecisionRecord>() / 4)
            .map(|_| self.word())
            .collect();
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut record = DecisionRecord::from_bytes(&bytes).expect("its size");
        record.event = self.next() as u32 % (EVENTS + 1);
        // One policy, all, or some.
        let bits = self.next() as u32;
        record.policies = POLICIES
            & match self.next() % 4 {
                0 => 1 << (bits % POLICY_BITS),
                1 => u32::MAX,
                2 => 0,
                _ => bits & self.next() as u32,
            };
        record
    }
}

check!(COUNTED: policies_decide_the_same_in_the_kernel_and_here);
fn policies_decide_the_same_in_the_kernel_and_here() {
    let mut builder = ObjectBuilder::default();
    let open = builder.open_memory(OBJECT).expect("an object");
    let object = open.load().expect("the verifier takes it");
    let mut random = Random(1);
    let mut actions: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let asked: Vec<DecisionRecord> = (0..RECORDS).map(|_| random.record()).collect();
        let map = object.maps().find(|map| map.name() == "records");
        let map = map.expect("the map");
        for (key, record) in (0..RECORDS).zip(&asked) {
            map.update(&key.to_ne_bytes(), &record.to_bytes(), MapFlags::ANY)
                .expect("an entry of the array");
        }
        let program = object.progs_mut().find(|of| of.name() == "decide_all");
        let output = program
            .expect("the program")
            .test_run(ProgramInput::default());
        assert_eq!(output.expect("it runs").return_value, 0);
        let map = object.maps().find(|map| map.name() == "records");
        let map = map.expect("the map");
        for (key, asked) in (0..RECORDS).zip(&asked) {
            let bytes = map.lookup(&key.to_ne_bytes(), MapFlags::ANY);
            let bytes = bytes.expect("it is readable").expect("an entry");
            let record = DecisionRecord::from_bytes(&bytes).expect("its size");
            assert_eq!(record.facts, asked.facts, "the program leaves facts alone");
            assert!(record.replays(), "decided differently here: {record:?}");
            let what = if record.verdict > 0 {
                100 + record.verdict
            } else {
                record.decision.action
            };
            *actions.entry((record.event, what)).or_default() += 1;
            let mut other = record;
            other.decision.budget_ns ^= 1;
            assert!(!other.replays(), "a difference is seen");
        }
    }
    println!("  decisions by event and action: {actions:?}");
    // REFUSE, DIRECT, LEND, GIVE_BACK, YIELD_BUDDY of a spinner; REFUSE, DIRECT, LEND for help; GRANT, EXTEND; GIVE_BACK; a call.
    let expected = [
        (1, 1),
        (1, 2),
        (1, 3),
        (1, 5),
        (1, 6),
        (4, 1),
        (4, 2),
        (4, 3),
        (2, 4),
        (2, 7),
        (3, 5),
        (5, 1),
        (5, 6),
    ];
    for kind in expected {
        assert!(actions.contains_key(&kind), "no {kind:?} among {actions:?}");
    }
    // Candidates that are passed over, taken, marked, and taken with or without their turn.
    for verdict in [0, 101, 102, 103, 104] {
        assert!(
            actions.contains_key(&(6, verdict)),
            "no {verdict} among {actions:?}"
        );
    }
}
