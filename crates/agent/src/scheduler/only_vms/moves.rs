// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which threads were moved, what they had before, and which are left alone.

use std::collections::{BTreeMap, HashMap};

use unspin_abi as abi;
use unspin_report::row;

use super::policy::{self, Policy};

/// Threads and VMs that are kept before those that have ended are looked for.
const KEPT: usize = 1024;
/// The lightest, which is nearest to `SCHED_IDLE` (15 of 1024 for 3).
const NICEST: i32 = 19;

row! {
    "moved", ["steer"];
    /// What `--only-vms` moved of a VM process, since the scheduler was attached.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct MovedVm {
        /// The VM's process.
        pub process: String = ("VM process", Text),
        /// Its name.
        pub name: String = ("name", Text),
        /// vCPU threads that were moved to our scheduler, those that have ended since included.
        pub vcpus: u64 = ("vCPU threads", Count),
        /// Other threads that were: they have thread pages.
        pub others: u64 = ("with a page", Count),
        /// Threads left alone: real-time ones.
        pub real_time: u64 = ("real-time, left", Count),
        /// Threads that the kernel did not let be moved.
        pub refused: u64 = ("refused", Count),
        /// Threads created by one that was moved: they were given back the policy that it had before.
        pub children: u64 = ("children, set back", Count),
        /// The longest time from an entry of a thread to its guest, the first since the scheduler was attached, until it was moved; ns.
        pub longest_ns: u64 = ("moved within", Nanoseconds),
    }
}

/// One thread.
#[derive(Clone, Copy, Debug)]
struct Moved {
    process: u32,
    born: u64,
    before: Policy,
    /// Its nice value, where that was changed.
    nice: Option<i32>,
}

/// All of them, by number.
#[derive(Default)]
pub(super) struct Moves {
    threads: HashMap<u32, Moved>,
    vms: BTreeMap<u32, MovedVm>,
    /// Threads at which those that have ended are looked for.
    crowd: usize,
}

impl Moves {
    /// What was done, by VM process.
    pub(super) fn vms(&self) -> Vec<MovedVm> {
        self.vms.values().cloned().collect()
    }

    /// Does what a record asks for; `now_ns`: CLOCK_MONOTONIC.
    pub(super) fn take(&mut self, record: &abi::unspin_steer_thread, now_ns: impl Fn() -> u64) {
        match record.kind {
            abi::UNSPIN_STEER_THREAD_VCPU => {
                self.move_in(record, true, now_ns);
            }
            abi::UNSPIN_STEER_THREAD_PAGE => {
                if policy::has_vm(record.process) {
                    self.move_in(record, false, now_ns);
                }
            }
            _ => self.set_child_back(record),
        }
        self.forget_ended();
    }

    fn vm(&mut self, process: u32) -> &mut MovedVm {
        self.vms.entry(process).or_insert_with(|| MovedVm {
            process: process.to_string(),
            name: unspin_vms::name_of(process).unwrap_or_default(),
            ..MovedVm::default()
        })
    }

    fn move_in(&mut self, record: &abi::unspin_steer_thread, vcpu: bool, now_ns: impl Fn() -> u64) {
        let (process, thread) = (record.process, record.thread);
        // One that has ended meanwhile needs nothing.
        let (Ok(before), Some(born)) = (Policy::of(thread), policy::born(process, thread)) else {
            return;
        };
        let vm = self.vm(process);
        if before.is_real_time() {
            vm.real_time += 1;
            return;
        }
        // One that had it before us keeps it afterwards.
        if !before.is_ext() && before.to_ext().set(thread).is_err() {
            vm.refused += 1;
            return;
        }
        match vcpu {
            true => vm.vcpus += 1,
            false => vm.others += 1,
        }
        vm.longest_ns = vm.longest_ns.max(now_ns().saturating_sub(record.time_ns));
        let nice = before
            .is_idle()
            .then(|| policy::set_nice(thread, NICEST))
            .flatten();
        let moved = Moved {
            process,
            born,
            before,
            nice,
        };
        self.threads.insert(thread, moved);
    }

    /// A child has the policy of the one that created it, also of one that was set back itself a moment later.
    fn set_child_back(&mut self, record: &abi::unspin_steer_thread) {
        let Some(parent) = self.threads.get(&record.parent).copied() else {
            return;
        };
        let Some(born) = policy::born(record.process, record.thread) else {
            return;
        };
        let child = Moved {
            process: record.process,
            born,
            ..parent
        };
        child.give_back(record.thread);
        self.threads.insert(record.thread, child);
        self.vm(parent.process).children += 1;
    }

    /// Each gets the policy back that it had, unless somebody else has given it another one.
    pub(super) fn give_back(&mut self) {
        for (thread, moved) in self.threads.drain() {
            if policy::born(moved.process, thread) == Some(moved.born) {
                moved.give_back(thread);
            }
        }
    }

    /// Once there are many, and then where there are twice as many as remained.
    fn forget_ended(&mut self) {
        if self.threads.len() + self.vms.len() <= self.crowd.max(KEPT) {
            return;
        }
        self.threads
            .retain(|thread, moved| policy::born(moved.process, *thread) == Some(moved.born));
        self.vms
            .retain(|process, _| policy::born(*process, *process).is_some());
        self.crowd = 2 * (self.threads.len() + self.vms.len());
    }
}

impl Moved {
    fn give_back(self, thread: u32) {
        if !Policy::of(thread).is_ok_and(Policy::is_ext) {
            return;
        }
        // One that ends meanwhile needs nothing; root may set these policies.
        let _ = self.before.set(thread);
        if let Some(nice) = self.nice {
            policy::set_nice(thread, nice);
        }
    }
}
