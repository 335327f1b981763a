// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of unspin's sched_ext scheduler (`bpf/scheduler/main.bpf.c`): weighted virtual time in one queue for all
//! pCPUs and one for each pCPU with pinned tasks, slices that can be lent, slices that end on time, wake-ups that
//! preempt.
//!
//! The decisions are not made here: the world calls the functions of `policy/steering/policies.h`, as the BPF programs
//! do, and then calls [`Steer::lend`], [`Steer::grant`] and [`Steer::end_slice`]. Nor are the mechanics here: weights,
//! virtual times, clocks of queues, the bound on waits, slices that are passed on, which task follows a yield buddy and
//! which slice is cut for a gang are computed by the functions of `policy/mechanics`, with which the BPF programs are
//! compiled. This file has the queues, and where each task is. As in BPF, a slice is charged to the task that began it,
//! never to a borrower.
//!
//! Differences from BPF: a lender waits in no queue until its loan is over, what others run at a task's charge is
//! charged at once, and a slice that is used up, but has not ended yet, is not passed on. Left out: nohz_full and
//! isolated pCPUs.

mod callbacks;
mod crowd;
mod gang;
mod queues;
mod starvation_bound;
mod time;
mod wakeup;
mod yield_buddy;

use std::collections::BTreeSet;

use unspin_policy::{
    mechanics::{ClockRate, FairClock, GroupWeight, QueueClock, Weight, slice_left_ns},
    steering::UNSPIN_ANSWER_SLICES,
};

use self::{
    crowd::{Crowd, Notes},
    gang::Call,
    yield_buddy::YieldBuddy,
};
use super::Allowed;
use crate::{
    ids::{Cpu, Group, Task},
    topology::Topology,
};

/// A virtual time, and an order among equal ones. Virtual times begin at 0 here and may be negative, because queues are
/// aligned by offsets: as signed numbers they are ordered.
type Key = (i64, u32);

#[derive(Clone, Debug)]
struct Entity {
    group: Group,
    /// Its weight, 1 to 10,000.
    weight: u32,
    allowed: Allowed,
    vtime_ns: u64,
    /// What it weighed among all when it was charged last.
    charged_weight: Weight,
    /// The queue whose clock its virtual time follows: a pCPU's own, or the shared one.
    home: Option<Cpu>,
    charged_ns: u64,
    /// Whether it is a vCPU.
    vcpu: bool,
    /// When it was last seen to use locks, ns, and whether it counts as one that does, as of its slice's beginning.
    lock_ns: Option<u64>,
    uses_locks: bool,
    /// Slices of its own, this one counted, in which it waits for answers to interrupts.
    answer_slices: u32,
    /// The time it has run, at whatever charge, since it last slept, ns.
    awake_ns: u64,
    /// Its slice, and that while it uses locks, ns.
    slices_ns: [u64; 2],
    /// How long it is expected to run when it wakes up next, ns.
    burst_ns: u64,
    /// How long its runs are in the mean, ns.
    mean_ns: u64,
    /// The lag with which it went to sleep, ns.
    lag_ns: u64,
    /// The pCPU on which it last ran.
    last_cpu: Option<Cpu>,
    /// Where a runnable task is.
    cpu: Option<Cpu>,
    /// Whether it waits in a queue.
    queued: bool,
    /// Until then it is called to another pCPU for a gang, ns.
    called_until_ns: u64,
}

#[derive(Clone, Debug)]
struct GroupState {
    parent: Group,
    active: GroupWeight,
}

#[derive(Clone, Copy, Debug, Default)]
struct Here {
    current: Option<Task>,
    since_ns: u64,
    /// The task that began the slice, which pays.
    slice: Option<Task>,
    slice_left_ns: u64,
    /// Whether what is left of it is a grant.
    granted: bool,
    /// The task that runs next on a loan, before any other.
    borrower: Option<Task>,
    /// Whether the lender continues after that loan.
    returns: bool,
    /// The lender: waits on this pCPU, in no queue, until its loan is over.
    lender: Option<Task>,
    /// The task that begins its own slice next, unless that is too unfair.
    yield_buddy: Option<YieldBuddy>,
    /// When the slice that runs here began, ns.
    began_ns: u64,
    /// The task that is called here for a gang.
    call: Option<Call>,
    /// The position of the last task that was first here, and its rate.
    front_ns: u64,
    rate: ClockRate,
    crowd: Crowd,
    /// Whether a task that waits here is too far ahead: check again.
    behind: bool,
}

impl Here {
    /// What is left of the slice here, ns; time in which no task runs is not counted.
    fn left_ns(&self, now_ns: u64) -> u64 {
        slice_left_ns(self.since_ns + self.slice_left_ns, now_ns)
    }
}

/// The scheduler; see the head of the file.
#[derive(Clone, Debug)]
pub struct Steer {
    topology: Topology,
    slice_ns: u64,
    shared_clock: QueueClock,
    /// `policy/mechanics/crowd.h`, and when a crowd was counted last.
    fair: FairClock,
    crowd_ns: u64,
    shared_rate: ClockRate,
    /// Tasks with short runs that wait, by pCPU.
    notes: Vec<Notes>,
    clocks: Vec<QueueClock>,
    tasks: Vec<Entity>,
    groups: Vec<GroupState>,
    shared: BTreeSet<Key>,
    own: Vec<BTreeSet<Key>>,
    cpus: Vec<Here>,
    /// A pCPU on which a woken task runs at once, though it was enqueued for another.
    kick: Option<Cpu>,
}

impl Steer {
    /// For these pCPUs; `slice_ns`: the kernel's `base_slice_ns`, above 0.
    pub fn new(topology: Topology, slice_ns: u64) -> Steer {
        let cpus = topology.cpus() as usize;
        Steer {
            topology,
            slice_ns: slice_ns.max(1),
            shared_clock: QueueClock::default(),
            fair: FairClock::default(),
            crowd_ns: 0,
            notes: vec![Notes::default(); cpus],
            shared_rate: ClockRate::default(),
            clocks: vec![QueueClock::default(); cpus],
            tasks: Vec::new(),
            groups: vec![GroupState {
                parent: Group(0),
                active: GroupWeight::default(),
            }],
            shared: BTreeSet::new(),
            own: vec![BTreeSet::new(); cpus],
            cpus: vec![Here::default(); cpus],
            kick: None,
        }
    }

    /// The kernel's base slice, ns: the slice of tasks that are no vCPUs, by which virtual times are bounded.
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// Slices of that vCPU last this long from now on, ns; `lending_ns`: while it uses locks.
    pub fn set_slices(&mut self, task: Task, slice_ns: u64, lending_ns: u64) {
        self.tasks[task.index()].slices_ns = [slice_ns, lending_ns];
    }

    /// The slice of that vCPU, ns.
    pub fn vcpu_slice_ns(&self, task: Task) -> u64 {
        let known = &self.tasks[task.index()];
        known.slices_ns[usize::from(known.uses_locks)]
    }

    /// What is left of the slice that runs on that pCPU, ns.
    pub fn slice_left_ns(&self, now_ns: u64, cpu: Cpu) -> u64 {
        let here = &self.cpus[cpu.index()];
        here.left_ns(now_ns)
    }

    /// The task that runs there on another task's slice.
    pub fn borrower_on(&self, cpu: Cpu) -> Option<Task> {
        let here = &self.cpus[cpu.index()];
        here.current.filter(|current| here.slice != Some(*current))
    }

    /// That vCPU is seen to use locks (`policy/steering/slice.h`).
    pub fn note_lock(&mut self, now_ns: u64, task: Task) {
        self.tasks[task.index()].lock_ns = Some(now_ns);
    }

    /// That vCPU spins where one is proposed for whose answer to an interrupt somebody waits (`policy/steering/answer.h`).
    pub fn note_answer(&mut self, task: Task) {
        self.tasks[task.index()].answer_slices = UNSPIN_ANSWER_SLICES;
    }

    /// Its slices, this one counted, in which it waits for answers (`policy/steering/slice.h`).
    pub fn answer_slices(&self, task: Task) -> u32 {
        self.tasks[task.index()].answer_slices
    }

    /// `target` runs on that pCPU next, on the slice that runs there. `returns`: the lender continues afterwards;
    /// otherwise it waits like others, and pays. Returns whether the target waits in a queue and may run there.
    pub fn lend(&mut self, cpu: Cpu, target: Task, returns: bool) -> bool {
        let known = &self.tasks[target.index()];
        if !known.queued || !known.allowed.contains(cpu) || self.cpus[cpu.index()].slice.is_none() {
            return false;
        }
        self.take_from_queue(target);
        self.tasks[target.index()].cpu = Some(cpu);
        let here = &mut self.cpus[cpu.index()];
        here.returns = returns;
        if let Some(other) = here.borrower.replace(target) {
            self.queue(other, cpu, false);
        }
        true
    }

    /// The slice there continues for this long, ns, whatever is left of it.
    pub fn grant(&mut self, now_ns: u64, cpu: Cpu, budget_ns: u64) {
        self.charge(now_ns, cpu);
        let here = &mut self.cpus[cpu.index()];
        here.slice_left_ns = budget_ns;
        here.granted = true;
    }

    /// The slice there is used up.
    pub fn end_slice(&mut self, now_ns: u64, cpu: Cpu) {
        self.charge(now_ns, cpu);
        self.cpus[cpu.index()].slice_left_ns = 0;
    }
}
