// SPDX-License-Identifier: MIT OR Apache-2.0
//! CPU time of each VM, and of everything else on the CPUs that VMs used, from switches alone.
//!
//! A switch names who leaves and who follows. Between the moment that a vCPU leaves a pCPU and the moment that one comes
//! back, the task that followed ran, or others after it: host tasks, if both the first and the last were any; the idle
//! task is nobody. What a loss of events leaves open is not counted.

use std::collections::{BTreeMap, HashMap, HashSet};

use unspin_events::{Event, What};

/// CPU times, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes {
    /// Of all vCPU threads, by VM: guest and KVM together.
    pub vm_ns: BTreeMap<u32, u64>,
    /// Of host tasks that ran between two vCPUs.
    pub host_ns: u64,
    /// Times at which events were lost: what ran then is not counted.
    pub losses: u64,
}

/// Builds [`CpuTimes`] from events in order of time. Memory: per vCPU thread and pCPU.
#[derive(Clone, Debug, Default)]
pub struct CpuTimer {
    times: CpuTimes,
    /// vCPU threads that run: their VM, and since when.
    running: HashMap<u32, (u32, u64)>,
    /// vCPU threads that were seen to leave: only a switch brings them back.
    away: HashSet<u32>,
    /// pCPUs on which a host task followed a vCPU, and when.
    host_tasks: HashMap<u16, u64>,
    last_ns: u64,
}

impl CpuTimer {
    /// The next event.
    pub fn see(&mut self, event: &Event) {
        self.last_ns = event.time_ns;
        match event.what {
            What::Lost { .. } => {
                self.times.losses += 1;
                self.running.clear();
                self.away.clear();
                self.host_tasks.clear();
            }
            What::SwitchIn {
                previous_thread, ..
            } => self.switch_in(event, previous_thread),
            What::SwitchOut {
                next_thread,
                next_vm,
                ..
            } => self.switch_out(event, next_thread, next_vm),
            What::SchedWakeup { .. } | What::GuestWait { .. } | What::PvPage { .. } => {}
            // All others happen on the vCPU's thread: it runs.
            _ => self.on_cpu(event),
        }
    }

    /// The sums up to the last event.
    pub fn finish(mut self) -> CpuTimes {
        for (vm, since_ns) in std::mem::take(&mut self.running).into_values() {
            self.add(vm, since_ns, self.last_ns);
        }
        self.times
    }

    fn on_cpu(&mut self, event: &Event) {
        if let (Some(vm), false) = (event.vm, self.away.contains(&event.thread)) {
            self.running
                .entry(event.thread)
                .or_insert((vm, event.time_ns));
        }
    }

    fn switch_in(&mut self, event: &Event, previous_thread: u32) {
        let Some(vm) = event.vm else { return };
        self.away.remove(&event.thread);
        self.running.insert(event.thread, (vm, event.time_ns));
        if let Some(since_ns) = self.host_tasks.remove(&event.cpu) {
            if previous_thread != 0 {
                self.times.host_ns += event.time_ns.saturating_sub(since_ns);
            }
        }
    }

    fn switch_out(&mut self, event: &Event, next_thread: u32, next_vm: Option<u32>) {
        self.away.insert(event.thread);
        if let Some((vm, since_ns)) = self.running.remove(&event.thread) {
            self.add(vm, since_ns, event.time_ns);
        }
        if next_thread != 0 && next_vm.is_none() {
            self.host_tasks.insert(event.cpu, event.time_ns);
        }
    }

    fn add(&mut self, vm: u32, since_ns: u64, until_ns: u64) {
        *self.times.vm_ns.entry(vm).or_default() += until_ns.saturating_sub(since_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ns: u64, vm: u32, thread: u32, what: What) -> Event {
        Event {
            time_ns,
            vm: Some(vm),
            vcpu: Some(0),
            thread,
            cpu: 0,
            what,
        }
    }

    fn switch_in(time_ns: u64, vm: u32, thread: u32, previous_thread: u32) -> Event {
        let what = What::SwitchIn {
            previous_thread,
            previous_vm: None,
        };
        event(time_ns, vm, thread, what)
    }

    fn switch_out(
        time_ns: u64,
        vm: u32,
        thread: u32,
        next_thread: u32,
        next_vm: Option<u32>,
    ) -> Event {
        let what = What::SwitchOut {
            next_thread,
            next_vm,
            runnable: true,
            preempt: true,
            mode: None,
            exit_code: None,
            guest_rip: None,
        };
        event(time_ns, vm, thread, what)
    }

    fn times(events: &[Event]) -> CpuTimes {
        let mut timer = CpuTimer::default();
        events.iter().for_each(|event| timer.see(event));
        timer.finish()
    }

    #[test]
    fn vms_and_host_tasks_are_told_apart() {
        let found = times(&[
            event(100, 0, 10, What::KvmVcpuOnSpin), // was running when the recording began
            switch_out(150, 0, 10, 20, Some(1)),
            switch_in(150, 1, 20, 10),
            switch_out(250, 1, 20, 77, None),
            switch_in(280, 0, 10, 78), // 77, then 78: host tasks
            switch_out(300, 0, 10, 0, None),
            switch_in(900, 0, 10, 0), // idle in between
            switch_out(910, 0, 10, 77, None),
            switch_in(990, 0, 10, 0), // a task, then idle: nobody knows how long each
            event(1_000, 0, 10, What::KvmVcpuOnSpin),
        ]);
        assert_eq!(
            found.vm_ns,
            BTreeMap::from([(0, 50 + 20 + 10 + 10), (1, 100)])
        );
        assert_eq!((found.host_ns, found.losses), (30, 0));
    }

    #[test]
    fn what_a_loss_leaves_open_is_not_counted() {
        let lost = What::Lost {
            events: u64::MAX,
            lost_kind: 0,
        };
        let found = times(&[
            switch_in(100, 0, 10, 0),
            event(200, 0, 10, lost),
            switch_out(900, 0, 10, 77, None),
            event(950, 0, 10, What::KvmVcpuOnSpin), // of before: it is away
            switch_in(1_000, 0, 10, 77),
            switch_out(1_100, 0, 10, 0, None),
        ]);
        assert_eq!(found.vm_ns, BTreeMap::from([(0, 100)]));
        assert_eq!((found.host_ns, found.losses), (100, 1));
    }
}
