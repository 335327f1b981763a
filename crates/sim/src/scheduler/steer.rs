// SPDX-License-Identifier: MIT OR Apache-2.0
//! The model of our own sched_ext scheduler (`bpf/steer.bpf.c`): weighted virtual time in one queue for all pCPUs and one per
//! pCPU for pinned tasks, turns that can be lent, slices that end at ticks.
//!
//! What decides is not here: the world asks the functions of `policy/steering.h`, as the BPF programs do, and then calls
//! [`Steer::lend`], [`Steer::grant`] and [`Steer::end_loan`]. As there, the debt is that of the thread whose turn it is: a
//! borrower is never charged. Clocks of queues, their offsets and how far a task may be behind are those of
//! bpf/steer_time.bpf.h, which says why. Left out: nohz_full and isolated pCPUs.

mod gang;
mod hint;

use std::collections::BTreeSet;

use self::{gang::Call, hint::Hint};
use super::{Allowed, Enqueue, HostScheduler, NICE_0_WEIGHT, YieldTo};
use crate::{
    ids::{Cpu, Group, Task},
    topology::Topology,
};

/// Between two ticks, ns: HZ is 250 in Debian's kernel.
const TICK_NS: u64 = 4_000_000;

/// Bits of a flat weight's fraction.
const FRACTION_BITS: u32 = 20;

/// A virtual time, and an order among equal ones. Virtual times can be below 0: clocks are set side by side by offsets.
type Key = (i64, u32);

/// The clock of a queue: the vtime of its last task that began a turn, and what is added to its vtimes where they are compared
/// with the shared queue's.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    now_ns: i64,
    offset_ns: i64,
}

#[derive(Clone, Debug)]
struct Entity {
    group: Group,
    weight: u32,
    allowed: Allowed,
    vtime_ns: i64,
    /// The queue that its vtime belongs to: a pCPU's own, or the shared one.
    home: Option<Cpu>,
    charged_ns: u64,
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
    weight: u32,
    /// Weight of its runnable tasks and of its active groups.
    active: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Here {
    current: Option<Task>,
    since_ns: u64,
    /// Whose turn it is: who pays.
    turn: Option<Task>,
    slice_left_ns: u64,
    /// Who is to run next on a loan, before anybody else.
    borrower: Option<Task>,
    /// Whether the lender goes on after that loan.
    returns: bool,
    /// Waits on this pCPU, in no queue, until its loan is over.
    lender: Option<Task>,
    /// Who is to begin a turn of its own next, unless that is too unfair.
    hint: Option<Hint>,
    /// When the turn began that runs here.
    began_ns: u64,
    /// Who is called here for a gang.
    call: Option<Call>,
}

/// So much time at that weight, as virtual time.
fn weighted(weight: u128, ns: u64) -> i64 {
    let scaled = u128::from(ns) * (u128::from(NICE_0_WEIGHT) << FRACTION_BITS) / weight.max(1);
    scaled.min(i64::MAX as u128 / 4) as i64
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Steer {
    topology: Topology,
    slice_ns: u64,
    /// The shared queue's clock.
    shared_now_ns: i64,
    clocks: Vec<Clock>,
    tasks: Vec<Entity>,
    groups: Vec<GroupState>,
    shared: BTreeSet<Key>,
    own: Vec<BTreeSet<Key>>,
    cpus: Vec<Here>,
}

impl Steer {
    /// For those pCPUs; `slice_ns`: the kernel's `base_slice_ns`, above 0.
    pub fn new(topology: Topology, slice_ns: u64) -> Steer {
        let cpus = topology.cpus() as usize;
        Steer {
            topology,
            slice_ns: slice_ns.max(1),
            shared_now_ns: 0,
            clocks: vec![Clock::default(); cpus],
            tasks: Vec::new(),
            groups: vec![GroupState {
                parent: Group(0),
                weight: NICE_0_WEIGHT,
                active: 0,
            }],
            shared: BTreeSet::new(),
            own: vec![BTreeSet::new(); cpus],
            cpus: vec![Here::default(); cpus],
        }
    }

    /// The slice, ns.
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// What is left of the turn that runs on that pCPU, ns.
    pub fn slice_left_ns(&self, now_ns: u64, cpu: Cpu) -> u64 {
        let here = &self.cpus[cpu.index()];
        here.slice_left_ns.saturating_sub(now_ns - here.since_ns)
    }

    /// The task that runs there on another's turn.
    pub fn borrower_on(&self, cpu: Cpu) -> Option<Task> {
        let here = &self.cpus[cpu.index()];
        here.current.filter(|current| here.turn != Some(*current))
    }

    /// The target is to run on that pCPU next, on the turn that runs there. `returns`: whose turn it is goes on afterwards;
    /// otherwise it waits like others, and pays. Whether the target waits in a queue and may.
    pub fn lend(&mut self, cpu: Cpu, target: Task, returns: bool) -> bool {
        let known = &self.tasks[target.index()];
        if !known.queued || !known.allowed.contains(cpu) || self.cpus[cpu.index()].turn.is_none() {
            return false;
        }
        self.take_from_queue(target);
        self.tasks[target.index()].cpu = Some(cpu);
        let here = &mut self.cpus[cpu.index()];
        here.returns = returns;
        if let Some(other) = here.borrower.replace(target) {
            self.queue(other, cpu);
        }
        true
    }

    /// The turn there goes on for so long, ns, whatever is left of it.
    pub fn grant(&mut self, now_ns: u64, cpu: Cpu, budget_ns: u64) {
        self.charge(now_ns, cpu);
        self.cpus[cpu.index()].slice_left_ns = budget_ns;
    }

    /// The turn there is used up.
    pub fn end_turn(&mut self, now_ns: u64, cpu: Cpu) {
        self.charge(now_ns, cpu);
        self.cpus[cpu.index()].slice_left_ns = 0;
    }

    /// The weight of a task with all its groups', `NICE_0_WEIGHT << FRACTION_BITS` for nice 0: at each level its share of what
    /// is active there.
    fn flat_weight(&self, task: Task) -> u128 {
        let entity = &self.tasks[task.index()];
        // With 20 bits of fraction, as shares can be small.
        let mut weight = u128::from(entity.weight) << FRACTION_BITS;
        let mut group = entity.group;
        while group != Group(0) {
            let known = &self.groups[group.index()];
            // Weights are at most 2^17 and there are few levels: the product fits 128 bits easily.
            weight = weight * u128::from(known.weight) / u128::from(known.active.max(1));
            weight = weight.max(1);
            group = known.parent;
        }
        weight
    }

    fn charge(&mut self, now_ns: u64, cpu: Cpu) {
        let here = &mut self.cpus[cpu.index()];
        let elapsed_ns = now_ns - here.since_ns;
        here.since_ns = now_ns;
        here.slice_left_ns = here.slice_left_ns.saturating_sub(elapsed_ns);
        let Some(turn) = here.turn.filter(|_| here.current.is_some()) else {
            return;
        };
        let weight = self.flat_weight(turn);
        let (queued, place) = (
            self.tasks[turn.index()].queued,
            self.tasks[turn.index()].cpu,
        );
        if queued {
            self.take_from_queue(turn);
        }
        self.tasks[turn.index()].charged_ns += elapsed_ns;
        self.tasks[turn.index()].vtime_ns += weighted(weight, elapsed_ns);
        self.keep_up(turn, self.clock_ns(self.tasks[turn.index()].home));
        if let (true, Some(place)) = (queued, place) {
            self.queue(turn, place);
        }
    }

    /// The clock of a queue.
    fn clock_ns(&self, queue: Option<Cpu>) -> i64 {
        queue.map_or(self.shared_now_ns, |cpu| self.clocks[cpu.index()].now_ns)
    }

    fn offset_ns(&self, queue: Option<Cpu>) -> i64 {
        queue.map_or(0, |cpu| self.clocks[cpu.index()].offset_ns)
    }

    /// How far a task may be from others for what it has run, or not run: `reach()`.
    fn reach_ns(&self, task: Task) -> i64 {
        weighted(self.flat_weight(task), 2 * self.slice_ns + TICK_NS)
    }

    /// No further behind than that.
    fn keep_up(&mut self, task: Task, now_ns: i64) {
        let floor_ns = now_ns - self.reach_ns(task);
        let entity = &mut self.tasks[task.index()];
        entity.vtime_ns = entity.vtime_ns.max(floor_ns);
    }

    /// The task comes to a queue, or to it again: `arrive()`.
    fn arrive(&mut self, task: Task, queue: Option<Cpu>) {
        let home = self.tasks[task.index()].home;
        if home != queue {
            let moved_ns = self.offset_ns(home) - self.offset_ns(queue);
            let entity = &mut self.tasks[task.index()];
            entity.vtime_ns += moved_ns;
            entity.home = queue;
        }
        let mut now_ns = self.clock_ns(queue);
        if let Some(cpu) = queue.filter(|cpu| self.own[cpu.index()].is_empty()) {
            // A queue of a pCPU that nobody waits in is as far as the shared one.
            now_ns = now_ns.max(self.shared_now_ns - self.clocks[cpu.index()].offset_ns);
        }
        self.keep_up(task, now_ns);
    }

    /// How far the one that is ahead is beyond its reach: `beyond()`.
    fn beyond_ns(&self, ahead: Task, by_ns: i64) -> i64 {
        if by_ns <= TICK_NS as i64 {
            0
        } else {
            (by_ns - self.reach_ns(ahead)).max(0)
        }
    }

    fn activate(&mut self, task: Task, active: bool) {
        let (mut group, mut weight) = {
            let entity = &self.tasks[task.index()];
            (entity.group, u64::from(entity.weight))
        };
        loop {
            let known = &mut self.groups[group.index()];
            let before = known.active;
            known.active = if active {
                before + weight
            } else {
                before - weight
            };
            // A group counts above as long as anything in it is active.
            let edge = if active { before } else { known.active };
            if edge != 0 || group == Group(0) {
                return;
            }
            weight = u64::from(known.weight);
            group = known.parent;
        }
    }

    fn queue(&mut self, task: Task, cpu: Cpu) {
        let queue = match self.tasks[task.index()].allowed {
            Allowed::All => None,
            Allowed::Only(_) => Some(cpu),
        };
        self.arrive(task, queue);
        let entity = &mut self.tasks[task.index()];
        entity.queued = true;
        entity.cpu = Some(cpu);
        let key = (entity.vtime_ns, task.0);
        match queue {
            None => self.shared.insert(key),
            Some(cpu) => self.own[cpu.index()].insert(key),
        };
    }

    fn take_from_queue(&mut self, task: Task) {
        let entity = &mut self.tasks[task.index()];
        entity.queued = false;
        let key = (entity.vtime_ns, task.0);
        match entity.home {
            None => self.shared.remove(&key),
            Some(cpu) => self.own[cpu.index()].remove(&key),
        };
    }

    /// The earlier of the two heads that this pCPU may run; the queues are set side by side: `align()`.
    fn head(&mut self, cpu: Cpu) -> Option<Task> {
        let common = self.shared.first().copied();
        let own = self.own[cpu.index()].first().copied();
        let (Some(common), Some(own)) = (common, own) else {
            return common.or(own).map(|first| Task(first.1));
        };
        let own_ns = own.0 + self.clocks[cpu.index()].offset_ns;
        let more_ns = if own_ns < common.0 {
            self.beyond_ns(Task(common.1), common.0 - own_ns)
        } else {
            -self.beyond_ns(Task(own.1), own_ns - common.0)
        };
        self.clocks[cpu.index()].offset_ns += more_ns;
        let own_first = own_ns + more_ns <= common.0;
        Some(Task(if own_first { own.1 } else { common.1 }))
    }

    fn leave_cpu(&mut self, task: Task, cpu: Cpu, runnable: bool) {
        if runnable {
            self.queue(task, cpu);
        } else {
            self.tasks[task.index()].cpu = None;
            self.activate(task, false);
        }
    }

    fn begin_turn(&mut self, task: Task, cpu: Cpu) {
        self.take_from_queue(task);
        let (vtime_ns, home) = (
            self.tasks[task.index()].vtime_ns,
            self.tasks[task.index()].home,
        );
        // After a hint somebody may wait who has less, and must not fall behind the clock (`set_clock()`).
        let least_ns = match home {
            None => self.shared.first(),
            Some(cpu) => self.own[cpu.index()].first(),
        }
        .map_or(vtime_ns, |first| first.0.min(vtime_ns));
        match home {
            None => self.shared_now_ns = self.shared_now_ns.max(least_ns),
            Some(cpu) => {
                let clock = &mut self.clocks[cpu.index()];
                clock.now_ns = clock.now_ns.max(least_ns);
                if self.shared.is_empty() {
                    clock.offset_ns = self.shared_now_ns - clock.now_ns;
                }
            }
        }
        let slice_ns = self.slice_ns;
        let here = &mut self.cpus[cpu.index()];
        here.turn = Some(task);
        here.slice_left_ns = slice_ns;
    }
}

impl HostScheduler for Steer {
    fn add_group(&mut self, parent: Group, weight: u32) -> Group {
        self.groups.push(GroupState {
            parent,
            weight: weight.max(1),
            active: 0,
        });
        Group(self.groups.len() as u32 - 1)
    }

    fn add_task(&mut self, group: Group, weight: u32, allowed: Allowed, _: Option<u32>) -> Task {
        self.tasks.push(Entity {
            group,
            weight: weight.max(1),
            allowed,
            vtime_ns: 0,
            home: None,
            charged_ns: 0,
            cpu: None,
            queued: false,
            called_until_ns: 0,
        });
        Task(self.tasks.len() as u32 - 1)
    }

    fn select_cpu(&mut self, _: u64, task: Task, waker: Option<Cpu>) -> Cpu {
        let allowed = &self.tasks[task.index()].allowed;
        let near = match allowed {
            Allowed::Only(cpus) => cpus[0],
            Allowed::All => waker.unwrap_or(Cpu(task.0 % self.topology.cpus())),
        };
        let count = self.topology.cpus();
        let mut around = (0..count).map(|step| Cpu((near.0 + step) % count));
        let idle =
            around.find(|cpu| allowed.contains(*cpu) && self.cpus[cpu.index()].current.is_none());
        idle.unwrap_or(near)
    }

    fn enqueue(&mut self, _: u64, task: Task, cpu: Cpu, why: Enqueue) {
        self.activate(task, true);
        if why == Enqueue::New {
            // It has to wait a slice: tasks made one after another would otherwise always be first.
            let debit_ns = weighted(self.flat_weight(task), self.slice_ns);
            self.tasks[task.index()].vtime_ns = self.shared_now_ns + debit_ns;
        }
        self.queue(task, cpu);
    }

    fn wakeup_preempts(&mut self, _: u64, _: Cpu, _: Task) -> bool {
        false
    }

    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        self.cpus[cpu.index()].since_ns = now_ns;
        let hint = self.cpus[cpu.index()].hint.take();
        let here = &mut self.cpus[cpu.index()];
        let next = match here.borrower.take() {
            Some(borrower) => Some(borrower),
            None => match here.lender.take().filter(|_| here.slice_left_ns != 0) {
                Some(lender) => Some(lender),
                None => {
                    here.turn = None;
                    let hinted = match hint {
                        Some(hint) => self.follow_hint(cpu, hint),
                        None => self.take_call(now_ns, cpu),
                    };
                    let head = hinted.or_else(|| self.head(cpu));
                    if let Some(task) = head {
                        self.begin_turn(task, cpu);
                        self.cpus[cpu.index()].began_ns = now_ns;
                        self.tasks[task.index()].called_until_ns = 0;
                    }
                    head
                }
            },
        };
        self.cpus[cpu.index()].current = next;
        if let Some(task) = next {
            self.tasks[task.index()].cpu = Some(cpu);
        }
        next
    }

    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        self.charge(now_ns, cpu);
        let here = &mut self.cpus[cpu.index()];
        let Some(task) = here.current.take() else {
            return;
        };
        let own = here.turn == Some(task);
        if own && here.borrower.is_some() && here.slice_left_ns != 0 {
            if runnable && here.returns {
                here.lender = Some(task);
                return;
            }
            // It waits like others, and its turn, for which it pays, goes on without it.
            self.leave_cpu(task, cpu, runnable);
            return;
        }
        if !own {
            // The loan is over; the lender goes on if its turn is not used up.
            if here.slice_left_ns == 0 {
                if let Some(lender) = here.lender.take() {
                    self.queue(lender, cpu);
                }
            }
        } else {
            here.turn = None;
            if let Some(borrower) = here.borrower.take() {
                self.queue(borrower, cpu);
            }
        }
        self.leave_cpu(task, cpu, runnable);
    }

    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        self.charge(now_ns, cpu);
        let here = &self.cpus[cpu.index()];
        // A lender waits in no queue.
        let (used_up, lender) = (here.slice_left_ns == 0, here.lender.is_some());
        used_up && (lender || self.head(cpu).is_some())
    }

    fn tick_period_ns(&self) -> u64 {
        TICK_NS
    }

    fn yield_now(&mut self, now_ns: u64, cpu: Cpu) {
        self.end_turn(now_ns, cpu);
    }

    /// What sched_ext does with a scheduler that has no opinion; the world asks the policies instead.
    fn yield_to(&mut self, _: u64, _: Cpu, _: Task) -> YieldTo {
        YieldTo::Refused
    }

    fn charged_ns(&self, task: Task) -> u64 {
        self.tasks[task.index()].charged_ns
    }

    fn runnable(&self, cpu: Cpu) -> u32 {
        let here = &self.cpus[cpu.index()];
        let held = [here.current, here.lender, here.borrower];
        let held = held.iter().flatten().count();
        (held + self.shared.len() + self.own[cpu.index()].len()) as u32
    }

    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        self.tasks[task.index()].cpu
    }

    fn steering(&mut self) -> Option<&mut Steer> {
        Some(self)
    }
}
