// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin demo`: the project's main job on a machine that needs nothing: ideal, stock and a remedy for a handful of
//! shapes and locks, and what the lab predicts of them.
//!
//! Each row is a boot of its own in the deterministic testbed, so that the command printed for it repeats it.

pub(crate) mod args;

use std::{
    io::{BufRead, IsTerminal},
    time::Instant,
};

use anyhow::Context;
use unspin_experiment::{
    Row,
    cells::{Cell, Finished, in_testbeds},
    demo::{FILES, SEEDS, cells, predict},
    kvm::{Figures, VmRow, sentence},
    prediction::{Compared, costs},
};
use unspin_report::{Document, Machine, Table};
use unspin_testbed::Vendor;

use crate::{
    commands::{
        compare::tables as compare_table, demo::args::DemoArguments,
        testbed::args::Machine as TestbedMachine,
    },
    terminal::{
        failure::{Failure, abort},
        output,
        progress::Experiment,
    },
};

/// Runs all rows and prints them.
pub fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    if arguments.predict {
        return run_prediction(arguments);
    }
    let begin = Instant::now();
    let finished = if arguments.on_this_host {
        on_this_host(arguments)?
    } else {
        in_testbed(arguments)?
    };
    // One machine for all rows: this one, or the testbed as it calls itself.
    let machine = finished.first().map_or("", |first| first.machine.as_str());
    let mut document = Document::new("demo", machine);
    let (mut rows, mut vms, mut samples) = (Vec::new(), Vec::new(), Vec::new());
    for one in &finished {
        rows.extend(one.rows.clone());
        vms.extend(one.vms.clone());
        samples.extend(one.samples.clone());
    }
    rows.sort_by(|a: &Row<Figures>, b: &Row<Figures>| {
        (&a.shape, &a.world.lock).cmp(&(&b.shape, &b.world.lock))
    });
    vms.sort_by(|a: &VmRow, b: &VmRow| (&a.shape, &a.lock).cmp(&(&b.shape, &b.lock)));
    document.note(
        "The same work on 2 CPUs: ideal (one VM that fits, alone), stock (the kernel as it is), refuse-yields (our scheduler, \
         directed yields refused), and our scheduler with a policy:\n",
    );
    compare_table::add(&mut document, &rows);
    document.note("");
    for row in &rows {
        document.note(sentence(row));
    }
    compare_table::add_vms(&mut document, &vms);
    compare_table::add_samples(&mut document, &samples);
    // The lab knows the AMD machine's costs.
    if !arguments.on_this_host && arguments.machine == TestbedMachine::Amd {
        let cells = cells(arguments.pairs, false, Vendor::Amd);
        add_predictions(&mut document, &cells, &finished)?;
    }
    document.note("\nRepeat a row byte for byte:");
    for row in &rows {
        document.note(format!("  {}", row.world.replay));
    }
    output::print(&document, arguments.output)?;
    eprintln!(
        "unspin demo: {} rows in {} s",
        rows.len(),
        begin.elapsed().as_secs()
    );
    Ok(())
}

fn in_testbed(arguments: &DemoArguments) -> Result<Vec<Finished>, Failure> {
    let cells = cells(arguments.pairs, false, arguments.machine.into());
    let mut all = Vec::new();
    let progress = Experiment::new(true);
    let session = progress.session()?;
    eprintln!(
        "unspin demo: measuring {} rows, each in a testbed of its own, {} at a time",
        cells.len(),
        std::thread::available_parallelism().map_or(1, usize::from)
    );
    let every = cells.iter().collect::<Vec<_>>();
    in_testbeds(&every, "testbeds", &session, abort, |finished| {
        all.push(finished);
        for row in all.last().iter().flat_map(|last| &last.rows) {
            let line = format!("{} of {}: {}", all.len(), cells.len(), sentence(row));
            session.progress.line(&line);
        }
        Ok(())
    })?;
    Ok(all)
}

/// Every row on this machine's own KVM, after a word about it.
fn on_this_host(arguments: &DemoArguments) -> Result<Vec<Finished>, Failure> {
    let others = unspin_vmm::count_other_vms().context("looking for VMs on this host")?;
    eprintln!(
        "unspin demo: on this host, for about {} s, up to 8 vCPU threads will load all CPUs, watched by BPF programs \
         that are detached at the end; no module is reloaded and no setting changed",
        FILES.len() as u32 * (2 * arguments.pairs)
    );
    if others > 0 && !arguments.yes {
        return Err(Failure::Usage(format!(
            "{others} other VMs run on this host and would be slowed down: stop them, or say --yes"
        )));
    }
    if !arguments.yes && !agreed()? {
        return Err(Failure::Usage("not run: answer y, or say --yes".into()));
    }
    let progress = Experiment::new(false);
    let session = progress.session()?;
    let machine = Machine::here(output::in_testbed()).to_string();
    let cells = cells(arguments.pairs, true, Vendor::Amd);
    let cells = cells
        .iter()
        .map(|cell| Ok(cell.on_this_host(&machine, &session)?));
    cells.collect()
}

/// Asks on the terminal; without one the answer is no.
fn agreed() -> std::io::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("Go on? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Prints the predicted table.
///
/// # Errors
/// Ctrl-C; standard output that cannot be written.
fn run_prediction(arguments: &DemoArguments) -> Result<(), Failure> {
    let rows = predict(arguments.pairs, &Experiment::new(false).session()?)?;
    let mut document = output::document("demo --predict");
    document.note("What the lab PREDICTS for the demo's table, with the testbed's costs; none of it was measured:");
    document.table(Table::of("", rows));
    Ok(output::print(&document, arguments.output)?)
}

/// Adds the lab's predictions beside what was measured in the testbed.
///
/// # Errors
/// Ctrl-C.
fn add_predictions(
    document: &mut Document,
    cells: &[Cell],
    finished: &[Finished],
) -> Result<(), Failure> {
    let mut scenarios = Vec::new();
    for cell in cells {
        scenarios.push((cell.identity()?, cell.scenario()?, &cell.plan));
    }
    let mut compared = Vec::new();
    for one in finished {
        let of = scenarios
            .iter()
            .find(|(identity, ..)| *identity == one.cell);
        compared.extend(of.map(|(_, scenario, plan)| Compared {
            scenario,
            plan,
            rows: one.rows.iter().collect(),
        }));
    }
    compare_table::add_predictions(document, &compared, &costs(None, true)?, SEEDS)
}
