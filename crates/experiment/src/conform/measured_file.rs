// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin lab conform` reads: what was measured, where, and with which costs the lab is to predict it.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use unspin_lab::change::Change;
use unspin_scenario::{Overrides, Scenario};

use crate::{Error, costs, ideal_of};

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measurements {
    /// Where and how, in words.
    measured: String,
    /// The file of costs, beside this one.
    costs: PathBuf,
    /// Overrides of the scenarios of all groups: what the lab must know of the machine besides costs.
    #[serde(default)]
    set: Vec<String>,
    /// Cells that are compared with one another.
    group: Vec<GroupText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupText {
    name: String,
    /// Beside this file.
    scenario: PathBuf,
    #[serde(default)]
    set: Vec<String>,
    cells: Vec<CellText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CellText {
    lock: String,
    policy: String,
    operations_per_second: f64,
}

/// All that there is to predict.
pub struct Conformance {
    /// Where and how it was measured, in words.
    pub measured: String,
    /// All cells, group by group.
    pub cells: Vec<Measured>,
}

/// One figure that was measured, and the scenario that predicts it.
pub struct Measured {
    /// Of one scenario; cells of one group are compared with one another.
    pub group: String,
    /// The lock.
    pub lock: String,
    /// `stock`, `ideal`, or what `lab compare --policy` takes.
    pub policy: String,
    /// What was measured; above 0.
    pub per_second: f64,
    /// What the lab is to run.
    pub scenario: Scenario,
    /// pCPUs of its host.
    pub pcpus: u32,
}

/// Reads it; whatever is wrong in it or in what it names is wrong input.
///
/// # Errors
/// As above.
pub fn load(file: &Path) -> Result<Conformance, Error> {
    let refused = |reason: String| Error::Usage(format!("{}: {reason}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    let read: Measurements = toml::from_str(&text).map_err(|error| refused(error.to_string()))?;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut common = costs::overrides_of(&folder.join(&read.costs))?;
    common.extend(read.set);
    let mut cells = Vec::new();
    for group in &read.group {
        for cell in &group.cells {
            if !(cell.operations_per_second.is_finite() && cell.operations_per_second > 0.0) {
                return Err(refused(format!(
                    "{}: operations per second are above 0",
                    group.name
                )));
            }
            let (scenario, pcpus) =
                scenario(folder, &common, group, cell).map_err(|error| match error {
                    Error::Usage(reason) => refused(format!(
                        "{}, {}, {}: {reason}",
                        group.name, cell.lock, cell.policy
                    )),
                    other => other,
                })?;
            cells.push(Measured {
                group: group.name.clone(),
                lock: cell.lock.clone(),
                policy: cell.policy.clone(),
                per_second: cell.operations_per_second,
                scenario,
                pcpus,
            });
        }
    }
    Ok(Conformance {
        measured: read.measured,
        cells,
    })
}

/// What the lab is to run, and pCPUs of its host.
fn scenario(
    folder: &Path,
    common: &[String],
    group: &GroupText,
    cell: &CellText,
) -> Result<(Scenario, u32), Error> {
    let change = match cell.policy.as_str() {
        "stock" | "ideal" => Vec::new(),
        words => Change::parse(words).map_err(Error::Usage)?.set,
    };
    let lock = format!("vm.lock={}", cell.lock);
    let mut overrides = Overrides::default();
    for given in common
        .iter()
        .chain(&group.set)
        .chain([&lock])
        .chain(&change)
    {
        overrides
            .set(given)
            .map_err(|error| Error::Usage(error.to_string()))?;
    }
    let scenario = Scenario::load(&folder.join(&group.scenario), &overrides)?;
    let lab = unspin_lab::Lab::new(&scenario).map_err(|error| Error::Usage(error.to_string()))?;
    let pcpus = lab.host().topology.cpus();
    Ok(match cell.policy.as_str() {
        "ideal" => (ideal_of(&scenario, pcpus), pcpus),
        _ => (scenario, pcpus),
    })
}
