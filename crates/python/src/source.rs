// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario as Python gives it, and what overrides it.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::Value;
use unspin_experiment::Error;
use unspin_lab::{Lab, change::Change};
use unspin_policy::steering::look_again;
use unspin_scenario::{Overrides, Scenario, ScenarioText};

use crate::error::{of_experiment, of_override, of_scenario, usage};

/// What messages call a scenario that is no file.
const NO_FILE: &str = "scenario";

/// A scenario's text.
#[pyclass(frozen, module = "unspin_lab._native")]
pub struct Source {
    pub(crate) text: ScenarioText,
    /// Whether a place in the text means something to whoever gave it.
    has_places: bool,
}

impl Source {
    fn new(text: ScenarioText, has_places: bool) -> Source {
        // A call begins: a policy's file that has changed since the last one is read anew.
        look_again();
        Source { text, has_places }
    }

    /// What it was read from; nothing if its text is ours.
    pub fn file(&self) -> Option<&str> {
        self.has_places.then(|| self.text.file())
    }

    /// The scenario with these overrides, and its lab. A user policy is compiled: not while the interpreter's lock is held.
    ///
    /// # Errors
    /// A scenario that cannot be, or that the lab cannot run.
    pub fn load(&self, overrides: &Overrides) -> Result<(Scenario, Lab), Error> {
        let scenario = self.text.scenario(overrides)?;
        match Lab::new(&scenario) {
            Ok(lab) => Ok((scenario, lab)),
            Err(error) => {
                let of = self.text.file().to_owned();
                Err(Error::Lab { of, error })
            }
        }
    }
}

#[pymethods]
impl Source {
    /// Of a file in TOML.
    #[staticmethod]
    fn read(path: PathBuf) -> PyResult<Source> {
        let file = path.display().to_string();
        let text = ScenarioText::read(&path).map_err(|error| of_scenario(&error, Some(&file)))?;
        Ok(Source::new(text, true))
    }

    /// Of a text in TOML.
    #[staticmethod]
    fn toml(text: String) -> Source {
        Source::new(ScenarioText::new(text, NO_FILE, "unnamed"), true)
    }

    /// Of the same keys in JSON.
    #[staticmethod]
    fn json(text: &str) -> PyResult<Source> {
        let table: toml::Table =
            serde_json::from_str(text).map_err(|error| usage(&error.to_string()))?;
        let text = ScenarioText::new(table.to_string(), NO_FILE, "unnamed");
        Ok(Source::new(text, false))
    }

    /// What makes the same one in another process: text, what messages call it, the scenario's name where the text gives none, and
    /// whether a place in the text means something.
    fn parts(&self) -> (String, String, String, bool) {
        let text = &self.text;
        let words = [text.text(), text.file(), text.name()].map(str::to_owned);
        let [text, file, name] = words;
        (text, file, name, self.has_places)
    }

    /// Of what `parts` gave.
    #[staticmethod]
    fn of_parts(text: String, file: &str, name: &str, has_places: bool) -> Source {
        Source::new(ScenarioText::new(text, file, name), has_places)
    }

    /// Its canonical text with these settings, checked.
    fn check(&self, py: Python<'_>, settings: Vec<String>) -> PyResult<String> {
        let overrides = overrides(&settings)?;
        let loaded = py.detach(|| self.load(&overrides));
        let (scenario, _) = loaded.map_err(|error| of_experiment(&error, self.file()))?;
        Ok(scenario.to_toml())
    }
}

/// Settings, each `key=value` with the value in TOML, in order.
///
/// # Errors
/// `ScenarioError`.
pub fn overrides(settings: &[String]) -> PyResult<Overrides> {
    let mut overrides = Overrides::default();
    for given in settings {
        overrides.set(given).map_err(|error| of_override(&error))?;
    }
    Ok(overrides)
}

/// A value in JSON as a setting has it: in TOML, a text without quotes where that is no other value.
#[pyfunction]
pub fn toml_word(json: &str) -> PyResult<String> {
    let refused = |error: &dyn std::fmt::Display| usage(&format!("{json}: {error}"));
    let value: Value = serde_json::from_str(json).map_err(|error| refused(&error))?;
    if let Value::String(text) = &value {
        let other = format!("value = {text}").parse::<toml::Table>().is_ok();
        if !other && text.trim() == text && !text.is_empty() {
            return Ok(text.clone());
        }
    }
    let value: toml::Value = serde_json::from_value(value).map_err(|error| refused(&error))?;
    Ok(value.to_string())
}

/// The settings that a policy's words stand for.
#[pyfunction]
pub fn change_of(words: &str) -> PyResult<Vec<String>> {
    let change = Change::parse(words).map_err(|error| usage(&error))?;
    Ok(change.set)
}
