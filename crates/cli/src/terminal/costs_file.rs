// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--costs FILE`: costs of the lab as `unspin lab calibrate --out` writes them.

use std::path::Path;

use crate::terminal::failure::Failure;

/// The costs in a file of `lab calibrate`, as overrides of a scenario.
///
/// # Errors
/// A file that cannot be read or is no list of whole numbers. Names are checked where they are used.
pub fn overrides_of(file: &Path) -> Result<Vec<String>, Failure> {
    let refused = |reason: String| Failure::Usage(format!("{}: {reason}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| refused(error.to_string()))?;
    overrides_in(&text).map_err(refused)
}

/// The costs in such a file's text.
///
/// # Errors
/// As above.
pub fn overrides_in(text: &str) -> Result<Vec<String>, String> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| error.to_string())?;
    let each = table.iter().map(|(name, value)| match value {
        toml::Value::Integer(value) => Ok(format!("lab.costs.{name}={value}")),
        _ => Err(format!("{name} is no whole number")),
    });
    each.collect()
}
