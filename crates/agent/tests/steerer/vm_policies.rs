// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of one VM beside those for everyone: whom they touch, that they can be changed while VMs run, and that they end with
//! their process.

use std::{
    fs,
    time::{Duration, Instant},
};
use unspin_testbed::check;

use unspin_agent::{SteerError, Steerer, reset_running_vm, running_policies, set_running_vm};
use unspin_policy::steering::Policies;

use super::{host::still_there, hostile::attaching::Killed, vms::steer};

fn policies(text: &str) -> Policies {
    text.parse().expect("policies")
}

/// Loans and grants that the VM's guest was told of.
fn borrowed(steerer: &Steerer, vm: &Killed) -> u64 {
    let audit = steerer.guest_audit().expect("the kernel tells");
    let of = audit.iter().find(|(process, _)| *process == vm.id());
    of.map_or(0, |(_, of)| of.borrowed)
}

/// The same of several in a while, which begins when the last change has reached each vCPU: a slice later.
fn borrowed_meanwhile<const N: usize>(steerer: &Steerer, vms: [&Killed; N]) -> [u64; N] {
    std::thread::sleep(Duration::from_millis(60));
    let before = vms.map(|vm| borrowed(steerer, vm));
    std::thread::sleep(Duration::from_millis(400));
    let after = vms.map(|vm| borrowed(steerer, vm));
    std::array::from_fn(|at| after[at] - before[at])
}

/// CPU time of all threads of a process.
fn cpu_time(vm: &Killed) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{}/task", vm.id())).expect("it runs");
    let ns = |task: std::io::Result<fs::DirEntry>| -> u64 {
        let file = task.expect("a thread").path().join("schedstat");
        let text = fs::read_to_string(file).expect("it runs");
        let first = text.split_whitespace().next().expect("numbers");
        first.parse().expect("ns")
    };
    Duration::from_nanos(tasks.map(ns).sum())
}

/// Until the VM's vCPUs are known.
fn wait_for(steerer: &Steerer, vm: &Killed) {
    let began = Instant::now();
    while !steerer
        .guest_audit()
        .expect("the kernel tells")
        .iter()
        .any(|(process, of)| *process == vm.id() && of.page_failures == 0)
    {
        assert!(began.elapsed() < Duration::from_secs(10), "no vCPU runs");
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
}

check!(GUESTS: each_vm_has_its_own_policies);
/// Two VMs with convoys: whichever has loans of its own lends, the other does not, and both keep their half.
pub fn each_vm_has_its_own_policies() {
    let nobody = set_running_vm(std::process::id(), policies("loan"));
    assert!(matches!(nobody, Err(SteerError::NotRunning)), "{nobody:?}");
    let vms = [Killed::start(), Killed::vm("fighting", 8)];
    let [first, second] = [&vms[0], &vms[1]];
    let lends = vec![(first.id(), policies("loan"))];
    let steerer = steer("refuse-yields", |options| options.vm_policies = lends);
    wait_for(&steerer, second);
    let before = [cpu_time(first), cpu_time(second)];

    let [a, b] = borrowed_meanwhile(&steerer, [first, second]);
    println!("  the first has loans: {a} and {b}");
    assert!(a > 10 && b == 0, "{a} {b}");

    // Any process may say so.
    set_running_vm(second.id(), policies("loan")).expect("at any time");
    assert!(reset_running_vm(first.id()).expect("at any time"));
    assert!(!reset_running_vm(first.id()).expect("at any time"));
    let [a, b] = borrowed_meanwhile(&steerer, [first, second]);
    println!("  the second: {a} and {b}");
    assert!(a == 0 && b > 10, "{a} {b}");

    // Those for everyone leave it alone.
    steerer.set_policies(policies("loan")).expect("at any time");
    steerer
        .set_vm_policies(second.id(), Some(Policies::REFUSE_YIELDS))
        .expect("at any time");
    let [a, b] = borrowed_meanwhile(&steerer, [first, second]);
    println!("  everyone but the second: {a} and {b}");
    assert!(a > 10 && b == 0, "{a} {b}");

    let used = [cpu_time(first) - before[0], cpu_time(second) - before[1]];
    let share = used[0].as_secs_f64() / (used[0] + used[1]).as_secs_f64();
    println!("  the first had {share:.4} of the CPU time");
    assert!((0.49..0.51).contains(&share), "{share}");
    still_there(&steerer);

    let rows = running_policies().expect("at any time");
    let said: Vec<_> = rows
        .iter()
        .map(|row| (row.process, row.policy.as_str(), row.chosen_by))
        .collect();
    assert_eq!(
        said,
        [
            (None, "loan", None),
            (Some(second.id()), "refuse-yields", Some("policy set --vm"))
        ]
    );
    assert!(
        rows[1].since_ns.is_some_and(|ns| ns > 400_000_000),
        "{rows:?}"
    );
}

check!(STEERER_LONG: a_vm_that_is_gone_leaves_no_policies);
/// Policies of a VM end with its process, those of none cannot be set, and what is not loaded is refused.
pub fn a_vm_that_is_gone_leaves_no_policies() {
    let vm = Killed::start();
    let steerer = steer("refuse-yields", |_| ());
    wait_for(&steerer, &vm);
    let set = |process, text| steerer.set_vm_policies(process, Some(policies(text)));
    set(vm.id(), "loan").expect("it is there");
    assert_eq!(steerer.vm_policies().expect("rows").len(), 2);
    let refused = set(vm.id(), "candidates=strict");
    assert!(
        matches!(refused, Err(SteerError::NoCandidates)),
        "{refused:?}"
    );
    let process = vm.id();
    drop(vm);
    // Another VM gets the number, and nothing else of it.
    fs::write("/proc/sys/kernel/ns_last_pid", (process - 1).to_string()).expect("as root");
    let next = Killed::start();
    assert_eq!(next.id(), process, "somebody else was faster");
    std::thread::sleep(Duration::from_millis(500));
    let [lent] = borrowed_meanwhile(&steerer, [&next]);
    assert_eq!(lent, 0);
    assert_eq!(steerer.vm_policies().expect("rows").len(), 1);
    drop(next);
    let refused = set(process, "loan");
    assert!(
        matches!(refused, Err(SteerError::NoProcess { .. })),
        "{refused:?}"
    );
    still_there(&steerer);
}

check!(STEERER_LONG: a_vm_is_touched_for_its_own_policies_alone);
/// `--vm` with a policy touches that VM where policies touch no other, and brings the programs that its policies need.
pub fn a_vm_is_touched_for_its_own_policies_alone() {
    let vms = [Killed::start(), Killed::vm("fighting", 8)];
    let chooses = vec![(vms[0].id(), policies("loan,candidates=strict"))];
    let steerer = steer("loan", |options| {
        options.vm_policies = chooses;
        options.processes = vec![1];
    });
    wait_for(&steerer, &vms[1]);
    let [a, b] = borrowed_meanwhile(&steerer, [&vms[0], &vms[1]]);
    println!("  {a} and {b}");
    assert!(a > 10 && b == 0, "{a} {b}");
    still_there(&steerer);
}
