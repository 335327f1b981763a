// SPDX-License-Identifier: MIT OR Apache-2.0
//! What happens on a host that is steered, for people.

use unspin_vms::in_words;

use super::Notice;
use crate::{ChosenPolicies, DeadlineServer, MovedVm, SliceSource};

/// What happens meanwhile, a line each; none: it is said elsewhere.
pub fn words(chosen: &ChosenPolicies, notice: &Notice) -> Vec<String> {
    vec![match notice {
        Notice::Thresholds => {
            "no module that sets windows: guests with a pv page are told how long to spin (README, Steering)".to_owned()
        }
        Notice::WindowsAlone => {
            format!("setting windows by policy {chosen}; the host's scheduler stays")
        }
        Notice::Attached { slice_ns, source } => {
            let source = match source {
                SliceSource::DebugFs => "the kernel's base_slice_ns",
                SliceSource::Rule => "the kernel's default by its rule: debugfs is not to be read",
            };
            format!(
                "steering with policy {chosen}; slice {} us ({source}){}",
                *slice_ns as f64 / 1e3,
                if chosen.policies.slice_ns() == 0 {
                    ""
                } else {
                    ", but for the vCPUs that the policy `slice` is for"
                }
            )
        }
        Notice::OnlyVms {
            server,
            left_behind,
        } => return only_vms(*server, *left_behind),
        Notice::Moved(vms) => moved(vms),
        Notice::DryRun { slice_ns } => format!(
            "dry run of policy {chosen}: nothing is attached to the scheduler; a slice counts as {} us",
            *slice_ns as f64 / 1e3
        ),
        Notice::Dishonest { process, says } => format!(
            "warning: the guest of {} {}; its claims buy it no CPU time, and nobody else loses any",
            in_words(*process),
            says.join("; it ")
        ),
        Notice::NoKvm => {
            "KVM is not loaded: there are no VMs to choose for, and those that start later are not seen; load it and start steer again".to_owned()
        }
        Notice::Chosen(_) | Notice::TakenBack(_) => return Vec::new(),
    }]
}

fn only_vms(server: DeadlineServer, left_behind: usize) -> Vec<String> {
    let kept = match server {
        DeadlineServer::Missing => "nothing: this kernel has no deadline server for sched_ext (Linux 7.0 has), and where one of them does not run for 30 s it takes its own scheduler back".to_owned(),
        DeadlineServer::Keeps(Some(0.0)) => "nothing: the kernel's deadline server for sched_ext is switched off (/sys/kernel/debug/sched/ext_server)".to_owned(),
        DeadlineServer::Keeps(percent) => format!("{} % of each CPU", percent.unwrap_or(5.0)),
    };
    let mut lines = vec![format!(
        "only VMs; everything else goes before them, and beside tasks that never sleep they get {kept}"
    )];
    if left_behind > 0 {
        lines.push(format!(
            "{left_behind} threads of VMs had SCHED_EXT from a steer that was killed; they had their policy set back first"
        ));
    }
    lines
}

/// What is under the scheduler where only VMs are.
fn moved(vms: &[MovedVm]) -> String {
    const SHOWN: usize = 5;
    let sum = |of: fn(&MovedVm) -> u64| vms.iter().map(of).sum::<u64>();
    let (vcpus, others) = (sum(|vm| vm.vcpus), sum(|vm| vm.others));
    let with_page = match others {
        0 => String::new(),
        others => format!(" and {others} threads with a page"),
    };
    let last = vms[vms.len().saturating_sub(SHOWN)..].iter();
    let last: Vec<String> = last
        .map(|vm| format!("{} ({}): {}", vm.name, vm.process, vm.vcpus + vm.others))
        .collect();
    let more = match vms.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!("{more} more, "),
    };
    let left = [
        (sum(|vm| vm.real_time), "real-time threads left as they are"),
        (
            sum(|vm| vm.refused),
            "threads that the kernel did not let be moved",
        ),
    ];
    let left: String = left
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("; {count} {what}"))
        .collect();
    format!(
        "{vcpus} vCPU threads{with_page} of {} VMs moved so far: {more}{}{left}",
        vms.len(),
        last.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(process: u32, vcpus: u64) -> MovedVm {
        MovedVm {
            process: process.to_string(),
            name: "qemu".into(),
            vcpus,
            ..MovedVm::default()
        }
    }

    #[test]
    fn what_was_moved_is_said_in_a_line() {
        assert_eq!(
            moved(&[vm(7, 2), vm(9, 4)]),
            "6 vCPU threads of 2 VMs moved so far: qemu (7): 2, qemu (9): 4"
        );
        let mut many: Vec<MovedVm> = (1..=7).map(|process| vm(process, 1)).collect();
        many[6].others = 1;
        many[6].real_time = 3;
        let said = moved(&many);
        assert!(
            said.starts_with("7 vCPU threads and 1 threads with a page of 7 VMs moved so far: 2 more, qemu (3): 1, "),
            "{said}"
        );
        assert!(
            said.ends_with("qemu (7): 2; 3 real-time threads left as they are"),
            "{said}"
        );
    }
}
