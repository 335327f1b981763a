// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directed yields as yield buddies, and VEE'21's debooster where vCPUs are in cgroups of their own (ruling 30).

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::Duration,
};
use unspin_testbed::check;

use unspin_agent::Steerer;

use super::{
    host::{Cgroup, counter, still_there},
    vms::steer,
};

const VCPUS: usize = 4;
/// What is measured of each.
const TIME: Duration = Duration::from_millis(200);
/// With any threshold of 0 a candidate that is ahead at all is one for the debooster.
const PAPER: &str = "debooster=0ms";
const ANCESTOR: &str = "debooster-ancestor=0ms";
const PV_PAGE: &str = "yield-buddy=0ms";

/// A process of one VM whose vCPUs fight for a lock, until it is dropped.
struct FightingVm(Child);

impl FightingVm {
    fn start() -> FightingVm {
        let own = std::env::current_exe().expect("procfs is mounted");
        let mut command = Command::new(own);
        let child = command.args(["vm", "fighting"]).stdout(Stdio::null());
        FightingVm(child.spawn().expect("it is this very binary"))
    }

    /// The thread of each vCPU, once all have run.
    fn vcpu_threads(&self) -> Vec<String> {
        let folder = format!("/proc/{}/task", self.0.id());
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(5));
            let threads = fs::read_dir(&folder).expect("it runs").flatten();
            let names: Vec<String> = threads
                .filter(|thread| {
                    let name = fs::read_to_string(thread.path().join("comm"));
                    name.is_ok_and(|name| name.contains("vcpu"))
                })
                .map(|thread| thread.file_name().to_string_lossy().into_owned())
                .collect();
            if names.len() == VCPUS {
                return names;
            }
        }
        panic!("there are not {VCPUS} vCPUs");
    }
}

impl Drop for FightingVm {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it was killed");
    }
}

/// Pv pages, those followed, those that were not, and yielders that were deboosted, in that time under that policy.
fn under(steerer: &Steerer, policy: &str) -> [u64; 4] {
    let names = [
        "yield_buddies",
        "yield_buddy_followed",
        "yield_buddy_too_unfair",
        "deboosted",
    ];
    let all = || names.map(|name| counter(steerer, name));
    steerer
        .set_policies(policy.parse().expect("a policy"))
        .expect("at any time");
    let before = all();
    std::thread::sleep(TIME);
    let now = all();
    let grown = [0, 1, 2, 3].map(|at| now[at] - before[at]);
    println!("  {policy}: yield buddies, followed, too unfair, deboosted: {grown:?}");
    assert!(grown[0] > 50, "{policy}: {grown:?}");
    grown
}

check!(STEERER_LONG: the_papers_debooster_ends_at_cgroups);
/// Without cgroups both forms raise spinners and so are followed where the yield buddy alone is not; in libvirt's layout, a cgroup for
/// each vCPU, only the one that compares ancestors does.
pub fn the_papers_debooster_ends_at_cgroups() {
    let steerer = steer("refuse-yields", |_| ());
    let vm = FightingVm::start();
    let threads = vm.vcpu_threads();
    let alone = under(&steerer, PV_PAGE);
    assert_eq!(alone[3], 0, "a yield buddy alone raises nobody");
    // What is left: a third vCPU, not the spinner, is before the candidate.
    let fewer_are_unfair = |now: [u64; 4]| 3 * now[2] * alone[0] < 2 * alone[2] * now[0];
    for policy in [PAPER, ANCESTOR] {
        let now = under(&steerer, policy);
        assert!(now[3] > 0 && fewer_are_unfair(now), "{policy}");
    }
    let machine = Cgroup::new("machine", 100);
    machine.adopt(vm.0.id());
    let apart: Vec<Cgroup> = (0..VCPUS)
        .map(|vcpu| Cgroup::new(&format!("machine/vcpu{vcpu}"), 100))
        .collect();
    for (cgroup, thread) in apart.iter().zip(&threads) {
        fs::write(cgroup.folder().join("cgroup.type"), "threaded").expect("a threaded cgroup");
        fs::write(cgroup.folder().join("cgroup.threads"), thread).expect("it takes a thread");
    }
    let paper = under(&steerer, PAPER);
    assert_eq!(paper[3], 0, "it compares tasks of one cgroup only");
    let ancestor = under(&steerer, ANCESTOR);
    assert!(ancestor[3] > 0 && fewer_are_unfair(ancestor));
    still_there(&steerer);
    drop(vm);
    drop(apart);
}
