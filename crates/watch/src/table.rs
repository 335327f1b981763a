// SPDX-License-Identifier: MIT OR Apache-2.0
//! The VMs of a host over time: counters that never fall, names, and what the last bursts said. A VM that is gone is forgotten.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    path::Path,
};

use unspin_agent::{WatchCounters, WatchedHost, WatchedVm};
use unspin_analysis::explain::cause::Cause;
use unspin_vms::Look;

use crate::{
    burst::{Burst, Instead, VmBurst},
    view::{
        BlameView, HostView, RecentView, SampledView, VIEW_FORMAT, VcpuView, VmView, WatchHealth,
    },
};

/// Bursts that are "the last ones".
const RECENT_BURSTS: usize = 8;
/// Whom a VM's spin time is blamed on, of the last bursts.
const BLAMES_MAX: usize = 8;

/// Not known where returns of yield_to() are not seen.
const YIELDS: [&str; 2] = ["yields_tried", "yields_succeeded"];
/// Not known where exits are not told apart.
const EXITS: [&str; 6] = [
    "halted_ns",
    "spin_ns",
    "handling_ns",
    "ple_exits",
    "ple_exits_user",
    "slices_lost",
];

/// What is known of the host's VMs.
#[derive(Default)]
pub(crate) struct Table {
    time_ns: u64,
    vms: BTreeMap<u64, Known>,
    sees_yields: bool,
    sees_exits: bool,
    /// What makes the figures less than they could be.
    pub(crate) limits: Vec<String>,
    /// Counted here, not by the kernel.
    pub(crate) health: WatchHealth,
    /// Why nobody is watching.
    pub(crate) blind: Option<String>,
}

#[derive(Default)]
struct Known {
    /// As its VMM names it.
    name: Option<String>,
    process: Option<u32>,
    total: WatchCounters,
    vcpus: BTreeMap<(u32, u32), WatchCounters>,
    sampled: SampledView,
    recent: VecDeque<VmBurst>,
}

impl Table {
    /// What was read just now. VMs that are not in it are gone.
    pub(crate) fn read(&mut self, host: &WatchedHost) {
        self.time_ns = host.time_ns;
        self.sees_yields = host.sees_yields;
        self.sees_exits = host.sees_exits;
        self.health.unseen_exits = host.unseen_exits;
        let mut before = std::mem::take(&mut self.vms);
        for vm in &host.vms {
            let mut known = before.remove(&vm.number).unwrap_or_default();
            known.read(vm);
            self.vms.insert(vm.number, known);
        }
    }

    /// Nobody is watching any more: with the counters the VMs are forgotten.
    pub(crate) fn forget(&mut self) {
        self.vms.clear();
    }

    /// Threads of vCPUs.
    pub(crate) fn vcpus(&self) -> usize {
        self.vms.values().map(|vm| vm.vcpus.len()).sum()
    }

    /// CPU time of all VMs and what of it was wasted by spinning; ns.
    pub(crate) fn run_and_waste_ns(&self) -> (u64, u64) {
        let sum = |of: fn(&WatchCounters) -> u64| self.vms.values().map(|vm| of(&vm.total)).sum();
        (sum(|total| total.run_ns), sum(WatchCounters::waste_ns))
    }

    /// What a burst has shown. VMs that have gone meanwhile are left out.
    pub(crate) fn add(&mut self, burst: Burst) {
        self.health.bursts += 1;
        self.health.burst_ns += burst.lasted_ns;
        self.health.lost_events += burst.lost_events;
        let by_thread = self.by_thread();
        for vm in burst.vms {
            let number = vm.threads.iter().find_map(|thread| by_thread.get(thread));
            let Some(known) = number.and_then(|number| self.vms.get_mut(number)) else {
                continue;
            };
            known.sampled.add(&vm.sampled);
            if known.recent.len() == RECENT_BURSTS {
                known.recent.pop_front();
            }
            known.recent.push_back(vm);
        }
    }

    fn by_thread(&self) -> HashMap<u32, u64> {
        let vms = self.vms.iter();
        let threads = vms.flat_map(|(number, vm)| {
            let threads = vm.vcpus.keys().map(|(_, thread)| *thread);
            threads.map(|thread| (thread, *number))
        });
        threads.collect()
    }

    /// All of it.
    pub(crate) fn view(&self) -> HostView {
        let names = self.names();
        let by_thread = self.by_thread();
        let other = |thread: u32| Some(names.get(by_thread.get(&thread)?)?.clone());
        HostView {
            format: VIEW_FORMAT,
            time_ns: self.time_ns,
            blind: self.blind.clone(),
            unknown: self.unknown(),
            limits: self.limits.clone(),
            vms: self
                .vms
                .iter()
                .map(|(number, vm)| VmView {
                    number: *number,
                    name: names[number].clone(),
                    process: vm.process,
                    total: vm.total,
                    vcpus: vm.vcpu_views(),
                    sampled: vm.sampled.clone(),
                    recent: recent(&vm.recent, &other),
                })
                .collect(),
            health: self.health.clone(),
            ..HostView::default()
        }
    }

    fn unknown(&self) -> Vec<String> {
        let yields = if self.sees_yields { &[][..] } else { &YIELDS };
        let exits = if self.sees_exits { &[][..] } else { &EXITS };
        let unknown = yields.iter().chain(exits);
        unknown.map(ToString::to_string).collect()
    }

    fn names(&self) -> BTreeMap<u64, String> {
        let vms = self.vms.iter();
        unique(vms.map(|(number, vm)| (*number, vm.name.clone(), vm.process)))
    }
}

/// A name for each VM by its number, what it is called and its process: `vm7` where it is called nothing. Of several that are
/// called the same all but the first have their process behind it (or number, if that is not enough): the first keeps its name,
/// since a series has it.
pub(crate) fn unique(
    vms: impl Iterator<Item = (u64, Option<String>, Option<u32>)>,
) -> BTreeMap<u64, String> {
    let mut taken = std::collections::BTreeSet::new();
    let mut names = BTreeMap::new();
    for (number, called, mut process) in vms {
        let mut name = called.unwrap_or_else(|| format!("vm{number}"));
        while !taken.insert(name.clone()) {
            name = match process.take() {
                Some(process) => format!("{name} ({process})"),
                None => format!("{name} (vm{number})"),
            };
        }
        names.insert(number, name);
    }
    names
}

impl Known {
    fn read(&mut self, vm: &WatchedVm) {
        self.total = vm.total.at_least(&self.total);
        let before = std::mem::take(&mut self.vcpus);
        for vcpu in &vm.vcpus {
            let key = (vcpu.vcpu, vcpu.thread);
            let earlier = before.get(&key).copied().unwrap_or_default();
            self.vcpus.insert(key, vcpu.counters.at_least(&earlier));
        }
        let Some(process) = vm.process else { return };
        if self.process != Some(process) {
            self.process = Some(process);
            self.name = match unspin_vms::look(Path::new("/proc"), process) {
                Look::Found(found) => found.identity.called(),
                Look::Hidden | Look::Ended => None,
            };
        }
    }

    fn vcpu_views(&self) -> Vec<VcpuView> {
        let vcpus = self.vcpus.iter();
        vcpus
            .map(|(&(vcpu, thread), &counters)| VcpuView {
                vcpu,
                thread,
                counters,
            })
            .collect()
    }
}

/// The last bursts together; `other` names the VM of a thread.
pub(crate) fn recent<'a>(
    bursts: impl IntoIterator<Item = &'a VmBurst>,
    other: &dyn Fn(u32) -> Option<String>,
) -> RecentView {
    let mut recent = RecentView::default();
    let mut blames: BTreeMap<(Cause, Option<u16>, Option<String>), u64> = BTreeMap::new();
    for burst in bursts {
        recent.bursts += 1;
        recent.sampled.add(&burst.sampled);
        for (cause, vcpu, instead, ns) in &burst.blame {
            let key = (*cause, *vcpu, words(instead, other));
            *blames.entry(key).or_default() += ns;
        }
    }
    let mut largest: Vec<_> = blames.into_iter().collect();
    largest.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let largest = largest.into_iter().take(BLAMES_MAX);
    recent.blame = largest
        .map(|((cause, vcpu, instead), spin_ns)| BlameView {
            cause: cause.name().to_owned(),
            vcpu,
            instead,
            spin_ns,
        })
        .collect();
    recent
}

fn words(instead: &Instead, other: &dyn Fn(u32) -> Option<String>) -> Option<String> {
    match instead {
        Instead::Own(vcpu) => Some(format!("own vCPU {vcpu}")),
        Instead::OtherVm(thread) => other(*thread),
        Instead::Named(who) => Some(who.clone()),
        Instead::Nobody => Some("nobody (idle)".to_owned()),
        Instead::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use unspin_agent::WatchedVcpu;

    use super::*;

    fn counters(run_ns: u64) -> WatchCounters {
        WatchCounters {
            run_ns,
            ..WatchCounters::default()
        }
    }

    fn vm(number: u64, run_ns: u64) -> WatchedVm {
        let vcpu = WatchedVcpu {
            vcpu: 0,
            thread: 4_000_000 + number as u32,
            since_ns: 1,
            counters: counters(run_ns),
        };
        WatchedVm {
            number,
            process: Some(4_000_000),
            total: counters(run_ns),
            vcpus: vec![vcpu],
        }
    }

    fn host(time_ns: u64, vms: Vec<WatchedVm>) -> WatchedHost {
        WatchedHost {
            time_ns,
            vms,
            ..WatchedHost::default()
        }
    }

    #[test]
    fn counters_never_fall_and_a_vm_that_is_gone_leaves() {
        let mut table = Table::default();
        table.read(&host(1, vec![vm(1, 50), vm(2, 7)]));
        table.read(&host(2, vec![vm(1, 40)]));
        let view = table.view();
        assert_eq!(view.vms.len(), 1);
        assert_eq!(
            (view.vms[0].number, view.vms[0].total.run_ns),
            (1, 50),
            "{view:?}"
        );
        assert_eq!(view.vms[0].vcpus[0].counters.run_ns, 50);
        assert_eq!(view.time_ns, 2);
        assert!(!view.knows("yields_tried") && view.knows("run_ns"));
    }

    #[test]
    fn names_are_unique_whatever_vms_are_called() {
        let called = |name: &str| Some(name.to_owned());
        let names = unique(
            [
                (1, called("web"), Some(10)),
                (2, called("web (30)"), Some(20)),
                (3, called("web"), Some(30)),
                (4, None, Some(40)),
                (5, called("vm4"), None),
                (6, called("web"), Some(60)),
            ]
            .into_iter(),
        );
        let names: Vec<&str> = names.values().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "web",
                "web (30)",
                "web (30) (vm3)",
                "vm4",
                "vm4 (vm5)",
                "web (60)"
            ]
        );
    }

    #[test]
    fn bursts_find_their_vm_by_its_threads_and_the_oldest_go() {
        let mut table = Table::default();
        table.read(&host(1, vec![vm(1, 50), vm(2, 7)]));
        let burst = |cpu_ns| {
            let of = |number: u32, ns| VmBurst {
                threads: vec![4_000_000 + number],
                sampled: SampledView {
                    cpu_ns,
                    spin_ns: [("contention".to_owned(), ns)].into(),
                },
                blame: vec![
                    (
                        Cause::HolderPreempted,
                        Some(1),
                        Instead::OtherVm(4_000_002),
                        ns,
                    ),
                    (Cause::Contention, None, Instead::Unknown, 1),
                ],
            };
            Burst {
                lasted_ns: 10,
                lost_events: 1,
                vms: vec![of(1, 30), of(9, 1)],
            }
        };
        for _ in 0..RECENT_BURSTS + 2 {
            table.add(burst(100));
        }
        let view = table.view();
        let (first, second) = (&view.vms[0], &view.vms[1]);
        assert_eq!(first.sampled.cpu_ns, 1_000);
        assert_eq!(first.recent.bursts, RECENT_BURSTS as u64);
        assert_eq!(first.recent.sampled.spin_ns["contention"], 240);
        let largest = &first.recent.blame[0];
        assert_eq!(largest.instead.as_deref(), Some("vm2"));
        assert_eq!((largest.vcpu, largest.spin_ns), (Some(1), 240));
        assert_eq!(second.recent.bursts, 0);
        assert_eq!((view.health.bursts, view.health.lost_events), (10, 10));
    }
}
