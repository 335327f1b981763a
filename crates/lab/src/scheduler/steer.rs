// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of our own sched_ext scheduler (`bpf/scheduler/main.bpf.c`): weighted virtual time in one queue for all pCPUs and one per
//! pCPU for pinned tasks, slices that can be lent, slices that end on time, wake-ups that preempt.
//!
//! What decides is not here: the world asks the functions of `policy/steering/policies.h`, as the BPF programs do, and then calls
//! [`Steer::lend`], [`Steer::grant`] and [`Steer::end_slice`]. Nor are the mechanics: weights, virtual times, clocks of queues,
//! the bound on waits, slices that are passed on, which task follows a yield buddy and which slice is cut for a gang are computed
//! by the functions of `policy/mechanics` that the BPF programs are compiled with. Here are the queues, and where each task is.
//! As there, a slice is charged to the task that began it, never to a borrower.
//!
//! Not as there: a lender waits in no queue until its loan is over, what others run at a task's charge is charged at once, and a
//! slice that is used up, but has not ended yet, is not passed on. Left out: nohz_full and isolated pCPUs.

mod callbacks;
mod gang;
mod queues;
mod starvation_bound;
mod time;
mod wakeup;
mod yield_buddy;

use std::collections::BTreeSet;

use unspin_policy::mechanics::{ClockRate, GroupWeight, QueueClock, Weight, slice_left_ns};

use self::{gang::Call, yield_buddy::YieldBuddy};
use super::Allowed;
use crate::{
    ids::{Cpu, Group, Task},
    topology::Topology,
};

/// A virtual time, and an order among equal ones. Virtual times begin at 0 here and can be below it, for clocks are set side by
/// side by offsets: as signed numbers they are in order.
type Key = (i64, u32);

#[derive(Clone, Debug)]
struct Entity {
    group: Group,
    /// 1 to 10,000.
    weight: u32,
    allowed: Allowed,
    vtime_ns: u64,
    /// What it weighed among all when it was charged last.
    charged_weight: Weight,
    /// The queue that its vtime belongs to: a pCPU's own, or the shared one.
    home: Option<Cpu>,
    charged_ns: u64,
    /// It is a vCPU.
    vcpu: bool,
    /// What it has run, whoever was charged, since it slept last.
    awake_ns: u64,
    /// How long it is expected to run when it wakes up next.
    burst_ns: u64,
    /// With which it went to sleep.
    lag_ns: u64,
    /// Where it ran last.
    last_cpu: Option<Cpu>,
    /// Where it is, while it is runnable.
    cpu: Option<Cpu>,
    /// It waits in a queue.
    queued: bool,
    /// Until then it is about to run elsewhere, for a gang.
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
    /// The task that began the slice: it pays.
    slice: Option<Task>,
    slice_left_ns: u64,
    /// What is left of it is a grant.
    granted: bool,
    /// Who is to run next on a loan, before anybody else.
    borrower: Option<Task>,
    /// Whether the lender goes on after that loan.
    returns: bool,
    /// Waits on this pCPU, in no queue, until its loan is over.
    lender: Option<Task>,
    /// Who is to begin a slice of its own next, unless that is too unfair.
    yield_buddy: Option<YieldBuddy>,
    /// When the slice began that runs here.
    began_ns: u64,
    /// Who is called here for a gang.
    call: Option<Call>,
    /// The position of the last one that was first here, and how fast it goes.
    front_ns: u64,
    rate: ClockRate,
    /// Who waits here is too far ahead: look again.
    behind: bool,
}

impl Here {
    /// What is left of the slice here; time in which nobody runs is no part of it.
    fn left_ns(&self, now_ns: u64) -> u64 {
        slice_left_ns(self.since_ns + self.slice_left_ns, now_ns)
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Steer {
    topology: Topology,
    slice_ns: u64,
    vcpu_slice_ns: u64,
    shared_clock: QueueClock,
    shared_rate: ClockRate,
    clocks: Vec<QueueClock>,
    tasks: Vec<Entity>,
    groups: Vec<GroupState>,
    shared: BTreeSet<Key>,
    own: Vec<BTreeSet<Key>>,
    cpus: Vec<Here>,
    /// A pCPU on which a task that woke up runs at once, though it was enqueued for another.
    kick: Option<Cpu>,
}

impl Steer {
    /// For those pCPUs; `slice_ns`: the kernel's `base_slice_ns`, above 0.
    pub fn new(topology: Topology, slice_ns: u64) -> Steer {
        let cpus = topology.cpus() as usize;
        Steer {
            topology,
            slice_ns: slice_ns.max(1),
            vcpu_slice_ns: slice_ns.max(1),
            shared_clock: QueueClock::default(),
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

    /// The kernel's base slice, ns: of a task that is no vCPU, and by which virtual times are bounded.
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// Slices of vCPUs last so long from now on, ns.
    pub fn set_vcpu_slice(&mut self, slice_ns: u64) {
        self.vcpu_slice_ns = slice_ns;
    }

    /// How long a slice of a vCPU lasts, ns.
    pub fn vcpu_slice_ns(&self) -> u64 {
        self.vcpu_slice_ns
    }

    /// What is left of the slice that runs on that pCPU, ns.
    pub fn slice_left_ns(&self, now_ns: u64, cpu: Cpu) -> u64 {
        let here = &self.cpus[cpu.index()];
        here.left_ns(now_ns)
    }

    /// The task that runs there on another's slice.
    pub fn borrower_on(&self, cpu: Cpu) -> Option<Task> {
        let here = &self.cpus[cpu.index()];
        here.current.filter(|current| here.slice != Some(*current))
    }

    /// The target is to run on that pCPU next, on the slice that runs there. `returns`: the
    /// lender continues afterwards; otherwise it waits like others, and pays. Whether the target waits in a queue and may.
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

    /// The slice there goes on for so long, ns, whatever is left of it.
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
