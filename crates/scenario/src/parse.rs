// SPDX-License-Identifier: MIT OR Apache-2.0
//! How text becomes a checked [`Scenario`].

use std::{fs, io::Read, path::Path};

use serde::Deserialize;

use crate::{
    check,
    document::{self, Node, Refusal},
    error::ScenarioError,
    file::File,
    forms::is_name_character,
    limits::{FILE_MAX_BYTES, NAME_MAX},
    model::Scenario,
    overrides::Overrides,
};

impl Scenario {
    /// Reads a scenario file, then `overrides` on top of it. The file must be a valid scenario by itself.
    ///
    /// A fault that only an override brings in is shown in the merged text, named `FILE with --set ...`.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Scenario, ScenarioError> {
        let file = path.display().to_string();
        let text = read_file(path).map_err(|reason| {
            ScenarioError::whole_file(
                &file,
                format!("the scenario cannot be read: {reason}"),
                "give the path of a scenario in TOML; `unspin scenario schema` says what is in one",
            )
        })?;
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        Scenario::parse_with(&text, &file, stem.as_deref().unwrap_or(""), overrides)
    }

    /// Reads a scenario from text; `file` is its name in messages. Without a `name` in the text it is "unnamed".
    pub fn parse(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
        parse_named(text, file, "unnamed")
    }

    /// [`Scenario::parse`], then overrides; `name` is used when the text gives none.
    pub fn parse_with(
        text: &str,
        file: &str,
        name: &str,
        overrides: &Overrides,
    ) -> Result<Scenario, ScenarioError> {
        let name = default_name(name);
        let scenario = parse_named(text, file, &name)?;
        if overrides.is_empty() {
            return Ok(scenario);
        }
        let merged = overrides.apply(text);
        parse_named(&merged, &format!("{file} with {overrides}"), &name)
    }
}

/// The file's text; refuses what is too long or not UTF-8.
fn read_file(path: &Path) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err(format!("it is longer than {FILE_MAX_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| format!("it is not UTF-8 text ({error})"))
}

/// A file's stem as a name: what a name may not hold becomes `-`.
fn default_name(stem: &str) -> String {
    let name: String = stem
        .chars()
        .take(NAME_MAX)
        .map(|c| if is_name_character(c) { c } else { '-' })
        .collect();
    if name.is_empty() {
        "unnamed".into()
    } else {
        name
    }
}

fn parse_named(text: &str, file: &str, default_name: &str) -> Result<Scenario, ScenarioError> {
    read(text, default_name).map_err(|refusal| match refusal {
        Refusal::Placed(span, message, allowed) => {
            ScenarioError::at(file, text, span, message, allowed)
        }
        // The document itself places what nothing in it has placed.
        other => ScenarioError::at(file, text, 0..0, other.to_string(), ""),
    })
}

fn read(text: &str, default_name: &str) -> Result<Scenario, Refusal> {
    let document = document::parse(text)?;
    let document = Node::document(&document);
    let file = File::deserialize(document)?;
    let length = check::file(&file).map_err(|breach| {
        let span = document.find(&breach.path).span();
        Refusal::Placed(span, breach.message, breach.allowed)
    })?;
    Ok(Scenario {
        name: file.name.unwrap_or_else(|| default_name.to_owned()),
        seed: file.seed,
        length,
        warm_up_ns: file.warm_up.unwrap_or(0),
        host: file.host,
        lab: file.lab,
        vms: file.vm,
    })
}
