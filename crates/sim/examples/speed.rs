// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events per second of the model: `speed PCPUS VMS VCPUS_EACH LOCK MILLISECONDS`.
use std::time::Instant;

use unspin_scenario::Scenario;
use unspin_sim::{LabHost, World, costs::Costs, scheduler::RoundRobin, topology::Topology};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words[place].parse::<u32>().expect("a number");
    let text = format!(
        "seed = 1\nduration = \"{}ms\"\n[[vm]]\ncount = {}\nvcpus = {}\nlock = \"{}\"\nlocks = 1\nuser_work = \"1us\"\nkernel_work = \"500ns\"\nhold = \"300ns\"\n",
        words[4], words[1], words[2], words[3]
    );
    let scenario = Scenario::parse(&text, "speed.toml").expect("a scenario");
    let topology = Topology::new(4, 1, number(0) / 4, 1).expect("pCPUs");
    let mut world = World::new(
        &scenario,
        LabHost::new(topology),
        Costs::default(),
        Box::new(RoundRobin::new(topology.cpus(), 3_000_000)),
        (),
    )
    .expect("a world");
    let begin = Instant::now();
    world
        .run_until(u64::from(number(4)) * 1_000_000)
        .expect("it runs");
    let seconds = begin.elapsed().as_secs_f64();
    let acquisitions: u64 = world
        .vcpus()
        .map(|(.., statistics)| statistics.acquisitions)
        .sum();
    let exits: u64 = world
        .vcpus()
        .map(|(.., statistics)| statistics.pause_exits)
        .sum();
    println!(
        "{} events, {acquisitions} acquisitions, {exits} pause exits in {seconds:.3} s: {:.2} M events/s",
        world.happenings(),
        world.happenings() as f64 / seconds / 1e6
    );
}
