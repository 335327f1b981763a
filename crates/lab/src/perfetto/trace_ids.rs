// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tasks, VMs and locks of a trace, and their process and thread numbers.

use crate::{
    LabHost,
    ids::{Lock, Task, Vm},
};
use unspin_scenario::{LockSharing, Scenario};

/// Everything that appears in a trace. Indices are those of the ids.
#[derive(Clone, Debug, Default)]
pub struct TraceIds {
    /// How many pCPUs.
    pub cpus: u32,
    /// Names of the VMs.
    pub vms: Vec<String>,
    /// The tasks.
    pub tasks: Vec<TaskEntry>,
    /// The locks.
    pub locks: Vec<LockEntry>,
}

/// A task.
#[derive(Clone, Debug)]
pub struct TaskEntry {
    /// Its name, such as "vm0/vcpu1".
    pub name: String,
    /// The VM of this vCPU; `None`: a thread of the host.
    pub vm: Option<Vm>,
}

/// A lock.
#[derive(Clone, Debug)]
pub struct LockEntry {
    /// Its name, such as "vm0/lock3".
    pub name: String,
    /// Its VM.
    pub vm: Option<Vm>,
}

impl TraceIds {
    /// All of that scenario on that host, numbered as by [`World::new`](crate::World::new).
    pub fn of(scenario: &Scenario, host: &LabHost) -> TraceIds {
        let mut trace_ids = TraceIds {
            cpus: host.topology.cpus(),
            ..TraceIds::default()
        };
        let vms = &scenario.vms;
        for vm in vms.iter().flat_map(|vm| (0..vm.count).map(move |_| vm)) {
            let number = trace_ids.vms.len();
            let of = Some(Vm(number as u32));
            let locks = match vm.locks {
                LockSharing::Shared(locks) if locks != 0 => locks,
                _ => vm.vcpus,
            };
            trace_ids.tasks.extend((0..vm.vcpus).map(|vcpu| TaskEntry {
                name: format!("vm{number}/vcpu{vcpu}"),
                vm: of,
            }));
            trace_ids.locks.extend((0..locks).map(|lock| LockEntry {
                name: format!("vm{number}/lock{lock}"),
                vm: of,
            }));
            trace_ids.vms.push(format!("vm{number}"));
        }
        trace_ids
            .tasks
            .extend((0..host.cpu_hogs).map(|cpu_hog| TaskEntry {
                name: format!("cpu_hog{cpu_hog}"),
                vm: None,
            }));
        trace_ids.tasks.extend(noise_threads(host));
        trace_ids
    }

    /// The process number of a VM, from 1 on; the number after the last VM's is the host's. 0 is the kernel's idle
    /// task.
    pub(crate) fn process(&self, vm: Option<Vm>) -> i32 {
        number(vm.map_or(self.vms.len(), Vm::index) + 1)
    }

    /// The thread number of a task: above all process numbers, so that no thread is taken for a process's main thread.
    pub(crate) fn thread(&self, task: Task) -> i32 {
        number(self.vms.len() + 2 + task.index())
    }

    /// # Panics
    /// If there is no such task, which is a mistake of the caller; likewise in all functions below.
    pub(crate) fn task(&self, task: Task) -> &TaskEntry {
        &self.tasks[task.index()]
    }

    pub(crate) fn lock(&self, lock: Lock) -> &LockEntry {
        &self.locks[lock.index()]
    }

    /// Process numbers and names, the host last, and only if it has tasks of its own.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (i32, &str)> {
        let host = self.tasks.iter().any(|task| task.vm.is_none());
        let names = self.vms.iter().map(String::as_str);
        let names = names.chain(host.then_some("host"));
        names
            .enumerate()
            .map(|(index, name)| (number(index + 1), name))
    }

    /// All tasks in order.
    pub(crate) fn all_tasks(&self) -> impl Iterator<Item = (Task, &TaskEntry)> {
        self.tasks
            .iter()
            .enumerate()
            .map(|(index, entry)| (Task(index as u32), entry))
    }
}

/// The threads of the host that are no load, in the world's order, by the kernel's names for its workers: those of each pCPU,
/// then those of no pCPU.
fn noise_threads(host: &LabHost) -> Vec<TaskEntry> {
    let Some(model) = host.noise.as_ref().filter(|model| model.threads_are_tasks) else {
        return Vec::new();
    };
    let named = |name: &'static str| {
        (0..host.topology.cpus()).map(move |number| TaskEntry {
            name: format!("kworker/{name}{number}"),
            vm: None,
        })
    };
    let bound = model.rates.bound_threads.iter().flat_map(|_| named(""));
    let unbound = model.rates.unbound_threads.iter();
    bound.chain(unbound.flat_map(|_| named("u"))).collect()
}

/// Perfetto's process and thread numbers are i32; the ids are u32, but a model has far fewer.
fn number(index: usize) -> i32 {
    i32::try_from(index).unwrap_or(i32::MAX)
}
