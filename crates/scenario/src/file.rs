// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands at the top of a scenario's file.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::{
    forms::{ScenarioName, Seed, Time, Whole, read_array},
    lab::LabSettings,
    limits::DURATION_MAX_NS,
    model::{Host, Length, Scenario, Vm},
};

/// What runs, on what host, for how long, from which seed.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    rename = "Scenario",
    extend("oneOf" = [{"required": ["duration"]}, {"required": ["iterations"]}])
)]
pub(crate) struct File {
    /// A short name for tables; the file's stem when absent.
    #[serde(with = "ScenarioName", default)]
    pub name: Option<String>,
    /// Everything random follows from it.
    #[serde(with = "Seed", default = "seed")]
    pub seed: u64,
    /// How long the run lasts. Either this or `iterations`.
    #[serde(with = "Time::<1, DURATION_MAX_NS>", default)]
    pub duration: Option<u64>,
    /// What rates leave out at the beginning; shorter than `duration`, 0 when absent.
    #[serde(with = "Time::<0, DURATION_MAX_NS>", default)]
    pub warm_up: Option<u64>,
    /// The run ends when each vCPU has done so many iterations.
    #[serde(with = "Whole::<1, { u32::MAX }>", default)]
    pub iterations: Option<u32>,
    /// The machine below the VMs.
    #[serde(default)]
    pub host: Host,
    /// The host that `unspin lab` simulates; nobody else looks at it.
    #[serde(default)]
    #[schemars(with = "LabSettings")]
    pub lab: Option<LabSettings>,
    /// Groups of equal VMs.
    #[serde(deserialize_with = "groups")]
    #[schemars(title = VMS_WORDS, length(min = 1))]
    pub vm: Vec<Vm>,
}

fn seed() -> u64 {
    1
}

pub(crate) const VMS_WORDS: &str = "at least one [[vm]] with `vcpus`, `lock` and `hold`";

fn groups<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vm>, D::Error> {
    read_array(from, VMS_WORDS)
}

impl Scenario {
    /// As it is written.
    pub(crate) fn to_file(&self) -> File {
        let (duration, iterations) = match self.length {
            Length::DurationNs(ns) => (Some(ns), None),
            Length::Iterations(iterations) => (None, Some(iterations)),
        };
        File {
            name: Some(self.name.clone()),
            seed: self.seed,
            duration,
            warm_up: duration.map(|_| self.warm_up_ns),
            iterations,
            host: self.host.clone(),
            lab: self.lab.clone(),
            vm: self.vms.clone(),
        }
    }
}
