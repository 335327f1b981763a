// SPDX-License-Identifier: MIT OR Apache-2.0
//! What there is: names, costs, the schema of scenarios.

use std::path::PathBuf;

use pyo3::prelude::*;
use unspin_experiment::costs as files;
use unspin_lab::{change, costs::Costs};
use unspin_scenario::json_schema;

use crate::{
    error::{of_experiment, usage},
    source::{Source, overrides},
};

/// The JSON Schema of scenarios, in JSON.
#[pyfunction]
pub fn schema() -> String {
    json_schema().to_string()
}

/// Kinds of words that policies consist of, and the words.
#[pyfunction]
pub fn words() -> Vec<(&'static str, Vec<&'static str>)> {
    change::words().into()
}

/// The names of locks, in JSON's order of the schema.
#[pyfunction]
pub fn locks() -> Vec<String> {
    let lock = &unspin_scenario::table_schema("vm")["properties"]["lock"];
    let names = lock["enum"].as_array().into_iter().flatten();
    names
        .filter_map(|name| Some(name.as_str()?.to_owned()))
        .collect()
}

/// The costs of that scenario's lab, in JSON; without a scenario those that hold where nobody sets any.
#[pyfunction]
pub fn costs(source: Option<&Source>, settings: Vec<String>) -> PyResult<String> {
    let costs = match source {
        Some(source) => {
            let loaded = source.load(&overrides(&settings)?);
            let (_, lab) = loaded.map_err(|error| of_experiment(&error, source.file()))?;
            lab.costs().clone()
        }
        None => Costs::default(),
    };
    serde_json::to_string(&costs).map_err(|error| usage(&error.to_string()))
}

/// The settings of a file that `unspin lab calibrate --out` wrote.
#[pyfunction]
pub fn cost_file(path: PathBuf) -> PyResult<Vec<String>> {
    files::overrides_of(&path).map_err(|error| of_experiment(&error, None))
}

/// The settings of the deterministic testbed's costs.
#[pyfunction]
pub fn testbed_costs() -> PyResult<Vec<String>> {
    files::overrides_in(files::TESTBED).map_err(|error| usage(&error))
}
