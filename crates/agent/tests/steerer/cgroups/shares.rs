// SPDX-License-Identifier: MIT OR Apache-2.0
//! VMs in nested cgroups get what their weights say, over half a minute, however they yield.

use std::{fs, time::Duration};
use unspin_testbed::check;

use super::super::{
    host::{Cgroup, are_close, counter, still_there},
    hostile::attaching::Killed,
    vms::steer,
};

/// CPU time of a cgroup and all below it, s.
pub fn cpu_time(cgroup: &Cgroup) -> f64 {
    let text = fs::read_to_string(cgroup.folder().join("cpu.stat")).expect("the cpu controller");
    let us = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec "));
    us.and_then(|us| us.parse::<f64>().ok()).expect("a number") / 1e6
}

check!(STEERER_LONG: vms_keep_to_their_weights);
/// 30 s for each of five seeds: a VM that yields without end in outer/light, one without shared locks in outer/heavy,
/// another one that yields beside them.
pub fn vms_keep_to_their_weights() {
    let steerer = steer("loan,kernel-exit", |_| ());
    for seed in 1..=5 {
        let _outer = Cgroup::new("outer", 300);
        let groups = [
            Cgroup::new("outer/light", 100),
            Cgroup::new("outer/heavy", 200),
            Cgroup::new("other", 100),
        ];
        let yields = counter(&steerer, "directed");
        let vms = ["fighting", "peaceful", "fighting"].map(|kind| Killed::vm(kind, seed));
        for (vm, group) in vms.iter().zip(&groups) {
            group.adopt(vm.id());
        }
        // Boots, and the groups' first slices.
        std::thread::sleep(Duration::from_millis(500));
        let before: Vec<f64> = groups.iter().map(cpu_time).collect();
        std::thread::sleep(Duration::from_secs(30));
        let now = groups.iter().map(cpu_time);
        let ran: Vec<f64> = now.zip(before).map(|(now, then)| now - then).collect();
        still_there(&steerer);
        println!(
            "  seed {seed}: {} yields",
            counter(&steerer, "directed") - yields
        );
        are_close(&ran, &[25.0, 50.0, 25.0]);
    }
}
