// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is compared in the lab: a scenario as it is, changes of it, and the same work where nobody is overcommitted.

use unspin_lab::{Lab, change::Change};
use unspin_scenario::{Overrides, Scenario, ScenarioText, limits::SEED_MAX};

use crate::{Error, world::ideal_of};

/// A policy of the lab: a scenario that differs from stock's.
#[derive(Clone, Debug)]
pub struct Policy {
    /// What it is called.
    pub name: String,
    /// How it differs, in words.
    pub set: String,
    /// All of it.
    pub scenario: Scenario,
}

/// What is compared.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The scenario as it is; pair k runs from its seed + k.
    pub stock: Scenario,
    /// pCPUs of its host.
    pub cpus: u32,
    /// A row each.
    pub policies: Vec<Policy>,
    /// Where nobody is overcommitted, if a VM can be as large as the host.
    pub ideal: Option<Scenario>,
    /// Seeds: pairs of every policy with stock.
    pub seeds: u32,
}

impl Cell {
    /// The scenario with `overrides` as stock, and with each of `policies` in turn (the words of `lab compare --policy`), from so
    /// many seeds; all checked.
    ///
    /// # Errors
    /// A scenario or a policy that cannot be, or fewer seeds than asked for: nothing has run.
    pub fn of(
        text: &ScenarioText,
        overrides: &Overrides,
        policies: &[String],
        seeds: u32,
    ) -> Result<Cell, Error> {
        let stock = text.scenario(overrides)?;
        let lab = Lab::new(&stock).map_err(|error| Error::Lab {
            of: text.file().to_owned(),
            error,
        })?;
        if stock.seed > SEED_MAX - u64::from(seeds) {
            let seed = stock.seed;
            return Err(Error::Usage(format!(
                "there are no {seeds} seeds from {seed} on"
            )));
        }
        let policies = policies.iter();
        let policies = policies.map(|words| Policy::of(text, overrides, words));
        let cpus = lab.host().topology.cpus();
        Ok(Cell {
            policies: policies.collect::<Result<_, _>>()?,
            ideal: ideal_of_host(&stock, cpus),
            seeds,
            cpus,
            stock,
        })
    }
}

impl Policy {
    /// The scenario with the change that these words name.
    fn of(text: &ScenarioText, overrides: &Overrides, words: &str) -> Result<Policy, Error> {
        let of = format!("--policy {words}");
        let refused = |error: &dyn std::fmt::Display| Error::Usage(format!("{of}: {error}"));
        let change = Change::parse(words).map_err(|error| refused(&error))?;
        let mut changed = overrides.clone();
        for set in &change.set {
            changed.set(set).map_err(|error| refused(&error))?;
        }
        let scenario = text.scenario(&changed)?;
        match Lab::new(&scenario) {
            Err(error) => Err(Error::Lab { of, error }),
            Ok(_) => Ok(Policy {
                name: words.to_owned(),
                set: change.set.join(" "),
                scenario,
            }),
        }
    }
}

/// The first VM with as many vCPUs as there are pCPUs, alone; `None` where no VM can be so large.
pub fn ideal_of_host(stock: &Scenario, cpus: u32) -> Option<Scenario> {
    if cpus > unspin_scenario::limits::VCPUS_MAX {
        return None;
    }
    let mut ideal = ideal_of(stock, cpus);
    if let Some(lab) = &mut ideal.lab {
        lab.cpu_hogs = 0;
        lab.weights.clear();
        lab.pins.clear();
    }
    if cpus == 1 {
        // Nobody is there to be called.
        ideal.vms[0].shootdown_every_iterations = 0;
        ideal.vms[0].wakeup_every_iterations = 0;
    }
    Some(ideal)
}
