// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stock, none and the policies side by side on one convoy: `columns PCPUS VCPUS LOCK PAUSE_EVERY HINTS MILLISECONDS`.
use unspin_scenario::Scenario;
use unspin_sim::{LabHost, World, costs::Costs, scheduler::from_name, topology::Topology};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize| words[place].parse::<u32>().expect("a number");
    let run = |vcpus: u32, locks: &str, scheduler: &str, policies: &str| {
        let text = format!(
            "seed = 1\nduration = \"{}ms\"\n[[vm]]\nvcpus = {vcpus}\nlock = \"{}\"\nlocks = {locks}\nuser_work = \"3us\"\nkernel_work = \"100ns\"\nhold = \"300ns\"\npause_every_turns = {}\nhints = {}\n",
            words[5], words[2], words[3], words[4]
        );
        let scenario = Scenario::parse(&text, "c.toml").expect("a scenario");
        let topology = Topology::flat(number(0)).expect("pCPUs");
        let mut host = LabHost::new(topology);
        host.steering.policies = policies.parse().expect("policies");
        let mut world = World::new(
            &scenario,
            host,
            Costs::default(),
            from_name(scheduler, topology, 1).expect("a name"),
            (),
        )
        .expect("a world");
        world
            .run_until(u64::from(number(5)) * 1_000_000)
            .expect("it runs");
        let mut sum = unspin_sim::VcpuStatistics::default();
        for (.., seen) in world.vcpus() {
            sum.operations += seen.operations;
            sum.pause_exits += seen.pause_exits;
            sum.yields += seen.yields;
            sum.loans += seen.loans;
            sum.given_back += seen.given_back;
            sum.grants += seen.grants;
        }
        println!(
            "{scheduler:12} {policies:22} {:9} operations, {} exits, {} yields, {} loans, {} given back, {} grants",
            sum.operations, sum.pause_exits, sum.yields, sum.loans, sum.given_back, sum.grants
        );
    };
    run(number(0), "\"private\"", "eevdf-7.2", "none");
    for name in [
        "cfs-3.5",
        "cfs-4.13",
        "cfs-5.6",
        "eevdf-6.6",
        "eevdf-6.12",
        "eevdf-7.2",
        "credit",
        "gang",
    ] {
        run(number(1), "1", name, "none");
    }
    for policies in [
        "none",
        "directed-yield",
        "loan",
        "loan-cpl",
        "kernel-exit",
        "loan,kernel-exit",
        "loan-cpl,kernel-exit",
        "helping",
    ] {
        run(number(1), "1", "steer", policies);
    }
}
