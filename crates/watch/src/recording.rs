// SPDX-License-Identifier: MIT OR Apache-2.0
//! A view from a recording: its end. What spin time was for is known of all of it, not of samples.

use std::{collections::BTreeMap, path::Path};

use unspin_agent::WatchCounters;
use unspin_analysis::{
    Source, SourceError,
    explain::attribution::{Explainer, Explanation},
};
use unspin_events::{Event, GuestMode, What};

use crate::{
    burst::{by_vm, options},
    table::{recent, unique},
    view::{HostView, VIEW_FORMAT, VcpuView, ViewSource, VmView},
};

/// What events do not say.
const UNKNOWN: [&str; 4] = ["guest_ns", "handling_ns", "exits", "slices_lost"];

/// The recording's folder, or the file of an event log, as a view.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn view(path: &Path) -> Result<HostView, SourceError> {
    let mut source = Source::open(path)?;
    let mut wanted = options(&source.facts.ipi);
    wanted.keep_slices = true;
    let (mut explainer, mut counts) = (Explainer::new(wanted), Counts::default());
    source.each(|event| {
        counts.see(&event);
        explainer.push(event);
    });
    let mut explanation = explainer.finish();
    let vcpus = counts.finish(&explanation);
    // Each wait of the recording; they have been counted.
    explanation
        .vms
        .values_mut()
        .for_each(|vm| vm.slices.clear());
    let mut view = HostView {
        format: VIEW_FORMAT,
        source: ViewSource::Recording,
        time_ns: explanation.span_ns.map_or(0, |(_, end_ns)| end_ns),
        unknown: UNKNOWN.iter().map(ToString::to_string).collect(),
        ..HostView::default()
    };
    view.vms = vms(&source, &explanation, vcpus);
    view.health.lost_events = source.facts.lost.values().sum();
    view.health.unseen_exits = source.facts.unobserved_exits.unwrap_or(0);
    view.health.missed_runs = source.facts.missed_runs.unwrap_or(0);
    view.health.last_error = source.problems.last().cloned();
    Ok(view)
}

fn vms(
    source: &Source,
    explanation: &Explanation,
    mut vcpus: BTreeMap<u32, Vec<VcpuView>>,
) -> Vec<VmView> {
    let numbers = explanation.vms.keys();
    let names =
        unique(numbers.map(|&number| (number.into(), Some(source.facts.vm_name(number)), None)));
    let by_thread: BTreeMap<u32, u64> = vcpus
        .iter()
        .flat_map(|(vm, vcpus)| {
            let threads = vcpus.iter().map(|vcpu| vcpu.thread);
            threads.map(|thread| (thread, u64::from(*vm)))
        })
        .collect();
    let other = |thread: u32| Some(names.get(by_thread.get(&thread)?)?.clone());
    let judged = by_vm(explanation, &source.facts);
    explanation
        .vms
        .keys()
        .zip(judged)
        .map(|(&number, judged)| {
            let vcpus = vcpus.remove(&number).unwrap_or_default();
            let zero = WatchCounters::default();
            let sum = |sum: WatchCounters, vcpu: &VcpuView| sum.plus(&vcpu.counters);
            VmView {
                number: number.into(),
                name: names[&u64::from(number)].clone(),
                process: source.facts.vm(number).and_then(|vm| vm.process),
                total: vcpus.iter().fold(zero, sum),
                vcpus,
                sampled: judged.sampled.clone(),
                recent: recent([&judged], &other),
            }
        })
        .collect()
}

/// What a vCPU's thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Running,
    Waiting,
    Asleep,
}

#[derive(Debug, Default)]
struct Thread {
    state: State,
    since_ns: u64,
    counters: WatchCounters,
}

impl Thread {
    fn change(&mut self, time_ns: u64, state: State) {
        let spent_ns = time_ns.saturating_sub(self.since_ns);
        match self.state {
            State::Unknown => {}
            State::Running => self.counters.run_ns += spent_ns,
            State::Waiting => self.counters.wait_ns += spent_ns,
            State::Asleep => self.counters.halted_ns += spent_ns,
        }
        (self.state, self.since_ns) = (state, time_ns);
    }
}

/// Counters of each vCPU's thread, from events in order of time.
#[derive(Debug, Default)]
struct Counts {
    threads: BTreeMap<(u32, u16, u32), Thread>,
    last_ns: u64,
}

impl Counts {
    fn see(&mut self, event: &Event) {
        let now_ns = event.time_ns;
        self.last_ns = self.last_ns.max(now_ns);
        if let What::Lost { .. } = event.what {
            for thread in self.threads.values_mut() {
                thread.change(now_ns, State::Unknown);
            }
            return;
        }
        let (Some(vm), Some(vcpu)) = (event.vm, event.vcpu) else {
            return;
        };
        let thread = self.threads.entry((vm, vcpu, event.thread)).or_default();
        let counters = &mut thread.counters;
        match event.what {
            What::SwitchIn { .. } => thread.change(now_ns, State::Running),
            What::SwitchOut { runnable: true, .. } => thread.change(now_ns, State::Waiting),
            What::SwitchOut {
                runnable: false, ..
            } => thread.change(now_ns, State::Asleep),
            What::SchedWakeup { .. } => thread.change(now_ns, State::Waiting),
            What::PauseExit { mode, .. } => {
                counters.ple_exits += 1;
                counters.ple_exits_user += u64::from(mode == Some(GuestMode::User));
                thread.runs(now_ns);
            }
            What::YieldTo { result, .. } => {
                counters.yields_tried += 1;
                counters.yields_succeeded += u64::from(result > 0);
            }
            What::GuestWait { .. } | What::PvPage { .. } => {}
            _ => thread.runs(now_ns),
        }
    }

    /// By VM, with the spin time that the explanation's slices say.
    fn finish(mut self, explanation: &Explanation) -> BTreeMap<u32, Vec<VcpuView>> {
        let mut vms: BTreeMap<u32, Vec<VcpuView>> = BTreeMap::new();
        for ((vm, vcpu, id), thread) in &mut self.threads {
            thread.change(self.last_ns, State::Unknown);
            vms.entry(*vm).or_default().push(VcpuView {
                vcpu: (*vcpu).into(),
                thread: *id,
                counters: thread.counters,
            });
        }
        for (vm, of) in &explanation.vms {
            let vcpus = vms.entry(*vm).or_default();
            for slice in &of.slices {
                // Which of its threads it was is not said: the first stands for all.
                let own = vcpus
                    .iter_mut()
                    .find(|vcpu| vcpu.vcpu == u32::from(slice.vcpu));
                if let Some(vcpu) = own {
                    vcpu.counters.spin_ns += slice.end_ns - slice.begin_ns;
                }
            }
        }
        vms
    }
}

impl Thread {
    /// An event that only a running thread has.
    fn runs(&mut self, time_ns: u64) {
        if self.state == State::Unknown {
            self.change(time_ns, State::Running);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ns: u64, what: What) -> Event {
        Event {
            time_ns,
            vm: Some(3),
            vcpu: Some(1),
            thread: 70,
            cpu: 0,
            what,
        }
    }

    fn out(runnable: bool) -> What {
        What::SwitchOut {
            next_thread: 0,
            next_vm: None,
            runnable,
            preempt: runnable,
            mode: None,
            exit_code: None,
            guest_rip: None,
        }
    }

    const IN: What = What::SwitchIn {
        previous_thread: 0,
        previous_vm: None,
    };

    fn counted(events: &[Event]) -> WatchCounters {
        let mut counts = Counts::default();
        events.iter().for_each(|event| counts.see(event));
        let vms = counts.finish(&Explanation::default());
        assert_eq!(vms[&3].len(), 1);
        vms[&3][0].counters
    }

    #[test]
    fn time_is_spent_running_waiting_or_asleep() {
        let counters = counted(&[
            event(100, What::KvmVcpuOnSpin),
            event(130, out(true)),
            event(150, IN),
            event(160, out(false)),
            event(260, What::SchedWakeup { waker_thread: 1 }),
            event(265, IN),
            event(285, What::KvmVcpuOnSpin),
        ]);
        let times = (counters.run_ns, counters.wait_ns, counters.halted_ns);
        assert_eq!(times, (30 + 10 + 20, 20 + 5, 100));
    }

    #[test]
    fn what_a_loss_leaves_open_is_not_counted() {
        let lost = Event {
            vm: None,
            vcpu: None,
            ..event(
                500,
                What::Lost {
                    events: 1,
                    lost_kind: 0,
                },
            )
        };
        let counters = counted(&[event(100, IN), lost, event(900, out(true)), event(950, IN)]);
        assert_eq!((counters.run_ns, counters.wait_ns), (400, 50));
    }

    #[test]
    fn pause_loop_exits_and_yields_are_counted() {
        let exit = |mode| What::PauseExit {
            guest_rip: None,
            mode,
            window: None,
            inside_ns: 5,
            other_exits: 0,
            interrupt_exits: 0,
        };
        let yielded = |result| What::YieldTo {
            result,
            target_vcpu: None,
            target_thread: 1,
        };
        let counters = counted(&[
            event(1, exit(Some(GuestMode::User))),
            event(2, yielded(1)),
            event(3, exit(Some(GuestMode::Kernel))),
            event(4, yielded(0)),
        ]);
        assert_eq!((counters.ple_exits, counters.ple_exits_user), (2, 1));
        assert_eq!((counters.yields_tried, counters.yields_succeeded), (2, 1));
    }
}
