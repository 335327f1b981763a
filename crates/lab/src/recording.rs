// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run of the lab as a recording, as that of a real host (`unspin lab run --record DIR`).

use std::{cell::RefCell, path::Path, rc::Rc};

use unspin_events::{
    Event, KIND_NAMES,
    facts::{BeginTime, Facts, KvmFacts, ScenarioFacts, TaskFacts, VmFacts},
    vm_identity::VmIdentity,
};
use unspin_recording::{Ended, Error, Options, Recording, Summary};
use unspin_scenario::Scenario;

use crate::{
    LabHost,
    host_events::{HostEvents, thread},
    ids::{Cpu, Task},
    observers::Counter,
    perfetto::TraceIds,
    trace_event::{Observer, TraceEvent},
};

/// Number of events that are passed to the recording at once.
const BATCH: usize = 4_096;

/// Events that wait to be written, and the first error of writing.
struct Sink {
    recording: Option<Recording>,
    batch: Vec<Event>,
    error: Option<Error>,
}

impl Sink {
    fn take(&mut self, event: Event) {
        self.batch.push(event);
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if let (Some(recording), None) = (&mut self.recording, &self.error) {
            self.error = recording.append(&self.batch).err();
        }
        self.batch.clear();
    }
}

type Forward = Box<dyn FnMut(Event)>;

/// A counter, and a recording.
pub struct RecordedRun {
    /// The counter.
    pub counter: Counter,
    events: HostEvents<Forward>,
    sink: Rc<RefCell<Sink>>,
}

impl RecordedRun {
    /// Begins a recording in that folder, which must be empty or not exist; `commit` is that of this program.
    ///
    /// # Errors
    /// When it cannot be written, or contains a recording already.
    pub fn create(
        folder: &Path,
        scenario: &Scenario,
        host: &LabHost,
        commit: &str,
    ) -> Result<RecordedRun, Error> {
        let trace_ids = TraceIds::of(scenario, host);
        let facts = facts(scenario, host, &trace_ids, commit);
        let recording = Recording::create(folder, facts, Options::default())?;
        let sink = Rc::new(RefCell::new(Sink {
            recording: Some(recording),
            batch: Vec::with_capacity(BATCH),
            error: None,
        }));
        let into = Rc::clone(&sink);
        let forward: Forward = Box::new(move |event| into.borrow_mut().take(event));
        Ok(RecordedRun {
            counter: Counter::new(host.topology.cpus()),
            events: HostEvents::new(&trace_ids, forward),
            sink,
        })
    }

    /// Ends the recording at that time.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self, end_ns: u64) -> Result<(Counter, Option<Summary>), Error> {
        let mut sink = self.sink.borrow_mut();
        sink.flush();
        if let Some(error) = sink.error.take() {
            return Err(error);
        }
        let summary = match sink.recording.take() {
            Some(mut recording) => {
                recording.facts_mut().end_monotonic_ns = Some(end_ns);
                Some(recording.finish(Ended::Finished, None)?)
            }
            None => None,
        };
        Ok((self.counter, summary))
    }
}

impl Observer for RecordedRun {
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent) {
        self.counter.on_event(now_ns, cpu, task, what);
        self.events.on_event(now_ns, cpu, task, what);
    }
}

/// Facts that an observer of a real host would have to find out. Times begin at 0.
fn facts(scenario: &Scenario, host: &LabHost, trace_ids: &TraceIds, commit: &str) -> Facts {
    let module = match host.vendor {
        unspin_policy::Vendor::Amd => ("kvm_amd", "pause_filter_count", "pause_filter_thresh"),
        unspin_policy::Vendor::Intel => ("kvm_intel", "ple_window", "ple_gap"),
    };
    let (name, window, gap) = module;
    let parameters = [
        (window, host.window.at_start().to_string()),
        (gap, host.gap_cycles.to_string()),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), Some(value)));
    Facts {
        commit: commit.to_owned(),
        machine: format!("the lab: {} pCPUs, simulated", trace_ids.cpus),
        begin: BeginTime::default(),
        kvm: KvmFacts {
            module: Some(name.to_owned()),
            parameters: parameters.into_iter().collect(),
        },
        kinds: KIND_NAMES.iter().map(|name| (*name).to_owned()).collect(),
        scenario: Some(ScenarioFacts {
            name: scenario.name.clone(),
            sha256: scenario.hash(),
            seed: scenario.seed,
        }),
        vms: (0u32..)
            .zip(&trace_ids.vms)
            .map(|(vm, name)| VmFacts {
                vm,
                identity: VmIdentity {
                    name: Some(name.clone()),
                    ..VmIdentity::default()
                },
                ..VmFacts::default()
            })
            .collect(),
        tasks: (0u32..)
            .zip(&trace_ids.tasks)
            .map(|(task, entry)| TaskFacts {
                thread: thread(Task(task)),
                comm: entry.name.clone(),
                ..TaskFacts::default()
            })
            .collect(),
        missed_runs: Some(0),
        unobserved_exits: Some(0),
        ..Facts::default()
    }
}
