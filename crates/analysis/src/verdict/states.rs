// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each vCPU did, one stay after another, from switches and wake-ups.

use std::collections::BTreeMap;

use unspin_events::{Event, What};

/// What a vCPU does for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It has a CPU.
    Running,
    /// It could run, and waits for a CPU: steal time, as its guest sees it.
    Waiting,
    /// Asleep after its guest halted: idle, or waiting for what will interrupt it.
    Halted,
    /// Asleep in the host for something that its guest did: a page that had to be fetched, a device that is emulated.
    Device,
    /// Asleep in the host after an interrupt or a pause-loop exit, so not for anything that its guest did: a signal (SIGSTOP),
    /// a debugger, a frozen cgroup.
    Stopped,
}

/// A stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The VM.
    pub vm: u32,
    /// The vCPU.
    pub vcpu: u16,
    /// The pCPU it is on, or was on last.
    pub cpu: u16,
    /// What it did.
    pub state: State,
    /// Since when.
    pub begin_ns: u64,
    /// Until when.
    pub end_ns: u64,
    /// Of one that slept: the thread that woke it, 0 for an interrupt on an idle CPU; `None`: not seen, or it did not sleep.
    pub waker: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    state: State,
    cpu: u16,
    since_ns: u64,
}

/// How many vCPUs of a VM are known, asleep, and stopped.
#[derive(Clone, Copy, Debug, Default)]
struct Sleepers {
    known: usize,
    asleep: usize,
    stopped: usize,
}

/// Follows all vCPUs; takes events in order of time.
#[derive(Clone, Debug, Default)]
pub struct StateWalk {
    vcpus: BTreeMap<(u32, u16), Known>,
    sleepers: BTreeMap<u32, Sleepers>,
    last_ns: u64,
}

impl StateWalk {
    /// The next event; `done` gets stays that are over. After a loss nothing is known until each vCPU's next switch.
    pub fn see(&mut self, event: &Event, mut done: impl FnMut(Stay)) {
        self.last_ns = self.last_ns.max(event.time_ns);
        if matches!(event.what, What::Lost { .. }) {
            self.end(event.time_ns, done);
            return;
        }
        let (Some(vm), Some(vcpu)) = (event.vm, event.vcpu) else {
            return;
        };
        let known = self.vcpus.get(&(vm, vcpu)).copied();
        let next = match event.what {
            What::SwitchIn { .. } => State::Running,
            What::SwitchOut { runnable: true, .. } => State::Waiting,
            What::SwitchOut { exit_code, .. } => asleep(exit_code),
            What::SchedWakeup { .. } if known.is_none_or(|known| is_asleep(known.state)) => {
                State::Waiting
            }
            // All others happen on the vCPU's thread, and tell what it does only where nothing else is known of it.
            What::PauseExit { .. } | What::KvmExit { .. } | What::KvmEntry { .. }
                if known.is_none() =>
            {
                State::Running
            }
            _ => return,
        };
        let waker = match event.what {
            What::SchedWakeup { waker_thread } => Some(waker_thread),
            _ => None,
        };
        let sleepers = self.sleepers.entry(vm).or_default();
        match known {
            Some(known) => {
                sleepers.asleep -= usize::from(is_asleep(known.state));
                sleepers.stopped -= usize::from(known.state == State::Stopped);
                done(stay((vm, vcpu), known, event.time_ns, waker));
            }
            None => sleepers.known += 1,
        }
        sleepers.asleep += usize::from(is_asleep(next));
        sleepers.stopped += usize::from(next == State::Stopped);
        let known = Known {
            state: next,
            cpu: event.cpu,
            since_ns: event.time_ns,
        };
        self.vcpus.insert((vm, vcpu), known);
    }

    /// Whether all vCPUs of the VM that are known sleep now, and at least one of them is stopped.
    pub fn is_stopped(&self, vm: u32) -> bool {
        let sleepers = self.sleepers.get(&vm).copied().unwrap_or_default();
        sleepers.stopped > 0 && sleepers.asleep == sleepers.known
    }

    /// No more events: `done` gets what goes on, up to the last of them.
    pub fn finish(mut self, done: impl FnMut(Stay)) {
        self.end(self.last_ns, done);
    }

    fn end(&mut self, now_ns: u64, mut done: impl FnMut(Stay)) {
        self.sleepers.clear();
        for (who, known) in std::mem::take(&mut self.vcpus) {
            done(stay(who, known, now_ns, None));
        }
    }
}

fn stay((vm, vcpu): (u32, u16), known: Known, end_ns: u64, waker: Option<u32>) -> Stay {
    Stay {
        vm,
        vcpu,
        cpu: known.cpu,
        state: known.state,
        begin_ns: known.since_ns,
        end_ns: end_ns.max(known.since_ns),
        waker: waker.filter(|_| is_asleep(known.state)),
    }
}

fn is_asleep(state: State) -> bool {
    !matches!(state, State::Running | State::Waiting)
}

/// Why one sleeps whose guest was left by that exit. Codes: SVM_EXIT_* of arch/x86/include/uapi/asm/svm.h and EXIT_REASON_* of
/// vmx.h in the same folder, Linux 7.2; VMX's are below 0x60, where SVM has reads and writes of registers, after which no vCPU
/// sleeps. A code that is not known counts as a halt: nothing is made of it.
fn asleep(exit_code: Option<u32>) -> State {
    match exit_code.map(|code| code & 0xffff) {
        // HLT, MONITOR, MWAIT; HLT, MWAIT, MONITOR.
        None | Some(0x78 | 0x8a | 0x8b | 12 | 36 | 39) => State::Halted,
        // INTR, NMI, VINTR, PAUSE; exception or NMI, external interrupt, interrupt window, PAUSE, preemption timer.
        Some(0x60 | 0x61 | 0x64 | 0x77 | 0 | 1 | 7 | 40 | 52) => State::Stopped,
        Some(_) => State::Device,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ns: u64, what: What) -> Event {
        Event {
            time_ns,
            vm: Some(0),
            vcpu: Some(1),
            thread: 101,
            cpu: 3,
            what,
        }
    }

    fn out(runnable: bool, exit_code: Option<u32>) -> What {
        What::SwitchOut {
            next_thread: 7,
            next_vm: None,
            runnable,
            preempt: runnable,
            mode: None,
            exit_code,
            guest_rip: None,
        }
    }

    const IN: What = What::SwitchIn {
        previous_thread: 7,
        previous_vm: None,
    };

    fn stays(events: &[(u64, What)]) -> Vec<(State, u64, u64, Option<u32>)> {
        let mut walk = StateWalk::default();
        let mut found = Vec::new();
        let mut add = |stay: Stay| found.push((stay.state, stay.begin_ns, stay.end_ns, stay.waker));
        for (time_ns, what) in events {
            walk.see(&event(*time_ns, *what), &mut add);
        }
        walk.finish(&mut add);
        found
    }

    #[test]
    fn a_sleeper_waits_from_its_wake_up_on() {
        let wakeup = What::SchedWakeup { waker_thread: 55 };
        let found = stays(&[
            (10, IN),
            (30, out(false, Some(0x78))),
            (70, wakeup),
            (75, IN),
            (90, out(true, Some(0x60))),
            (95, wakeup), // it was runnable: nothing new
            (99, IN),
            (100, What::KvmVcpuOnSpin),
        ]);
        assert_eq!(
            found,
            [
                (State::Running, 10, 30, None),
                (State::Halted, 30, 70, Some(55)),
                (State::Waiting, 70, 75, None),
                (State::Running, 75, 90, None),
                (State::Waiting, 90, 99, None),
                (State::Running, 99, 100, None),
            ]
        );
    }

    #[test]
    fn why_one_sleeps_follows_from_its_last_exit() {
        for (code, state) in [
            (None, State::Halted),
            (Some(0x78), State::Halted),
            (Some(12), State::Halted),
            (Some(0x60), State::Stopped),
            (Some(1), State::Stopped),
            (Some(0x77), State::Stopped),
            (Some(0x400), State::Device),
            (Some(48), State::Device),
            (Some(0x7b), State::Device),
            (Some(0x8000_000c), State::Halted), // VMX sets flags in the high half
        ] {
            assert_eq!(asleep(code), state, "{code:?}");
        }
    }

    #[test]
    fn a_loss_ends_what_is_known() {
        let lost = What::Lost {
            events: 3,
            lost_kind: 1,
        };
        let found = stays(&[(10, IN), (20, lost), (50, out(true, None)), (60, IN)]);
        assert_eq!(
            found,
            [
                (State::Running, 10, 20, None),
                (State::Waiting, 50, 60, None),
                (State::Running, 60, 60, None)
            ]
        );
    }
}
