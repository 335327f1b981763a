// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words for who is who, and the sentence that sums a VM up.

use unspin_events::{
    GuestMode,
    facts::Facts,
    vm_identity::{NAME_LENGTH_MAX, printable},
};

use crate::{
    explain::{
        attribution::{Blame, VmExplanation},
        cause::Cause,
    },
    waits::presence::{Left, Occupant},
};

/// Shares below that are not worth a clause, percent of spin time.
const CLAUSE_PERCENT: f64 = 1.0;

/// A VM: by its manager's name for it, else by its process or number.
pub fn vm_name(facts: &Facts, vm: u32) -> String {
    facts.vm_name(vm)
}

/// Who had a CPU.
pub fn occupant(facts: &Facts, own_vm: u32, occupant: Occupant, time_ns: u64) -> String {
    match occupant {
        Occupant::Vcpu { vm, vcpu } if vm == own_vm => format!("own vCPU {vcpu}"),
        Occupant::Vcpu { vm, .. } => vm_name(facts, vm),
        Occupant::Idle => "nobody (idle)".to_owned(),
        Occupant::Task(thread) => facts.task_at(thread, time_ns).map_or_else(
            || format!("thread {thread}"),
            |task| format!("{} ({thread})", printable(&task.comm, NAME_LENGTH_MAX)),
        ),
    }
}

/// How a vCPU left its CPU.
pub fn left(left: &Left) -> &'static str {
    match (left.runnable, left.preempt, left.mode) {
        (false, ..) => "halted",
        (true, false, Some(GuestMode::User)) => "yielded, user",
        (true, false, Some(GuestMode::Kernel)) => "yielded, kernel",
        (true, false, None) => "yielded",
        (true, true, Some(GuestMode::User)) => "preempted, user",
        (true, true, Some(GuestMode::Kernel)) => "preempted, kernel",
        (true, true, None) => "preempted",
    }
}

/// What was waited for, for people.
pub fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::HolderPreempted => "LHP",
        Cause::NextWaiterPreempted => "LWP",
        Cause::CallUser => "function call, receiver preempted in user mode",
        Cause::CallKernel => "function call, receiver off CPU in the kernel",
        Cause::CallHalted => "function call, receiver halted",
        Cause::Contention => "contention, all running",
        Cause::Unknown => "unknown",
    }
}

/// "vm0 lost 31.0 % of its CPU time: 64 % of that to ..., 6 % unknown".
pub fn sentence(facts: &Facts, vm: u32, of: &VmExplanation, time_ns: u64) -> String {
    let (spin_ns, name) = (of.spin_time.total(), vm_name(facts, vm));
    if of.cpu_ns == 0 {
        return format!("{name}: its vCPUs had no CPU in this recording.");
    }
    let percent = |ns: u64, of: u64| 100.0 * ns as f64 / of.max(1) as f64;
    let lost = percent(spin_ns, of.cpu_ns);
    if spin_ns == 0 {
        return format!("{name} lost nothing that its pause-loop exits show.");
    }
    let clauses: Vec<String> = Cause::ALL
        .into_iter()
        .filter(|&cause| percent(of.spin_time.of(cause), spin_ns) >= CLAUSE_PERCENT)
        .map(|cause| {
            let share = percent(of.spin_time.of(cause), spin_ns);
            format!("{share:.0} % {}", clause(facts, vm, of, cause, time_ns))
        })
        .collect();
    format!(
        "{name} lost {lost:.1} % of its CPU time to spinning; of that {}.",
        clauses.join("; ")
    )
}

/// What a cause's share went to, and whom most of it can be blamed on.
fn clause(facts: &Facts, vm: u32, of: &VmExplanation, cause: Cause, time_ns: u64) -> String {
    let to = match cause {
        Cause::HolderPreempted => "to lock holders off their CPU",
        Cause::NextWaiterPreempted => "to preempted next waiters",
        Cause::CallUser => "to function calls to vCPUs preempted in user mode",
        Cause::CallKernel => "to function calls to vCPUs off their CPU in the kernel",
        Cause::CallHalted => "to function calls to halted vCPUs",
        Cause::Contention => "to contention with all concerned running",
        Cause::Unknown => return "unknown".to_owned(),
    };
    if !cause.is_preemption() {
        return to.to_owned();
    }
    let whom = largest(of, cause, |blame| blame.vcpu);
    let instead = largest(of, cause, |blame| blame.instead.map(|who| group(vm, who)));
    let mut words = to.to_owned();
    if let Some((vcpu, share)) = whom {
        words += &format!(" (most for vCPU {vcpu}: {share:.0} %");
        if let Some((who, share)) = instead {
            let who = match who {
                Occupant::Vcpu { vm: other, .. } if other == vm => "its own vCPUs".to_owned(),
                other => occupant(facts, vm, other, time_ns),
            };
            words += &format!("; {who} ran instead: {share:.0} %");
        }
        words += ")";
    }
    words
}

/// All vCPUs of a VM count as one VM.
fn group(_vm: u32, who: Occupant) -> Occupant {
    match who {
        Occupant::Vcpu { vm, .. } => Occupant::Vcpu { vm, vcpu: 0 },
        other => other,
    }
}

/// The value with the largest share of a cause, and that share in percent.
fn largest<T: Ord + Copy>(
    of: &VmExplanation,
    cause: Cause,
    value: impl Fn(&Blame) -> Option<T>,
) -> Option<(T, f64)> {
    let mut sums = std::collections::BTreeMap::new();
    for (blame, ns) in of.blame.iter().filter(|(blame, _)| blame.cause == cause) {
        if let Some(value) = value(blame) {
            *sums.entry(value).or_insert(0u64) += ns;
        }
    }
    let (value, ns) = sums.into_iter().max_by_key(|(_, ns)| *ns)?;
    Some((
        value,
        100.0 * ns as f64 / of.spin_time.of(cause).max(1) as f64,
    ))
}

/// What was waited for, in a few letters.
pub fn short_cause(cause: Cause) -> &'static str {
    match cause {
        Cause::HolderPreempted => "LHP",
        Cause::NextWaiterPreempted => "LWP",
        Cause::CallUser => "call: user",
        Cause::CallKernel => "call: kernel",
        Cause::CallHalted => "call: halted",
        Cause::Contention => "contention",
        Cause::Unknown => "unknown",
    }
}
