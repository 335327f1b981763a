// SPDX-License-Identifier: MIT OR Apache-2.0
//! eCS: `policy/steering/ecs.h`, `policy/classify/ecs_class.h`.
//!
//! Critical sections of guests that are not annotated: `policy/steering/counts.h`, `policy/classify/critical_functions.h`.

use std::ffi::CString;

use crate::raw;

/// Length of the extra schedule, ns.
pub const ECS_EXTRA_NS: u64 = raw::UNSPIN_BUDGET_NS as u64;

/// The extra schedules of one vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ecs {
    give_back: bool,
    state: raw::unspin_policy_state,
}

impl Ecs {
    /// The paper's form, or ours, which ends the extra schedule at unlock.
    pub fn new(give_back: bool) -> Self {
        Ecs {
            give_back,
            state: raw::unspin_policy_state::default(),
        }
    }

    /// The vCPU begins a slice.
    pub fn on_slice_start(&mut self) {
        // SAFETY: the pointers are to valid structs, used for the length of the call only.
        unsafe { raw::ecs_on_slice_start(&facts(None), &mut self.state) }
    }

    /// Its slice is used up at a tick, with this many critical sections. Returns for how long it continues, ns; `None`:
    /// it leaves.
    pub fn on_slice_end(&mut self, critical: Option<u32>) -> Option<u64> {
        // SAFETY: the pointers are to valid structs, used for the length of the call only.
        let decision = unsafe { raw::ecs_on_slice_end(&facts(critical), &mut self.state) };
        (decision.budget_ns != 0).then_some(decision.budget_ns.into())
    }

    /// It runs on its extra schedule and is polled. Returns whether it leaves now.
    pub fn on_poll(&mut self, critical: Option<u32>) -> bool {
        let ask = if self.give_back {
            raw::ecs_give_back_on_poll
        } else {
            raw::ecs_on_poll
        };
        // SAFETY: the pointers are to valid structs, used for the length of the call only.
        let decision = unsafe { ask(&facts(critical), &mut self.state) };
        decision.action == raw::UNSPIN_GIVE_BACK
    }
}

/// Facts in which all is unknown except, if given, the number of critical sections that the vCPU is in.
fn facts(critical: Option<u32>) -> raw::unspin_facts {
    let mut facts = raw::unspin_facts::default();
    // SAFETY: each pointer is to a valid struct, used for the length of the call only.
    unsafe {
        raw::vcpu_is_unknown(&mut facts.self_);
        raw::vcpu_is_unknown(&mut facts.candidate);
        raw::order_is_unknown(&mut facts.order);
    }
    if let Some(value) = critical {
        facts.self_.critical = raw::unspin_fact { value, age_ns: 0 };
    }
    facts
}

/// How many preemptions in critical sections were avoided (ruling 22).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcsAccount {
    /// Slice boundaries reached in a critical section, ends of extra schedules included.
    pub boundaries: u64,
    /// Those of them at which the vCPU was descheduled.
    pub descheduled: u64,
    /// Preemptions by a wake-up in a critical section, which are no slice boundaries.
    pub by_wakeup: u64,
}

impl EcsAccount {
    /// The share that was avoided, ppm; `None` without any boundary.
    pub fn avoided_ppm(&self) -> Option<u64> {
        let account = raw::unspin_ecs_account {
            boundaries: self.boundaries,
            descheduled: self.descheduled,
            by_wakeup: self.by_wakeup,
        };
        // SAFETY: reads a valid struct for the length of the call.
        let ppm = unsafe { raw::unspin_ecs_avoided_ppm(&account) };
        (ppm != raw::UNSPIN_UNKNOWN as u64).then_some(ppm)
    }
}

/// The class of a preempted vCPU (ruling 23), in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EcsClass {
    /// Interrupt context preemption.
    Icp,
    /// Lock holder preemption, non-blocking lock.
    NbLhp,
    /// RCU reader preemption.
    Rrp,
    /// Lock holder preemption, blocking lock.
    BLhp,
    /// Reader preemption.
    Rp,
    /// In no critical section.
    None,
}

impl EcsClass {
    /// All classes, in order of precedence.
    pub const ALL: [EcsClass; raw::UNSPIN_ECS_CLASSES as usize] = [
        EcsClass::Icp,
        EcsClass::NbLhp,
        EcsClass::Rrp,
        EcsClass::BLhp,
        EcsClass::Rp,
        EcsClass::None,
    ];

    /// From `enum unspin_ecs_class`; `None`: in no critical section.
    pub(crate) fn of(number: u32) -> Option<EcsClass> {
        let class = EcsClass::ALL.get(number as usize).copied();
        class.filter(|class| *class != EcsClass::None)
    }

    /// The paper's abbreviation.
    pub fn name(self) -> &'static str {
        match self {
            EcsClass::Icp => "ICP",
            EcsClass::NbLhp => "NB-LHP",
            EcsClass::Rrp => "RRP",
            EcsClass::BLhp => "B-LHP",
            EcsClass::Rp => "RP",
            EcsClass::None => "none",
        }
    }
}

/// The number of critical sections that a vCPU is in, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcsCounters {
    /// Spinlocks.
    pub spin: u32,
    /// rwlocks held for writing.
    pub rwlock_write: u32,
    /// rwlocks held for reading.
    pub rwlock_read: u32,
    /// RCU read sections.
    pub rcu: u32,
    /// Interrupts being handled.
    pub interrupt: u32,
    /// Mutexes of the running task.
    pub mutex: u32,
    /// rwsems that the running task holds for writing.
    pub rwsem_write: u32,
    /// rwsems that the running task holds for reading.
    pub rwsem_read: u32,
}

impl EcsCounters {
    fn raw(&self) -> raw::unspin_ecs_counters {
        raw::unspin_ecs_counters {
            spin: self.spin,
            rwlock_write: self.rwlock_write,
            rwlock_read: self.rwlock_read,
            rcu: self.rcu,
            interrupt: self.interrupt,
            mutex: self.mutex,
            rwsem_write: self.rwsem_write,
            rwsem_read: self.rwsem_read,
        }
    }

    /// The paper's two sums: `non_preemptable_ecs_count` and `preemptable_ecs_count`.
    pub fn sums(&self) -> (u32, u32) {
        let raw = self.raw();
        // SAFETY: reads a valid struct for the length of the calls.
        unsafe {
            (
                raw::unspin_ecs_non_preemptable(&raw),
                raw::unspin_ecs_preemptable(&raw),
            )
        }
    }

    /// The class in which a preemption is counted.
    pub fn class(&self) -> EcsClass {
        // SAFETY: reads a valid struct for the length of the call.
        let class = unsafe { raw::unspin_ecs_class(&self.raw()) };
        EcsClass::ALL[class as usize]
    }

    /// All classes that apply.
    pub fn classes(&self) -> impl Iterator<Item = EcsClass> + use<> {
        // SAFETY: reads a valid struct for the length of the call.
        let classes = unsafe { raw::unspin_ecs_classes(&self.raw()) };
        let all = EcsClass::ALL.into_iter().enumerate();
        all.filter_map(move |(bit, class)| (classes >> bit & 1 == 1).then_some(class))
    }
}

/// `pcpu_overloaded`: whether another task could run on this pCPU now, given the number of other runnable tasks in its
/// queue.
pub fn pcpu_overloaded(others: u32) -> bool {
    // SAFETY: a function of a number alone.
    unsafe { raw::unspin_pcpu_overloaded(others) != 0 }
}

/// Whether a waiter of a blocking lock continues to spin under SchdSpin (ruling 24), given the runnable tasks of its
/// vCPU.
pub fn schd_spins(guest_tasks: u32) -> bool {
    // SAFETY: a function of a number alone.
    unsafe { raw::unspin_schd_spins(guest_tasks) }
}

/// The same under eSchdSpin, which also takes `pcpu_overloaded`.
pub fn eschd_spins(guest_tasks: u32, overloaded: bool) -> bool {
    // SAFETY: a function of numbers alone.
    unsafe { raw::unspin_eschd_spins(guest_tasks, overloaded.into()) }
}

/// The bit of Linux's preempt count that is not part of the count.
pub const PREEMPT_NEED_RESCHED: u32 = raw::UNSPIN_PREEMPT_NEED_RESCHED;

/// The counts that were read of one CPU of a guest's kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountsSeen {
    /// `__preempt_count`.
    pub preempt_count: u32,
    /// Whether the idle task runs.
    pub idle: bool,
    /// `rcu_read_lock_nesting` of the running task.
    pub rcu_nesting: i32,
    /// Number of mutexes and reader-writer semaphores that it waits for or holds.
    pub sleeping: u32,
}

impl CountsSeen {
    /// Number of kinds of critical sections that it is in; 0: none.
    pub fn critical(self) -> u32 {
        let seen = raw::unspin_counts_seen {
            preempt_count: self.preempt_count,
            task_flags: if self.idle { raw::UNSPIN_PF_IDLE } else { 0 },
            rcu_nesting: self.rcu_nesting as u32,
            sleeping: self.sleeping,
        };
        // SAFETY: a live struct, used for the length of the call only.
        unsafe { raw::unspin_counts_critical(&seen) }
    }
}

/// The class of critical section in which a Linux kernel is while it executes this function; `None`: not known.
pub fn critical_function(symbol: &str) -> Option<EcsClass> {
    let symbol = CString::new(symbol).ok()?;
    // SAFETY: a C string, used for the length of the call only.
    EcsClass::of(unsafe { raw::unspin_critical_function(symbol.as_ptr()) })
}
