// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `recording.json` says of a ring, and of what was kept of it.

use serde::{Deserialize, Serialize};
use unspin_events::{
    facts::{Facts, TaskFacts, VcpuFacts, VmFacts},
    vm_identity::printable,
};

/// Longest detail of a trigger that is told, bytes.
const DETAIL_LENGTH_MAX: usize = 200;
/// When a vCPU was last seen is known so late at most; ns.
const SEEN_LATE_NS: u64 = 2_000_000_000;

/// What is not there any more of a longer recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RingFacts {
    /// Older segments were dropped; ns.
    pub keep_ns: u64,
    /// And the oldest while all took more; bytes.
    pub bytes_max: u64,
    /// Number of the first segment that is there, when this was written.
    pub first_segment: u32,
    /// What was dropped until then.
    pub dropped: Dropped,
}

/// What was dropped at the beginning, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dropped {
    /// Events in those segments.
    pub events: u64,
    /// Segments that were older than what is kept.
    pub old_segments: u64,
    /// Segments for which there was no room within the limit on bytes.
    pub large_segments: u64,
    /// Segments that gave way because the disk was full.
    pub disk_full_segments: u64,
}

impl Dropped {
    /// All of them.
    pub fn segments(&self) -> u64 {
        self.old_segments + self.large_segments + self.disk_full_segments
    }
}

/// Why a part of a ring was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptFacts {
    /// What happened, the first of it first.
    pub triggers: Vec<Trigger>,
    /// So much was wanted before the first; ns.
    pub before_ns: u64,
    /// And after the last; ns.
    pub after_ns: u64,
    /// Events that were recorded before the first segment that is kept.
    pub events_before: u64,
    /// It ended earlier, because it took as much as the ring may.
    pub cut_short: bool,
}

/// Something happened for which a span is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Trigger {
    /// A word, as in `spin-share`: part of the folder's name.
    pub reason: String,
    /// Whom it is about, as a VM's name: part of the folder's name; empty: nobody alone.
    pub subject: String,
    /// More of it, for people; empty: there is no more to say.
    pub detail: String,
    /// When; the clock of events and of [`crate::ring::Ring::tick`], ns.
    pub at_ns: u64,
    /// The same moment since 1970; ns.
    pub unix_ns: u64,
}

impl Trigger {
    /// In one line, as in `spin-share, web-3: 63 % of its CPU time`. Not without control characters.
    pub fn words(&self) -> String {
        let mut words = self.reason.clone();
        for (before, part) in [(", ", &self.subject), (": ", &self.detail)] {
            if !part.is_empty() {
                words.push_str(before);
                words.push_str(part);
            }
        }
        words
    }
}

impl RingFacts {
    /// What a reader is told; nothing: its beginning is there.
    pub(crate) fn words(&self) -> Option<String> {
        let why = format!(
            "were dropped on purpose by a flight recorder (it keeps {} s, {} bytes at most)",
            seconds(self.keep_ns),
            self.bytes_max
        );
        cut(self.dropped.events, &why)
    }
}

impl KeptFacts {
    /// What a reader is told, a line for each trigger.
    pub(crate) fn words(&self) -> Vec<String> {
        let why = format!(
            "were not kept (of those before the trigger, {} s were asked for)",
            seconds(self.before_ns)
        );
        let before = cut(self.events_before, &why);
        let triggers = self.triggers.iter().map(|trigger| {
            let words = printable(&trigger.words(), DETAIL_LENGTH_MAX);
            let at = seconds(trigger.at_ns);
            format!("kept for {words} at {at} s of the events' clock")
        });
        let cut_short = self.cut_short.then(|| {
            "what came after is cut short: it took as many bytes as the flight recorder may"
                .to_owned()
        });
        before
            .into_iter()
            .chain(triggers)
            .chain(cut_short)
            .collect()
    }
}

/// What a reader is told of so many events that were recorded before the first one.
fn cut(events: u64, why: &str) -> Option<String> {
    (events > 0).then(|| {
        format!(
            "its beginning is cut: {events} events before it {why}; what vCPUs did before their first event here is not known"
        )
    })
}

/// Seconds, with the part of one only where there is one.
fn seconds(ns: u64) -> String {
    match ns % 1_000_000_000 {
        0 => (ns / 1_000_000_000).to_string(),
        _ => format!("{:.3}", ns as f64 / 1e9),
    }
}

/// The facts as far as they are of events from `first_ns` to `last_ns`: VMs and tasks that were there.
pub(crate) fn within(facts: &Facts, first_ns: u64, last_ns: u64) -> Facts {
    Facts {
        vms: vms_within(&facts.vms, first_ns, last_ns),
        tasks: tasks_within(&facts.tasks, first_ns, last_ns),
        ..facts.clone()
    }
}

/// One of whose vCPUs nothing is known stays.
fn vms_within(vms: &[VmFacts], first_ns: u64, last_ns: u64) -> Vec<VmFacts> {
    let is_there = |vcpu: &VcpuFacts| {
        let seen_ns = vcpu.last_ns.saturating_add(SEEN_LATE_NS);
        vcpu.first_ns <= last_ns && seen_ns >= first_ns
    };
    let there = vms
        .iter()
        .filter(|vm| vm.vcpus.is_empty() || vm.vcpus.iter().any(is_there));
    let cut = |vm: &VmFacts| {
        let mut vm = vm.clone();
        vm.vcpus.retain(is_there);
        for vcpu in &mut vm.vcpus {
            vcpu.first_ns = vcpu.first_ns.max(first_ns);
            vcpu.last_ns = vcpu.last_ns.clamp(first_ns, last_ns);
        }
        vm
    };
    there.map(cut).collect()
}

/// Not those of whom a later incarnation was there from the beginning on.
fn tasks_within(tasks: &[TaskFacts], first_ns: u64, last_ns: u64) -> Vec<TaskFacts> {
    let mut at_first = std::collections::HashMap::new();
    for (place, task) in tasks.iter().enumerate() {
        if task.first_seen_ns <= first_ns {
            at_first.insert(task.thread, place);
        }
    }
    let is_there = |place: usize, task: &TaskFacts| match task.first_seen_ns <= first_ns {
        true => at_first.get(&task.thread) == Some(&place),
        false => task.first_seen_ns <= last_ns,
    };
    tasks
        .iter()
        .enumerate()
        .filter(|(place, task)| is_there(*place, task))
        .map(|(_, task)| task.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vm(number: u32, spans: &[(u64, u64)]) -> VmFacts {
        let vcpus = (0u16..)
            .zip(spans)
            .map(|(vcpu, &(first_ns, last_ns))| VcpuFacts {
                vcpu,
                thread: 100 + u32::from(vcpu),
                first_ns,
                last_ns,
            });
        VmFacts {
            vm: number,
            vcpus: vcpus.collect(),
            ..VmFacts::default()
        }
    }

    fn task(thread: u32, comm: &str, first_seen_ns: u64) -> TaskFacts {
        TaskFacts {
            thread,
            comm: comm.into(),
            first_seen_ns,
            ..TaskFacts::default()
        }
    }

    #[test]
    fn vms_that_were_not_there_are_left_out() {
        const S: u64 = SEEN_LATE_NS / 2;
        let vms = [
            vm(0, &[(0, 8 * S - 1)]),
            vm(1, &[(0, 9 * S), (0, 5 * S)]),
            vm(2, &[(15 * S, 90 * S)]),
            vm(3, &[(21 * S, 90 * S)]),
            vm(4, &[]),
        ];
        let found = vms_within(&vms, 10 * S, 20 * S);
        assert_eq!(
            found,
            [
                vm(1, &[(10 * S, 10 * S)]),
                vm(2, &[(15 * S, 20 * S)]),
                vm(4, &[])
            ]
        );
    }

    #[test]
    fn a_thread_has_the_name_that_it_had_at_the_beginning() {
        let tasks = [
            task(7, "sh", 10),
            task(7, "make", 90),
            task(7, "cc", 150),
            task(7, "ld", 201),
            task(8, "kworker", 100),
        ];
        let found = tasks_within(&tasks, 100, 200);
        let names: Vec<&str> = found.iter().map(|task| task.comm.as_str()).collect();
        assert_eq!(names, ["make", "cc", "kworker"]);
    }

    #[test]
    fn a_ring_that_dropped_nothing_says_nothing() {
        assert_eq!(RingFacts::default().words(), None);
        let mut cut = RingFacts {
            keep_ns: 1_500_000_000,
            ..RingFacts::default()
        };
        cut.dropped.events = 7;
        let said = cut.words().expect("it is cut");
        assert!(
            said.contains("7 events") && said.contains("1.500 s"),
            "{said}"
        );
    }

    #[test]
    fn a_hostile_name_is_told_without_its_control_characters() {
        let kept = KeptFacts {
            triggers: vec![Trigger {
                reason: "spin-share".into(),
                subject: "\u{1b}[2J".into(),
                detail: "63 %".into(),
                at_ns: 2_000_000_000,
                unix_ns: 0,
            }],
            cut_short: true,
            ..KeptFacts::default()
        };
        let said = kept.words();
        assert_eq!(
            said[0],
            "kept for spin-share, ?[2J: 63 % at 2 s of the events' clock"
        );
        assert_eq!(said.len(), 2);
    }
}
