// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a timeline shows: every change of the state of a vCPU, pCPU, lock or timer.

use crate::ids::{Cpu, Lock, Task};

/// A change of state. Words are the kernel's where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceEvent {
    /// A task got the pCPU.
    SwitchIn {
        /// Who.
        task: Task,
    },
    /// A task left the pCPU.
    SwitchOut {
        /// Who.
        task: Task,
        /// It still wants to run.
        runnable: bool,
        /// The scheduler took the pCPU; otherwise it left by itself.
        preempted: bool,
    },
    /// A sleeping task became runnable; "on that pCPU" is where it was woken from.
    Wakeup {
        /// Who.
        task: Task,
        /// In whose queue it waits.
        target: Cpu,
    },
    /// The vCPU on this pCPU goes on in user mode.
    User,
    /// The vCPU on this pCPU goes on in kernel mode.
    Kernel,
    /// The vCPU on this pCPU asks for a lock.
    LockAsked {
        /// Which.
        lock: Lock,
    },
    /// It holds the lock from now on.
    LockTaken {
        /// Which.
        lock: Lock,
    },
    /// It has let go.
    LockReleased {
        /// Which.
        lock: Lock,
    },
    /// The guest was left: pause-loop exit.
    PauseExit {
        /// The window in force, in the hardware's unit.
        window: u32,
    },
    /// `kvm_vcpu_on_spin()` asked the scheduler for that task and got this answer.
    YieldTo {
        /// Who was to run.
        target: Task,
        /// As the kernel's function returns it: above 0 done, 0 refused, below 0 failed.
        result: i32,
    },
    /// The guest was left for another reason.
    Exit {
        /// Why.
        reason: ExitReason,
    },
    /// The guest was entered.
    Entry,
    /// The vCPU on this pCPU sends an inter-processor interrupt.
    IpiSent {
        /// To whom.
        receiver: Task,
        /// What for.
        vector: Vector,
    },
    /// The vCPU on this pCPU handles an interrupt from now on.
    InterruptTaken {
        /// What for.
        vector: Vector,
    },
    /// It is done with it.
    InterruptDone,
    /// The guest has nothing to do: HLT. It ends with the next entry.
    Halted,
    /// A loan or grant begins: the task runs on time that is not its own.
    BorrowBegin {
        /// Who.
        task: Task,
    },
    /// It ends.
    BorrowEnd {
        /// Who.
        task: Task,
    },
}

/// Why a guest was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// An interrupt for the host: tick, kick, reschedule.
    Interrupt,
    /// HLT.
    Halt,
    /// A page that the host has to fetch.
    PageFault,
    /// A hypercall.
    Hypercall,
    /// A write to the interrupt controller: an IPI that the hardware does not deliver by itself.
    Apic,
}

/// What an interrupt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// The guest's own tick.
    Tick,
    /// A function call that its sender waits for: TLB shootdown.
    Shootdown,
    /// A halted vCPU is to look for work.
    Reschedule,
}

/// Receives every change.
pub trait Observer {
    /// It happened on that pCPU. `task` is the current one, if any.
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent);
}

/// Nobody.
impl Observer for () {
    #[inline(always)]
    fn on_event(&mut self, _: u64, _: Cpu, _: Option<Task>, _: TraceEvent) {}
}
