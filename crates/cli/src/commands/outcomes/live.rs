// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin outcomes SCENARIO`: run and analysed in one go, its events in memory.

use std::{collections::BTreeMap, path::Path};

use anyhow::Context;
use unspin_agent::{EventMask, IpiVisibility, ObserveOptions, ipi_visibility};
use unspin_analysis::{
    Sight,
    outcomes::{Assumed, Counted, Workload, analyse_events, lost_somewhere},
};
use unspin_events::log::{EventLog, Metadata};
use unspin_experiment::watch::{Events, Observe};
use unspin_report::Machine;
use unspin_scenario::Scenario;

use crate::{
    commands::{
        outcomes::args::OutcomesArguments,
        vm::{observe::Watch, run as vm_run, tables as vm_tables},
    },
    terminal::{failure::Failure, output},
};

/// Runs a scenario here and now. What its guests tell of themselves goes into their share of spinning and nowhere else.
pub fn run(
    path: &Path,
    arguments: &OutcomesArguments,
    assumed: &Assumed,
) -> Result<Workload, Failure> {
    let scenario = Scenario::load(path, &arguments.overrides.overrides()?)?;
    let name = scenario.name.clone();
    let watch = Watch::start(Observe::On, Events::Required)?;
    let run = vm_run::execute(scenario, watch)?;
    let seen = run.seen.as_ref().context("nothing was observed")?;
    let log = EventLog::new(Metadata::default(), seen.events.clone());
    let module = run.report.pause_loop.as_ref().map(|found| found.module);
    let observed = ObserveOptions {
        events: EventMask::IPIS,
        ..ObserveOptions::default()
    };
    let sight = Sight {
        ipi_blind: ipi_visibility(&observed) != IpiVisibility::Visible,
        window_unit: assumed.window_unit(module),
        linux_vectors: false,
    };
    let mut guest_spin_percent = BTreeMap::new();
    for vm in &run.report.vms {
        // Events number VMs in order of appearance, reports in the scenario's.
        let thread = vm.vcpus.first().map(|vcpu| vcpu.thread_id);
        let counters = thread.and_then(|thread| seen.of_thread(thread));
        let share = vm_tables::vm_shares(vm, run.report.clock.tsc_hz()).spin_percent();
        if let (Some(counters), Some(percent)) = (counters, share) {
            guest_spin_percent.insert(counters.vm, percent);
        }
    }
    let mut counted = BTreeMap::<u32, Counted>::new();
    for vcpu in &seen.counters {
        let vm = counted.entry(vcpu.vm).or_default();
        vm.exits += vcpu.ple_exits;
        vm.boosted += vcpu.yield_to_boosted;
    }
    let lost = seen.health.lost_events + seen.dropped_events;
    let mut complaints: Vec<String> = lost_somewhere(lost).into_iter().collect();
    let missed = seen.health.recursion_misses() + seen.health.unobserved_exits;
    if missed > 0 {
        complaints.push(format!(
            "programs missed {missed} of their runs: figures may be off by as many events"
        ));
    }
    Ok(Workload {
        name,
        machine: Machine::here(output::in_testbed()).to_string(),
        exits: analyse_events(log.events(), sight, lost),
        names: BTreeMap::new(),
        counted,
        guest_spin_percent,
        complaints,
    })
}
