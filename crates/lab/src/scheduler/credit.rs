// SPDX-License-Identifier: MIT OR Apache-2.0
//! Xen's credit scheduler, after xen/common/sched_credit.c of Xen 3.3, the time of Friebel's slides.
//!
//! A domain is a family of tasks, or a single task without a family. Its weight is that of the outermost group of its
//! first task; without a group, that task's own. Every 30 ms the domains share as many credits as the pCPUs have time.
//! A vCPU with credits left is UNDER, one without is OVER, and one that wakes while UNDER is BOOST until the next tick.
//! A slice is 30 ms.
//!
//! As in Xen 4.1 and later, unlike in 3.3, credits are debited by the time that was used ("Accurate accounting for
//! credit scheduler"), not by 100 from the vCPU that runs at a tick; they are counted in nanoseconds, 10 ms for 100 of
//! Xen's. Left out: caps; moving running vCPUs to idle cores at a tick. Only the nearest idle pCPU is tickled, not all.
//! Xen has no directed yield: `yield_to` is what Friebel's helping needs. The target moves to the yielder's pCPU and
//! runs there before all others of its priority, for the rest of the yielder's slice. (If it ran before those of a
//! higher priority, or for a slice of its own, two vCPUs that yield to each other would starve other domains.)

mod accounting;

use super::cpu_set::CpuSet;
use super::{Allowed, Enqueue, HostScheduler, YieldTo};
use crate::ids::{Cpu, Group, Task};
use crate::topology::{Distance, Topology};

/// `CSCHED_MSECS_PER_TICK`.
const TICK_NS: u64 = 10_000_000;

/// `CSCHED_TICKS_PER_TSLICE`, `CSCHED_TICKS_PER_ACCT`: length of a slice, and period at which credits are given out.
const SLICE_NS: u64 = 3 * TICK_NS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Over,
    Under,
    Boost,
}

#[derive(Debug)]
struct Vcpu {
    domain: usize,
    allowed: Allowed,
    cpu: Cpu,
    priority: Priority,
    credit_ns: i64,
    /// It earns credits: it has run, and has not accumulated too many.
    active: bool,
    state: State,
    charged_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sleeps,
    Waits,
    Runs,
}

#[derive(Debug)]
struct Domain {
    weight: u64,
    vcpus: Vec<Task>,
    active: u32,
}

#[derive(Debug)]
struct Pcpu {
    current: Option<Task>,
    /// Time up to which the current task is charged, ns.
    charged_ns: u64,
    slice_end_ns: u64,
    /// The target of a directed yield: if it runs next, it runs on the yielder's slice.
    lent_to: Option<Task>,
    queue: Vec<Task>,
    /// Number of the accounting after which its queue was last sorted.
    sorted: u64,
}

/// Xen's credit scheduler; see the head of the file.
#[derive(Debug)]
pub struct Credit {
    topology: Topology,
    vcpus: Vec<Vcpu>,
    domains: Vec<Domain>,
    /// Domain by family.
    domain_of: Vec<Option<usize>>,
    /// Weight of the outermost group, by group.
    group_weights: Vec<u64>,
    pcpus: Vec<Pcpu>,
    idle: CpuSet,
    /// Active domains, in the order in which they get credits.
    order: Vec<usize>,
    balance_ns: i64,
    account_at_ns: u64,
    accounts: u64,
    kicks: CpuSet,
}

impl Credit {
    /// The scheduler for this machine.
    pub fn new(topology: Topology) -> Credit {
        let cpus = topology.cpus();
        let pcpu = |_| Pcpu {
            current: None,
            charged_ns: 0,
            slice_end_ns: 0,
            lent_to: None,
            queue: Vec::new(),
            sorted: 0,
        };
        Credit {
            topology,
            vcpus: Vec::new(),
            domains: Vec::new(),
            domain_of: Vec::new(),
            group_weights: vec![0],
            pcpus: (0..cpus).map(pcpu).collect(),
            idle: CpuSet::full(cpus),
            order: Vec::new(),
            balance_ns: 0,
            account_at_ns: SLICE_NS,
            accounts: 0,
            kicks: CpuSet::empty(cpus),
        }
    }

    fn priority(&self, task: Task) -> Priority {
        self.vcpus[task.index()].priority
    }

    /// Inserts a task behind those of its priority: __runq_insert().
    fn insert(&mut self, cpu: Cpu, task: Task) {
        let priority = self.priority(task);
        let queue = &self.pcpus[cpu.index()].queue;
        let position = queue
            .iter()
            .position(|other| priority > self.priority(*other))
            .unwrap_or(queue.len());
        self.pcpus[cpu.index()].queue.insert(position, task);
        self.vcpus[task.index()].cpu = cpu;
    }

    /// Moves tasks up that have become UNDER, after an accounting: csched_runq_sort().
    fn sort(&mut self, cpu: Cpu) {
        let accounts = self.accounts;
        let pcpu = &mut self.pcpus[cpu.index()];
        if std::mem::replace(&mut pcpu.sorted, accounts) != accounts {
            let vcpus = &self.vcpus;
            pcpu.queue
                .sort_by_key(|task| vcpus[task.index()].priority == Priority::Over);
        }
    }

    /// Takes a task of higher priority from another pCPU, the next one first: csched_load_balance(),
    /// csched_runq_steal().
    fn steal(&self, cpu: Cpu, above: Option<Priority>) -> Option<(Cpu, Task)> {
        let cpus = self.topology.cpus();
        let peers = (1..cpus).map(|step| Cpu((cpu.0 + step) % cpus));
        peers
            .filter(|peer| self.pcpus[peer.index()].current.is_some())
            .find_map(|peer| {
                let queue = self.pcpus[peer.index()].queue.iter();
                let mut urgent = queue.take_while(|task| Some(self.priority(**task)) > above);
                urgent
                    .find(|task| self.vcpus[task.index()].allowed.contains(cpu))
                    .map(|task| (peer, *task))
            })
    }

    /// Makes an idle pCPU on which the task may run search for work: __runq_tickle().
    fn tickle(&mut self, cpu: Cpu, task: Task) {
        let allowed = &self.vcpus[task.index()].allowed;
        let everywhere = self.topology.around(cpu, Distance::Machine);
        let idlers = self
            .idle
            .within(everywhere)
            .filter(|idler| allowed.contains(*idler));
        if let Some(idler) =
            idlers.min_by_key(|idler| (self.topology.distance(cpu, *idler), *idler))
        {
            self.kicks.set(idler, true);
        }
    }
}

impl HostScheduler for Credit {
    fn add_group(&mut self, parent: Group, weight: u32) -> Group {
        let outermost = match self.group_weights[parent.index()] {
            0 => u64::from(weight.max(1)),
            inherited => inherited,
        };
        self.group_weights.push(outermost);
        Group(self.group_weights.len() as u32 - 1)
    }

    fn add_task(
        &mut self,
        group: Group,
        weight: u32,
        allowed: Allowed,
        family: Option<u32>,
    ) -> Task {
        let task = Task(self.vcpus.len() as u32);
        let known =
            family.and_then(|family| self.domain_of.get(family as usize).copied().flatten());
        let domain = known.unwrap_or_else(|| {
            let weight = match self.group_weights[group.index()] {
                0 => u64::from(weight.max(1)),
                outermost => outermost,
            };
            self.domains.push(Domain {
                weight,
                vcpus: Vec::new(),
                active: 0,
            });
            self.domains.len() - 1
        });
        if let Some(family) = family {
            let needed = (family as usize + 1).max(self.domain_of.len());
            self.domain_of.resize(needed, None);
            self.domain_of[family as usize] = Some(domain);
        }
        self.domains[domain].vcpus.push(task);
        let cpu = match &allowed {
            // Spreads tasks over pCPUs as Xen spreads the vCPUs of a new domain.
            Allowed::All => Cpu(task.0 % self.topology.cpus()),
            Allowed::Only(cpus) => cpus[task.index() % cpus.len()],
        };
        self.vcpus.push(Vcpu {
            domain,
            allowed,
            cpu,
            priority: Priority::Under,
            credit_ns: 0,
            active: false,
            state: State::Sleeps,
            charged_ns: 0,
        });
        task
    }

    fn select_cpu(&mut self, _now_ns: u64, task: Task, _waker: Option<Cpu>) -> Cpu {
        self.vcpus[task.index()].cpu
    }

    fn enqueue(&mut self, _now_ns: u64, task: Task, cpu: Cpu, why: Enqueue) {
        let vcpu = &mut self.vcpus[task.index()];
        if why == Enqueue::Wakeup && vcpu.priority == Priority::Under {
            vcpu.priority = Priority::Boost;
        }
        vcpu.state = State::Waits;
        self.insert(cpu, task);
    }

    fn wakeup_preempts(&mut self, _now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        let Some(current) = self.pcpus[cpu.index()].current else {
            return true;
        };
        self.tickle(cpu, woken);
        self.priority(woken) > self.priority(current)
    }

    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        self.sort(cpu);
        let first = self.pcpus[cpu.index()].queue.first().copied();
        let priority = first.map(|task| self.priority(task));
        let stolen = if priority > Some(Priority::Over) {
            None
        } else {
            self.steal(cpu, priority)
        };
        let (from, task) = match (stolen, first) {
            (Some(stolen), _) => stolen,
            (None, Some(first)) => (cpu, first),
            (None, None) => {
                self.idle.set(cpu, true);
                return None;
            }
        };
        self.pcpus[from.index()]
            .queue
            .retain(|other| *other != task);
        self.idle.set(cpu, false);
        let vcpu = &mut self.vcpus[task.index()];
        vcpu.cpu = cpu;
        vcpu.state = State::Runs;
        let pcpu = &mut self.pcpus[cpu.index()];
        pcpu.current = Some(task);
        pcpu.charged_ns = now_ns;
        if pcpu.lent_to.take() != Some(task) {
            pcpu.slice_end_ns = now_ns + SLICE_NS;
        }
        Some(task)
    }

    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        self.charge(now_ns, cpu);
        let Some(task) = self.pcpus[cpu.index()].current.take() else {
            return;
        };
        if runnable {
            self.vcpus[task.index()].state = State::Waits;
            self.insert(cpu, task);
        } else {
            self.vcpus[task.index()].state = State::Sleeps;
        }
    }

    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        self.charge(now_ns, cpu);
        self.account_running(cpu);
        if now_ns >= self.account_at_ns {
            self.account_at_ns = (now_ns / SLICE_NS + 1) * SLICE_NS;
            for other in 0..self.topology.cpus() {
                self.charge(now_ns, Cpu(other));
            }
            self.account();
        }
        self.sort(cpu);
        now_ns >= self.pcpus[cpu.index()].slice_end_ns
    }

    fn tick_period_ns(&self) -> u64 {
        TICK_NS
    }

    fn timer_ns(&self, cpu: Cpu) -> Option<u64> {
        let pcpu = &self.pcpus[cpu.index()];
        pcpu.current.map(|_| pcpu.slice_end_ns)
    }

    fn take_kick(&mut self) -> Option<Cpu> {
        self.kicks.take_first()
    }

    fn yield_now(&mut self, now_ns: u64, cpu: Cpu) {
        // do_yield() only reschedules: the current task goes behind those of its priority.
        self.charge(now_ns, cpu);
    }

    fn yield_to(&mut self, now_ns: u64, cpu: Cpu, target: Task) -> YieldTo {
        let vcpu = &self.vcpus[target.index()];
        let from = vcpu.cpu;
        if vcpu.state != State::Waits || !vcpu.allowed.contains(cpu) {
            return YieldTo::Refused;
        }
        self.charge(now_ns, cpu);
        self.pcpus[from.index()]
            .queue
            .retain(|other| *other != target);
        let priority = self.priority(target);
        let queue = &self.pcpus[cpu.index()].queue;
        let behind = |other: &Task| self.priority(*other) <= priority;
        let position = queue.iter().position(behind).unwrap_or(queue.len());
        self.pcpus[cpu.index()].queue.insert(position, target);
        self.pcpus[cpu.index()].lent_to = Some(target);
        self.vcpus[target.index()].cpu = cpu;
        YieldTo::Yielded
    }

    fn charged_ns(&self, task: Task) -> u64 {
        self.vcpus[task.index()].charged_ns
    }

    fn runnable(&self, cpu: Cpu) -> u32 {
        let pcpu = &self.pcpus[cpu.index()];
        pcpu.queue.len() as u32 + u32::from(pcpu.current.is_some())
    }

    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        let vcpu = &self.vcpus[task.index()];
        (vcpu.state != State::Sleeps).then_some(vcpu.cpu)
    }
}
