// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab calibrate`: what things cost here, as the lab takes it.

use std::path::Path;

use anyhow::Context;
use unspin_experiment::calibrate::{self, Figure};
use unspin_report::{Document, Machine, Table};
use unspin_scenario::{Host, Overrides, Scenario};

use crate::{
    commands::lab::args::{CalibratedWorld, LabCalibrateArguments},
    terminal::{failure::Failure, output, progress::Experiment},
};

/// Measures, prints, and writes the file.
pub fn run(arguments: &LabCalibrateArguments) -> Result<(), Failure> {
    let host = match &arguments.like {
        Some(file) => Scenario::load(file, &Overrides::default())?.host,
        None => Host {
            cpus: None,
            ple_window: None,
            ple_gap: None,
            ple_window_fixed: false,
        },
    };
    let guest = match arguments.world {
        CalibratedWorld::Threads => None,
        CalibratedWorld::Kvm => Some(&host),
    };
    let figures = calibrate::measure(guest, &Experiment::new(false).session()?)?;
    if let Some(file) = &arguments.out {
        write(file, arguments.world, &figures)?;
    }
    let mut document = output::document("lab calibrate");
    document.table(Table::of("", calibrate::rows(&figures)));
    notes(&mut document, &figures, arguments.out.as_deref());
    Ok(output::print(&document, arguments.output)?)
}

fn notes(document: &mut Document, figures: &[Figure], out: Option<&Path>) {
    let unmeasured = figures.iter().filter(|figure| figure.value().is_none());
    let unmeasured: Vec<&str> = unmeasured.map(|figure| figure.cost).collect();
    if !unmeasured.is_empty() {
        document.note(format!(
            "not measured, the default stands: {}",
            unmeasured.join(", ")
        ));
    }
    document.note(
        "medians, while all CPUs that are not measured are kept busy; no program contains a lock",
    );
    if let Some(file) = out {
        document.note(format!("costs: {}; use them with --costs", file.display()));
    }
}

fn write(file: &Path, world: CalibratedWorld, figures: &[Figure]) -> Result<(), Failure> {
    let world = match world {
        CalibratedWorld::Threads => "threads",
        CalibratedWorld::Kvm => "kvm",
    };
    let machine = Machine::here(output::in_testbed()).to_string();
    let text = calibrate::text(world, figures, &machine);
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    Ok(())
}
