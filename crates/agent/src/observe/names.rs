// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who the VMs and threads of events are: read from /proc when a thread id is first seen (VMs: crates/vms).
//!
//! Ids are reused and names change, so ids that go on being seen are looked up again every second, and every incarnation
//! is kept. A thread that has ended before anybody looked has no name.

use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use unspin_events::{
    Event, What,
    facts::{TaskFacts, VcpuFacts, VmFacts},
    vm_identity::{NAME_LENGTH_MAX, printable},
};
use unspin_vms::Look;

use crate::{id_map::IdMap, observe::guest_features};

/// Incarnations that are kept; each takes some 100 bytes.
const TASKS_MAX: usize = 65_536;
/// Threads of vCPUs that are kept.
const VCPUS_MAX: usize = 65_536;
/// Ids that may wait to be looked up.
const UNKNOWN_MAX: usize = 16_384;

/// Names of VMs and threads, growing with the events.
pub struct Names {
    proc: PathBuf,
    tasks: Vec<TaskFacts>,
    /// The latest incarnation, by thread id.
    latest: IdMap<usize>,
    unknown: IdMap<u64>,
    /// Threads to look up again, each once: `is_seen_again` of its latest incarnation.
    seen_again: Vec<u32>,
    /// By place in `tasks`.
    is_seen_again: Vec<bool>,
    vms: Vec<VmFacts>,
    vm_numbers: IdMap<usize>,
    /// Places in `vms` and in its `vcpus`, by thread; the VM and vCPU it served then.
    vcpus: IdMap<(u32, u16, usize, usize)>,
    vcpu_count: usize,
    left_out: u64,
    /// When a task was last seen, as far as that was looked at; by place in `tasks`.
    last_seen_ns: Vec<u64>,
    changes: u64,
}

impl Default for Names {
    fn default() -> Names {
        Names::below(Path::new("/proc"))
    }
}

impl Names {
    fn below(proc: &Path) -> Names {
        Names {
            proc: proc.to_owned(),
            tasks: Vec::new(),
            latest: IdMap::default(),
            unknown: IdMap::default(),
            seen_again: Vec::new(),
            is_seen_again: Vec::new(),
            vms: Vec::new(),
            vm_numbers: IdMap::default(),
            vcpus: IdMap::default(),
            vcpu_count: 0,
            left_out: 0,
            last_seen_ns: Vec::new(),
            changes: 0,
        }
    }

    /// Notes who takes part in an event. Reads nothing.
    pub fn see(&mut self, event: &Event) {
        if let (Some(vm), Some(vcpu)) = (event.vm, event.vcpu) {
            self.see_vcpu(vm, vcpu, event.thread, event.time_ns);
        }
        let other = match event.what {
            What::SwitchIn {
                previous_thread, ..
            } => previous_thread,
            What::SwitchOut { next_thread, .. } => next_thread,
            What::SchedWakeup { waker_thread } => waker_thread,
            _ => return,
        };
        self.see_thread(other, event.time_ns);
        self.see_thread(event.thread, event.time_ns);
    }

    /// Looks up the ids that are new. To be called right after the events of a drain.
    pub fn look(&mut self) {
        for (thread, first_seen_ns) in std::mem::take(&mut self.unknown) {
            self.look_up(thread, first_seen_ns);
        }
    }

    /// Looks up again what was seen since the last time, and VMs without a process. To be called every second.
    pub fn refresh(&mut self, now_ns: u64) {
        for thread in std::mem::take(&mut self.seen_again) {
            if let Some(&place) = self.latest.get(&thread) {
                self.last_seen_ns[place] = now_ns;
                self.is_seen_again[place] = false;
            }
            self.look_up(thread, now_ns);
        }
    }

    /// Forgets vCPUs, VMs and tasks that were not seen since then, so that days of them take no more room than an hour. To be
    /// called after [`Names::refresh`]; who comes again is looked up again.
    pub fn forget(&mut self, before_ns: u64) {
        for vm in &mut self.vms {
            vm.vcpus.retain(|vcpu| vcpu.last_ns >= before_ns);
        }
        self.vms.retain(|vm| !vm.vcpus.is_empty());
        self.vm_numbers.clear();
        let mut places = HashMap::new();
        for (place, vm) in self.vms.iter().enumerate() {
            self.vm_numbers.insert(vm.vm, place);
            for (of_vm, vcpu) in vm.vcpus.iter().enumerate() {
                places.insert((vm.vm, vcpu.vcpu, vcpu.thread), (place, of_vm));
            }
        }
        self.vcpu_count = places.len();
        self.vcpus.retain(|thread, (vm, vcpu, place, of_vm)| {
            let found = places.get(&(*vm, *vcpu, *thread));
            (*place, *of_vm) = found.copied().unwrap_or_default();
            found.is_some()
        });
        let mut tasks = std::mem::take(&mut self.tasks).into_iter();
        let mut last_seen_ns = Vec::new();
        self.latest.clear();
        for (task, seen_ns) in tasks.by_ref().zip(std::mem::take(&mut self.last_seen_ns)) {
            if seen_ns >= before_ns {
                self.latest.insert(task.thread, self.tasks.len());
                self.tasks.push(task);
                last_seen_ns.push(seen_ns);
            }
        }
        self.last_seen_ns = last_seen_ns;
        // Whoever was seen since the refresh will be seen again.
        self.seen_again.clear();
        self.is_seen_again = vec![false; self.tasks.len()];
    }

    /// How often somebody came or was named: while it is the same, VMs and tasks are but for the times of vCPUs.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// VMs in order of appearance.
    pub fn vms(&self) -> &[VmFacts] {
        &self.vms
    }

    /// Tasks in order of appearance.
    pub fn tasks(&self) -> &[TaskFacts] {
        &self.tasks
    }

    /// Incarnations that found no room.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Threads that served a vCPU so far.
    pub fn vcpu_threads(&self) -> usize {
        self.vcpu_count
    }

    fn see_thread(&mut self, thread: u32, time_ns: u64) {
        if thread == 0 {
            return; // the idle task of each pCPU
        }
        if let Some(&place) = self.latest.get(&thread) {
            if !self.is_seen_again[place] {
                self.is_seen_again[place] = true;
                self.seen_again.push(thread);
            }
        } else if self.unknown.len() < UNKNOWN_MAX {
            self.unknown.entry(thread).or_insert(time_ns);
        }
    }

    fn see_vcpu(&mut self, vm: u32, vcpu: u16, thread: u32, time_ns: u64) {
        if let Some(&(known_vm, known_vcpu, vm_place, place)) = self.vcpus.get(&thread) {
            if (known_vm, known_vcpu) == (vm, vcpu) {
                let facts = &mut self.vms[vm_place].vcpus[place];
                facts.last_ns = facts.last_ns.max(time_ns);
                return;
            }
        }
        if self.vcpu_count == VCPUS_MAX {
            self.left_out += 1;
            return;
        }
        let vm_place = *self.vm_numbers.entry(vm).or_insert_with(|| {
            self.vms.push(VmFacts {
                vm,
                ..VmFacts::default()
            });
            self.vms.len() - 1
        });
        let vcpus = &mut self.vms[vm_place].vcpus;
        vcpus.push(VcpuFacts {
            vcpu,
            thread,
            first_ns: time_ns,
            last_ns: time_ns,
        });
        self.vcpus
            .insert(thread, (vm, vcpu, vm_place, vcpus.len() - 1));
        self.vcpu_count += 1;
        self.changes += 1;
        self.see_thread(thread, time_ns);
        // Whose thread it is must be known at once: a new VM may have an old thread's id.
        self.look_up(thread, time_ns);
    }

    fn look_up(&mut self, thread: u32, first_seen_ns: u64) {
        let Some(found) = thread_of(&self.proc, thread) else {
            return;
        };
        self.name_vm(thread, &found);
        if let Some(&place) = self.latest.get(&thread) {
            let known = &self.tasks[place];
            if known.comm == found.comm && known.start_ticks == Some(found.start_ticks) {
                return;
            }
        }
        if self.tasks.len() == TASKS_MAX {
            self.left_out += 1;
            return;
        }
        self.latest.insert(thread, self.tasks.len());
        self.last_seen_ns.push(first_seen_ns);
        self.is_seen_again.push(false);
        self.changes += 1;
        self.tasks.push(TaskFacts {
            thread,
            process: Some(found.process),
            comm: found.comm,
            first_seen_ns,
            start_ticks: Some(found.start_ticks),
        });
    }

    /// The process of a vCPU's thread is its VM's.
    fn name_vm(&mut self, thread: u32, found: &Thread) {
        let Some(&(_, _, vm_place, _)) = self.vcpus.get(&thread) else {
            return;
        };
        let vm = &mut self.vms[vm_place];
        if vm.process.is_some() {
            return;
        }
        vm.process = Some(found.process);
        self.changes += 1;
        // Later than its thread began only another process, to which the number has gone meanwhile.
        match unspin_vms::look(&self.proc, found.process) {
            Look::Found(leader) if leader.start_ticks <= found.start_ticks => {
                vm.process_start_ticks = Some(leader.start_ticks);
                vm.comm = Some(leader.comm);
                vm.identity = leader.identity;
                vm.guest_features = qemu_features(&self.proc, found.process);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;

/// More than a line of `stat`, or the beginning of `status`, ever takes.
const STAT_BYTES_MAX: u64 = 4096;
/// Only the beginning of a command line is searched for features.
const COMMAND_BYTES_MAX: u64 = 64 << 10;

/// A thread, or a process's first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    process: u32,
    /// Without control characters: a task may give itself any name.
    comm: String,
    /// Clock ticks since boot.
    pub(crate) start_ticks: u64,
}

/// The thread of that id; `None`: it has ended, or may not be looked at.
pub(crate) fn thread_of(proc: &Path, id: u32) -> Option<Thread> {
    let folder = proc.join(id.to_string());
    let stat = read(folder.join("stat"), STAT_BYTES_MAX)?;
    // The name stands in brackets and may hold brackets and spaces itself.
    let (open, close) = (stat.find('(')?, stat.rfind(')')?);
    let comm = printable(stat.get(open + 1..close)?, NAME_LENGTH_MAX);
    // Field 3 is the first behind the name; field 22 is the start.
    let start_ticks = stat.get(close + 1..)?.split_whitespace().nth(22 - 3)?;
    let status = read(folder.join("status"), STAT_BYTES_MAX)?;
    let process = status
        .lines()
        .find_map(|line| line.strip_prefix("Tgid:"))?
        .trim()
        .parse()
        .ok()?;
    Some(Thread {
        process,
        comm,
        start_ticks: start_ticks.parse().ok()?,
    })
}

/// The paravirtual features that a QEMU's `-cpu` and the kernel's command line in its `-append` ask for. Nothing else of the
/// command line is looked at here: it may hold secrets.
fn qemu_features(proc: &Path, process: u32) -> Option<String> {
    let line = qemu_line(proc, process)?;
    guest_features::asked_for(line.split('\0'))
}

/// The command line of a process that is a QEMU, its words apart by zero bytes.
fn qemu_line(proc: &Path, process: u32) -> Option<String> {
    let path = proc.join(process.to_string()).join("cmdline");
    let line = read(path, COMMAND_BYTES_MAX)?;
    let program = line.split('\0').next()?.rsplit('/').next()?;
    (program.contains("qemu") || program == "kvm").then_some(line)
}

fn read(path: PathBuf, bytes_max: u64) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path)
        .ok()?
        .take(bytes_max)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
