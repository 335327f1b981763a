// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin vm linux`: unmodified Linux guests under the distribution's QEMU, watched like any other VM.

use std::{path::Path, sync::Arc};

use unspin_agent::Observer;
use unspin_events::VcpuCounters;
use unspin_experiment::{linux::THREADS_MAX, watch::attach_counting};
use unspin_linux_guest::{Options, Phase, Programs};
use unspin_vmm::PauseLoop;

use crate::{
    commands::vm::linux::{LinuxRun, LinuxSeen, args::LinuxArguments, tables as linux_tables},
    terminal::{failure::Failure, interrupt, output, progress::Activity},
};

/// Runs the guests and prints what they and the host say.
pub fn run(arguments: &LinuxArguments) -> Result<(), Failure> {
    let cache = unspin_testbed::cache_from_environment().unwrap_or_default();
    let mut programs = Programs::find(output::in_testbed(), &cache)?;
    if arguments.lock.is_some() {
        programs = programs.with_our_kernel()?;
    }
    let pause_loop = PauseLoop::in_force(Path::new("/sys/module"));
    PauseLoop::check(pause_loop.as_ref(), &arguments.host())?;
    let observer = attach_counting(arguments.observe.into(), THREADS_MAX)?;
    let options = Options {
        programs,
        vms: arguments.vms,
        vcpus: arguments.vcpus,
        memory_mib: arguments.memory_mib,
        load: arguments.load.load(),
        groups: arguments.groups,
        loops: arguments.loops,
        runs: arguments.runs,
        features: arguments.features,
        ours: arguments.ours(),
        counts: arguments.counts,
        kernel_arguments: arguments.kernel_arguments.clone(),
        symbols: arguments.symbols.is_some(),
        limit: arguments.limit,
        interrupt: interrupt::flag()?,
    };
    let run = execute(&options, pause_loop, observer)?;
    if let (Some(file), Some(symbols)) = (&arguments.symbols, &run.report.symbols) {
        std::fs::write(file, symbols).map_err(|error| {
            anyhow::Error::from(error).context(format!("writing {}", file.display()))
        })?;
    }
    let mut document = output::document("vm linux");
    linux_tables::add(&mut document, &run);
    output::print(&document, arguments.output)?;
    Ok(())
}

fn execute(
    options: &Options,
    pause_loop: Option<PauseLoop>,
    observer: Option<Observer>,
) -> Result<LinuxRun, Failure> {
    let activity = Arc::new(Activity::start("booting guests"));
    let counters = || -> Result<Vec<VcpuCounters>, Failure> {
        match &observer {
            Some(observer) => Ok(observer.counters().map_err(anyhow::Error::from)?),
            None => Ok(Vec::new()),
        }
    };
    let (mut at_ready, mut at_done) = (Vec::new(), Vec::new());
    let report = unspin_linux_guest::run(options, |phase| -> Result<(), Failure> {
        match phase {
            Phase::Booting(ready) => {
                activity.say(&format!("booting guests: {ready} of {}", options.vms));
            }
            Phase::Ready => at_ready = counters()?,
            Phase::Running(done) => {
                activity.say(&format!("running: {done} of {} done", options.vms));
            }
            Phase::Done => at_done = counters()?,
        }
        Ok(())
    })?;
    let health = observer
        .as_ref()
        .map(Observer::health)
        .transpose()
        .map_err(anyhow::Error::from)?;
    Ok(LinuxRun {
        report,
        features: options.features.to_string(),
        pause_loop,
        seen: health.map(|health| LinuxSeen {
            at_ready,
            at_done,
            health,
        }),
    })
}

impl From<unspin_linux_guest::Error> for Failure {
    fn from(error: unspin_linux_guest::Error) -> Failure {
        match error {
            unspin_linux_guest::Error::Interrupted => Failure::Interrupted,
            error @ unspin_linux_guest::Error::Range { .. } => Failure::Usage(error.to_string()),
            error => Failure::Failed(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use unspin_agent::Health;

    use super::*;

    fn counters(process: u32, thread: u32, exits: u64) -> VcpuCounters {
        VcpuCounters {
            process,
            thread,
            exits,
            ..VcpuCounters::default()
        }
    }

    #[test]
    fn each_qemu_has_its_own_threads_and_the_window_is_a_difference() {
        let seen = LinuxSeen {
            at_ready: vec![counters(10, 11, 100), counters(20, 21, 7)],
            at_done: vec![
                counters(10, 11, 150),
                counters(10, 12, 3),
                counters(20, 21, 9),
            ],
            health: Health::default(),
        };
        let exits = |counters: Vec<VcpuCounters>| -> Vec<u64> {
            counters.iter().map(|counters| counters.exits).collect()
        };
        assert_eq!(exits(seen.boot(10)), [100]);
        assert_eq!(exits(seen.window(10)), [50, 3]);
        assert_eq!(exits(seen.window(20)), [2]);
        assert_eq!(exits(seen.window(30)), [0u64; 0]);
    }
}
