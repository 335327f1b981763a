// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host schedulers: one interface, several schedulers by name and version.
//!
//! The world ([`crate::World`]) owns time, pCPUs and tasks, and calls the scheduler where the kernel would. A scheduler
//! keeps run queues and accounts, and tracks by `pick_next` and `put_previous` which task runs where. All arithmetic
//! is integer; a scheduler that uses random numbers is given its own generator.

mod cpu_set;
pub mod credit;
pub mod fair;
pub mod gang;
pub mod names;
mod round_robin;
mod steer;

pub use self::names::from_name;
pub use round_robin::RoundRobin;
pub use steer::Steer;

use crate::ids::{Cpu, Group, Task};

/// Weight of nice 0: `NICE_0_LOAD` without the kernel's resolution shift (kernel/sched/sched.h).
pub const NICE_0_WEIGHT: u32 = 1024;

/// A set of pCPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// All of them.
    All,
    /// These, ascending and not empty.
    Only(Vec<Cpu>),
}

impl Allowed {
    /// Whether a task may run there.
    pub fn contains(&self, cpu: Cpu) -> bool {
        match self {
            Allowed::All => true,
            Allowed::Only(cpus) => cpus.binary_search(&cpu).is_ok(),
        }
    }
}

/// Why a task is enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    /// Its first time.
    New,
    /// It has woken up.
    Wakeup,
}

/// The result of `yield_to`, as the kernel's function returns it (kernel/sched/syscalls.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum YieldTo {
    /// Above 0: the yielder must be rescheduled, and so must the target's pCPU if it is another.
    Yielded,
    /// 0: the scheduler refused.
    Refused,
    /// -ESRCH: neither queue has another task.
    Alone,
}

/// A host scheduler. Times are nanoseconds and never decrease. The world keeps to this protocol:
/// - a task is runnable from `enqueue` until a `put_previous` with `runnable` false;
/// - `pick_next` is called only on a pCPU without a current task, and the task it returns is current until
///   `put_previous`;
/// - after each call that returns "reschedule", `put_previous(.., true)` and `pick_next` follow on that pCPU, perhaps a
///   little later.
pub trait HostScheduler {
    /// Adds a group below `parent` with this weight (the kernel's `cpu.weight` scaled so that 1024 is the default of
    /// 100). Groups are added before tasks, and are numbered from 1; 0 is the root.
    fn add_group(&mut self, parent: Group, weight: u32) -> Group;

    /// Adds a task that does not run yet. `family`: common to the tasks of one VM; `None`: of no VM. Tasks are numbered
    /// from 0.
    fn add_task(
        &mut self,
        group: Group,
        weight: u32,
        allowed: Allowed,
        family: Option<u32>,
    ) -> Task;

    /// The pCPU on which a sleeping task will wait. `waker`: the pCPU that wakes it; `None`: none.
    fn select_cpu(&mut self, now_ns: u64, task: Task, waker: Option<Cpu>) -> Cpu;

    /// The task is runnable on that pCPU's queue from now on.
    fn enqueue(&mut self, now_ns: u64, task: Task, cpu: Cpu, why: Enqueue);

    /// Whether a task that was just enqueued is to run instead of the current one: reschedule.
    fn wakeup_preempts(&mut self, now_ns: u64, cpu: Cpu, woken: Task) -> bool;

    /// The task that runs next; may be taken from another pCPU if there is none (newidle balancing). `None`: idle.
    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task>;

    /// The current task stops running; `runnable`: it waits in the queue, otherwise it sleeps.
    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool);

    /// The periodic tick on a pCPU that runs a task; true: reschedule. Includes balancing between queues.
    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool;

    /// Time between two ticks of a pCPU, ns: 1 / HZ, or the scheduler's own period.
    fn tick_period_ns(&self) -> u64;

    /// When `tick` must be called on that pCPU besides the periodic one, ns, if at all; called again after every call
    /// that concerns the pCPU. A time in the past means at once.
    fn timer_ns(&self, _cpu: Cpu) -> Option<u64> {
        None
    }

    /// A pCPU that must call `pick_next` (if it is idle) or reschedule (if not) because of a call that concerned
    /// another one; called until `None` after every call of `tick` and of `wakeup_preempts`.
    fn take_kick(&mut self) -> Option<Cpu> {
        None
    }

    /// The current task calls `sched_yield`; the world reschedules that pCPU afterwards.
    fn yield_now(&mut self, now_ns: u64, cpu: Cpu);

    /// The current task of `cpu` yields to `target` (`yield_to(target, preempt = true)`).
    fn yield_to(&mut self, now_ns: u64, cpu: Cpu, target: Task) -> YieldTo;

    /// CPU time charged to a task so far, ns, as of its last accounting.
    fn charged_ns(&self, task: Task) -> u64;

    /// Number of runnable tasks of that pCPU's queue, the current one included.
    fn runnable(&self, cpu: Cpu) -> u32;

    /// The pCPU of a runnable or running task; `None`: it sleeps.
    fn cpu_of(&self, task: Task) -> Option<Cpu>;

    /// The scheduler itself if policies can steer it.
    fn steering(&mut self) -> Option<&mut Steer> {
        None
    }
}
