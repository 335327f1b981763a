// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events of a timeline: every change of the state of a vCPU, pCPU, lock or timer.

use crate::ids::{Cpu, Lock, Task};

/// A change of state, by the kernel's name for it where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TraceEvent {
    /// A task got the pCPU.
    SwitchIn {
        /// The task.
        task: Task,
    },
    /// A task left the pCPU.
    SwitchOut {
        /// The task.
        task: Task,
        /// Whether it is still runnable.
        runnable: bool,
        /// Whether the scheduler preempted it; otherwise it left by itself.
        preempted: bool,
    },
    /// A sleeping task became runnable; the event's pCPU is the waker's.
    Wakeup {
        /// The task.
        task: Task,
        /// The pCPU in whose queue it waits.
        target: Cpu,
    },
    /// The vCPU on this pCPU continues in user mode.
    User,
    /// The vCPU on this pCPU continues in kernel mode.
    Kernel,
    /// The vCPU on this pCPU requests a lock.
    LockAsked {
        /// The lock.
        lock: Lock,
    },
    /// It holds the lock from now on.
    LockTaken {
        /// The lock.
        lock: Lock,
    },
    /// It has released the lock.
    LockReleased {
        /// The lock.
        lock: Lock,
    },
    /// A pause-loop exit.
    PauseExit {
        /// The window in force, in the hardware's unit.
        window: u32,
    },
    /// `kvm_vcpu_on_spin()` called `yield_to()` for that task, with this result.
    YieldTo {
        /// The task.
        target: Task,
        /// As the kernel's function returns it: above 0 done, 0 refused, below 0 failed.
        result: i32,
    },
    /// An exit for another reason.
    Exit {
        /// The reason.
        reason: ExitReason,
    },
    /// An entry into the guest.
    Entry,
    /// The vCPU on this pCPU sends an inter-processor interrupt.
    IpiSent {
        /// The receivers.
        receiver: Task,
        /// Its vector.
        vector: Vector,
    },
    /// The vCPU on this pCPU begins to handle an interrupt.
    InterruptTaken {
        /// Its vector.
        vector: Vector,
    },
    /// It has handled the interrupt.
    InterruptDone,
    /// The guest is idle: HLT. This state ends with the next entry.
    Halted,
    /// A loan or grant begins: the task runs on borrowed time.
    BorrowBegin {
        /// The task.
        task: Task,
    },
    /// It ends.
    BorrowEnd {
        /// The task.
        task: Task,
    },
}

/// The reason of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// An interrupt for the host: tick, kick, reschedule.
    Interrupt,
    /// HLT.
    Halt,
    /// A page fault that the host must handle.
    PageFault,
    /// A hypercall.
    Hypercall,
    /// A write to the interrupt controller: an IPI that the hardware does not deliver itself.
    Apic,
}

/// The purpose of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// The guest's own tick.
    Tick,
    /// A function call that its sender waits for: TLB shootdown.
    Shootdown,
    /// Wakes a halted vCPU, which checks for work.
    Reschedule,
}

/// Receives every change.
pub trait Observer {
    /// An event on that pCPU; `task` is its current task, if any.
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent);
}

/// An observer that ignores all events.
impl Observer for () {
    #[inline(always)]
    fn on_event(&mut self, _: u64, _: Cpu, _: Option<Task>, _: TraceEvent) {}
}
