// SPDX-License-Identifier: MIT OR Apache-2.0
//! What things cost in the lab, as `unspin lab calibrate --out` writes it.

use std::path::Path;

use crate::Error;

/// What the deterministic testbed's operations cost, so that the one binary is enough.
pub const TESTBED: &str = include_str!("../../../scenarios/lab/testbed.costs.toml");

/// The costs in a file of `lab calibrate`, as overrides of a scenario.
///
/// # Errors
/// A file that cannot be read or is no list of whole numbers. Names are checked where they are used.
pub fn overrides_of(file: &Path) -> Result<Vec<String>, Error> {
    let refused = |reason: String| Error::Usage(format!("{}: {reason}", file.display()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_overrides() {
        let costs = overrides_in(TESTBED).expect("costs");
        assert!(costs.contains(&"lab.costs.exit_ns=6232".to_owned()));
        assert!(overrides_in("exit_ns = \"7\"\n").is_err());
        let missing = overrides_of(Path::new("/nonexistent"));
        assert!(matches!(missing, Err(Error::Usage(text)) if text.contains("/nonexistent")));
    }
}
