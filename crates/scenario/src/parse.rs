// SPDX-License-Identifier: MIT OR Apache-2.0
//! How text becomes a checked [`Scenario`].

use std::path::Path;

use unspin_strict_toml::Vocabulary;

use crate::{
    ScenarioError, check,
    file::File,
    forms::is_name_character,
    limits::{FILE_MAX_BYTES, NAME_MAX},
    model::Scenario,
    overrides::Overrides,
    renamed, schema,
};

/// A scenario's text before anybody has read it: of a file, or given. Many scenarios are read from one, each with overrides
/// of its own.
#[derive(Clone, Debug)]
pub struct ScenarioText {
    text: String,
    file: String,
    name: String,
}

impl ScenarioText {
    /// That of a file.
    ///
    /// # Errors
    /// A file that cannot be read, is too long or no text.
    pub fn read(path: &Path) -> Result<ScenarioText, ScenarioError> {
        let file = path.display().to_string();
        let text = unspin_strict_toml::read_text(path, FILE_MAX_BYTES).map_err(|reason| {
            ScenarioError::whole_file(
                &file,
                format!("the scenario cannot be read: {reason}"),
                "give the path of a scenario in TOML; `unspin scenario schema` says what is in one",
            )
        })?;
        let stem = path.file_stem();
        let stem = stem.map(|stem| stem.to_string_lossy());
        let name = default_name(stem.as_deref().unwrap_or(""));
        Ok(ScenarioText { text, file, name })
    }

    /// This text; `file` is its name in messages, `name` the scenario's when the text gives none.
    pub fn new(text: impl Into<String>, file: &str, name: &str) -> ScenarioText {
        ScenarioText {
            text: text.into(),
            file: file.to_owned(),
            name: default_name(name),
        }
    }

    /// What messages call it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The scenario's name where the text gives none.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its scenario, with `overrides` on top. The text must be a valid scenario by itself.
    ///
    /// # Errors
    /// A scenario that is refused. A fault that only an override brings in is shown in the merged text, named
    /// `FILE with --set ...`.
    pub fn scenario(&self, overrides: &Overrides) -> Result<Scenario, ScenarioError> {
        let ScenarioText { text, file, name } = self;
        let scenario = parse_named(text, file, name)?;
        if overrides.is_empty() {
            return Ok(scenario);
        }
        let merged = overrides.apply(text);
        parse_named(&merged, &format!("{file} with {overrides}"), name)
    }
}

impl Scenario {
    /// Reads a scenario file, then `overrides` on top of it: [`ScenarioText`] in one step.
    ///
    /// # Errors
    /// As of [`ScenarioText`].
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Scenario, ScenarioError> {
        ScenarioText::read(path)?.scenario(overrides)
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
        ScenarioText::new(text, file, name).scenario(overrides)
    }
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

const VOCABULARY: Vocabulary = Vocabulary {
    words_of: schema::words_of,
    instead_of: renamed::instead_of,
};

fn parse_named(text: &str, file: &str, default_name: &str) -> Result<Scenario, ScenarioError> {
    unspin_strict_toml::read(text, file, VOCABULARY, |file: File| {
        let length = check::file(&file)?;
        Ok(Scenario {
            name: file.name.unwrap_or_else(|| default_name.to_owned()),
            seed: file.seed,
            length,
            warm_up_ns: file.warm_up.unwrap_or(0),
            host: file.host,
            lab: file.lab,
            vms: file.vm,
        })
    })
}
