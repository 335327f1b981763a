// SPDX-License-Identifier: MIT OR Apache-2.0
//! The switch trace of one VM: which of its vCPUs was on a pCPU when.

use std::collections::BTreeMap;

use crate::{Event, What};

/// What a vCPU thread was doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// On a pCPU.
    Running,
    /// Waiting for one: preempted, or it yielded, or it was just woken.
    Runnable,
    /// Halted, or waiting in user space.
    Asleep,
}

impl ThreadState {
    /// Whether the vCPU cannot execute a single instruction.
    pub fn is_off_cpu(self) -> bool {
        self != ThreadState::Running
    }
}

/// The states of one VM's vCPUs over time.
#[derive(Clone, Debug, Default)]
pub struct SwitchTrace {
    vcpus: BTreeMap<u16, Vec<(u64, ThreadState)>>,
}

impl SwitchTrace {
    /// From the events of VM `vm`; others are skipped. `observed` names its vCPUs: one of them that never switched ran
    /// all the time. Events of equal time keep the order in which they come.
    pub fn new<'a>(
        vm: u32,
        observed: impl IntoIterator<Item = u16>,
        events: impl IntoIterator<Item = &'a Event>,
    ) -> SwitchTrace {
        let mut vcpus: BTreeMap<u16, Vec<(u64, ThreadState)>> = observed
            .into_iter()
            .map(|vcpu| (vcpu, Vec::new()))
            .collect();
        for event in events {
            let (Some(vcpu), true) = (event.vcpu, event.vm == Some(vm)) else {
                continue;
            };
            let state = match event.what {
                What::SwitchIn { .. } => ThreadState::Running,
                What::SwitchOut { runnable: true, .. } | What::SchedWakeup { .. } => {
                    ThreadState::Runnable
                }
                What::SwitchOut {
                    runnable: false, ..
                } => ThreadState::Asleep,
                _ => continue,
            };
            vcpus.entry(vcpu).or_default().push((event.time_ns, state));
        }
        for changes in vcpus.values_mut() {
            changes.sort_by_key(|&(time_ns, _)| time_ns);
        }
        SwitchTrace { vcpus }
    }

    /// What the vCPU was doing at `time_ns`; `None` if it was not observed. Before its first change it was doing what
    /// that change ended: it was running when it was first seen, so only a lost event makes that another state.
    pub fn state_at(&self, vcpu: u16, time_ns: u64) -> Option<ThreadState> {
        let changes = self.vcpus.get(&vcpu)?;
        let later = changes.partition_point(|&(at_ns, _)| at_ns <= time_ns);
        match later.checked_sub(1) {
            Some(last) => Some(changes[last].1),
            None => match changes.first() {
                Some((_, ThreadState::Running)) => Some(ThreadState::Runnable),
                _ => Some(ThreadState::Running),
            },
        }
    }
}
