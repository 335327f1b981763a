// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab calibrate`: what things cost here, as the lab takes it.

use std::{fmt::Write, path::Path};

use anyhow::Context;
use unspin_lab::costs::Costs;
use unspin_lockbench::costs::{self, CpuHogs, pin_to};
use unspin_report::{COMMIT, Cell, Column, Document, Machine, Table, Unit};
use unspin_scenario::{Host, Overrides, Scenario};

use crate::{
    commands::lab::{
        args::{CalibratedWorld, LabCalibrateArguments},
        calibrate::{
            figures::{Figure, figures},
            guest::{self as lab_calibrate_guest, GuestTimes, median},
        },
    },
    terminal::{failure::Failure, output, progress::Activity},
};

const COSTS: &[Column] = &[
    Column::new("cost", "cost", Unit::Text),
    Column::new("value", "measured", Unit::Count),
    Column::new("quartile_low", "half from", Unit::Count),
    Column::new("quartile_high", "to", Unit::Count),
    Column::json_only("tries", Unit::Count),
    Column::new("default", "default", Unit::Count),
    Column::new("how", "by", Unit::Text),
];

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
    let activity = Activity::start("timing loops, switches and interrupts");
    let threads = costs::measure().map_err(anyhow::Error::new)?;
    let guest = match arguments.world {
        CalibratedWorld::Threads => None,
        CalibratedWorld::Kvm => {
            activity.say("timing a guest");
            Some(under_kvm(&host, median(&threads.tsc_mhz))?)
        }
    };
    drop(activity);
    let figures = figures(&threads, guest.as_ref());
    if let Some(file) = &arguments.out {
        write(file, arguments.world, &figures)?;
    }
    let mut document = output::document("lab calibrate");
    document.table(table(&figures));
    notes(&mut document, &figures, arguments.out.as_deref());
    Ok(output::print(&document, arguments.output)?)
}

/// On the first CPU that this process may use, while all others are kept busy.
fn under_kvm(host: &Host, tsc_mhz: f64) -> Result<GuestTimes, Failure> {
    let cpus = costs::cpus().map_err(anyhow::Error::new)?;
    let here = cpus[0];
    // A thread of its own: its mask goes with it.
    let measured = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            pin_to(here).map_err(anyhow::Error::new)?;
            let _cpu_hogs = CpuHogs::start(&cpus, &[here]);
            lab_calibrate_guest::measure(host, here, tsc_mhz)
        });
        thread.join()
    });
    measured.unwrap_or_else(|_| {
        Err(Failure::Failed(anyhow::anyhow!(
            "the timing thread panicked"
        )))
    })
}

/// The lab's default of that cost.
fn default_of(cost: &str) -> Option<u64> {
    let defaults = serde_json::to_value(Costs::default()).ok()?;
    defaults.get(cost)?.as_u64()
}

fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new("cost", "", COSTS);
    let cell = |value: Option<f64>| value.map_or(Cell::Unknown, Cell::Real);
    for figure in figures {
        let quartiles = figure.quartiles();
        table.push(vec![
            figure.cost.into(),
            figure
                .value()
                .map_or(Cell::Unknown, |value| Cell::Integer(value.into())),
            cell(quartiles.map(|(low, _)| low)),
            cell(quartiles.map(|(_, high)| high)),
            Cell::Integer(figure.tries.len() as u64),
            default_of(figure.cost).map_or(Cell::Unknown, Cell::Integer),
            figure.how.into(),
        ]);
    }
    table
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
    let text = text(
        world,
        figures,
        &Machine::here(output::in_testbed()).to_string(),
    );
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))?;
    Ok(())
}

fn text(world: CalibratedWorld, figures: &[Figure], machine: &str) -> String {
    let world = match world {
        CalibratedWorld::Threads => "threads",
        CalibratedWorld::Kvm => "kvm",
    };
    let mut text = format!(
        "# SPDX-License-Identifier: MIT OR Apache-2.0\n# unspin lab calibrate {world}, commit {COMMIT}, {machine}\n"
    );
    for figure in figures {
        // A String takes any text.
        let _ = match (figure.value(), figure.quartiles()) {
            (Some(value), Some((low, high))) => {
                writeln!(
                    text,
                    "{} = {value} # {low:.0} to {high:.0}: {}",
                    figure.cost, figure.how
                )
            }
            _ => writeln!(text, "# {}: {}", figure.cost, figure.how),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use unspin_experiment::{Error, costs::overrides_of};

    #[test]
    fn what_is_written_is_read_and_names_what_was_not_measured() {
        let figure = |cost, tries| Figure {
            cost,
            tries,
            how: "so",
        };
        let figures = [
            figure("exit_ns", vec![2.0, 7.4, 9.0]),
            figure("poll_ns", vec![]),
        ];
        let text = text(CalibratedWorld::Kvm, &figures, "a machine");
        assert!(text.contains("# poll_ns: so"), "{text}");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &text).expect("written");
        assert_eq!(
            overrides_of(file.path()).expect("well-formed"),
            ["lab.costs.exit_ns=7"]
        );
        std::fs::write(file.path(), "exit_ns = \"7\"").expect("written");
        assert!(matches!(overrides_of(file.path()), Err(Error::Usage(_))));
        assert!(matches!(
            overrides_of(Path::new("/nonexistent")),
            Err(Error::Usage(_))
        ));
    }
}
