// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors as the exceptions of `unspin_lab.errors`.

use std::error::Error as _;

use pyo3::{
    exceptions::PyKeyboardInterrupt,
    prelude::*,
    types::{PyDict, PyString},
};
use unspin_experiment::Error;
use unspin_lab::LabError;
use unspin_scenario::{OverrideError, ScenarioError};

/// What a `ScenarioError` of Python says beside its message.
#[derive(Default)]
struct About<'a> {
    key: &'a str,
    file: Option<&'a str>,
    line: usize,
    column: usize,
    allowed: Option<&'a str>,
}

/// An exception of `unspin_lab.errors`; why there is none if it cannot be made.
fn exception(
    class: &str,
    message: &str,
    attributes: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>,
) -> PyErr {
    Python::attach(|py| {
        let made = || {
            let class = py.import("unspin_lab.errors")?.getattr(class)?;
            let exception = class.call1((PyString::new(py, message),))?;
            attributes(&exception)?;
            Ok(PyErr::from_value(exception))
        };
        made().unwrap_or_else(|error: PyErr| error)
    })
}

fn scenario_error(message: &str, about: &About<'_>) -> PyErr {
    exception("ScenarioError", message, |exception| {
        let place = |number: usize| (number > 0).then_some(number);
        let attributes = PyDict::new(exception.py());
        attributes.set_item("key", about.key)?;
        attributes.set_item("file", about.file)?;
        attributes.set_item("line", place(about.line))?;
        attributes.set_item("column", place(about.column))?;
        attributes.set_item("allowed", about.allowed)?;
        for (name, value) in attributes {
            exception.setattr(name.cast::<PyString>()?, value)?;
        }
        Ok(())
    })
}

/// A scenario that is refused. `file`: what it was read from; without one, its text is ours and places in it mean nothing.
pub fn of_scenario(error: &ScenarioError, file: Option<&str>) -> PyErr {
    let key = error.key();
    let message = match (file, error.allowed()) {
        (Some(_), _) => error.plain(),
        (None, allowed) => {
            let allowed = allowed.map_or_else(String::new, |allowed| format!("; {allowed}"));
            let key = if key.is_empty() { "the scenario" } else { key };
            format!("{key}: {}{allowed}", error.message())
        }
    };
    let (line, column) = file.map_or((0, 0), |_| (error.line(), error.column()));
    let about = About {
        key,
        file,
        line,
        column,
        allowed: error.allowed(),
    };
    scenario_error(&message, &about)
}

/// A setting that cannot be understood.
pub fn of_override(error: &OverrideError) -> PyErr {
    let about = About {
        key: error.key(),
        ..About::default()
    };
    scenario_error(&error.to_string(), &about)
}

/// A scenario that the lab cannot run; `of` says which.
fn of_lab(of: &str, error: &LabError) -> PyErr {
    let about = About {
        key: &error.key(),
        ..About::default()
    };
    let mut message = format!("{of}: {error}");
    // Of a policy's file its path is named first, and why it cannot be read further down.
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        if !message.contains(&why) {
            message = format!("{message}: {why}");
        }
        cause = error.source();
    }
    scenario_error(&message, &about)
}

/// Arguments that cannot be.
pub fn usage(message: &str) -> PyErr {
    exception("UsageError", message, |_| Ok(()))
}

/// Anything else.
pub fn failed(message: &str) -> PyErr {
    exception("RunError", message, |_| Ok(()))
}

/// What an experiment says; `file` as in [`of_scenario`].
pub fn of_experiment(error: &Error, file: Option<&str>) -> PyErr {
    match error {
        Error::Usage(message) => usage(message),
        Error::Scenario(error) => of_scenario(error, file),
        Error::Lab { of, error } => of_lab(of, error),
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Failed(error) => failed(&format!("{error:#}")),
    }
}
