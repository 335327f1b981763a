// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of crates/lab/src/engine/timers.rs in NeXosim 0.3, for compilers before 1.88. Usage: timers TIMERS HORIZON_NS SEED
//! Prints events, their checksum and seconds. One thread, as in main_1.rs.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use nexosim::{
    model::{Context, InitializedModel, Model},
    simulation::{Mailbox, SimInit},
    time::MonotonicTime,
};

const DELAY_BITS: u32 = 20;
static EVENTS: AtomicU64 = AtomicU64::new(0);
static CHECKSUM: AtomicU64 = AtomicU64::new(0);

struct Timer {
    state: u64,
    now_ns: u64,
}

impl Model for Timer {
    async fn init(mut self, context: &mut Context<Self>) -> InitializedModel<Self> {
        self.start(context);
        self.into()
    }
}

impl Timer {
    fn expire(&mut self, _: (), context: &mut Context<Self>) {
        // Plain, not atomic, additions: there is one thread.
        EVENTS.store(EVENTS.load(Relaxed) + 1, Relaxed);
        CHECKSUM.store(CHECKSUM.load(Relaxed).wrapping_add(self.now_ns), Relaxed);
        self.start(context);
    }

    fn start(&mut self, context: &mut Context<Self>) {
        let delay_ns = (draw(&mut self.state) >> (64 - DELAY_BITS)) + 1;
        self.now_ns += delay_ns;
        let delay = Duration::from_nanos(delay_ns);
        context
            .schedule_event(delay, Self::expire, ())
            .expect("it is later");
    }
}

fn draw(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn main() {
    let words: Vec<u64> = std::env::args()
        .skip(1)
        .map(|word| word.parse().expect("a number"))
        .collect();
    let [timers, horizon_ns, seed] = words[..] else {
        panic!("three numbers")
    };
    let mut bench = SimInit::with_num_threads(1);
    for number in 0..timers {
        let mut state = seed ^ number << 32;
        draw(&mut state);
        let state = draw(&mut state).wrapping_add(number);
        bench = bench.add_model(
            Timer { state, now_ns: 0 },
            Mailbox::new(),
            &format!("timer{number}"),
        );
    }
    let (mut simulation, _) = bench.init(MonotonicTime::EPOCH).expect("a bench");
    let begin = Instant::now();
    simulation
        .step_until(Duration::from_nanos(horizon_ns))
        .expect("a run");
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "{} {} {seconds}",
        EVENTS.load(Relaxed),
        CHECKSUM.load(Relaxed)
    );
}
