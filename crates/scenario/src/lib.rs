// SPDX-License-Identifier: MIT OR Apache-2.0
//! One vocabulary for what runs: the lab, the testbed, real hosts and threads all take a [`Scenario`].
//!
//! A scenario is written in TOML and read strictly ([`Scenario::load`], [`Scenario::parse`]): a key that nobody
//! knows, a number without its unit or a value that cannot be is refused with file, line, column and what is
//! allowed. [`Scenario::to_toml`] prints it back in one canonical form, which [`Scenario::hash`] names.
//!
//! A key is one field of `File` (the top), [`Host`], [`LabSettings`] or [`Vm`].

mod check;
mod distribution;
mod exponential;
mod file;
mod forms;
mod host_noise;
mod lab;
pub mod limits;
mod model;
mod overrides;
mod parse;
mod print;
mod quantity;
mod renamed;
mod schema;
mod work;

pub use forms::{LabTopology, LockSharing};
pub use host_noise::{HostNoise, NoiseRates, NoiseSource};
pub use lab::{LabEcs, LabGroups, LabSettings, LabVendor};
pub use model::{EcsAblation, Host, Length, PvPageMemory, Scenario, Vm, Workload};
pub use overrides::{OverrideError, Overrides};
pub use parse::ScenarioText;
pub use quantity::{WorkUnit, format_duration, parse_duration};
pub use schema::{json_schema, table_schema, value_words};
/// A scenario that was refused.
pub use unspin_strict_toml::Error as ScenarioError;
pub use work::{Distribution, Shape};
