// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the lab runs for the papers: a scenario, and its columns, which differ from it by what `--set` would say.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, ensure};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use unspin_scenario::{Overrides, Scenario, limits::SEED_MAX};

use crate::source::PAIRS_LEAST;

/// A run of the lab, as a file of claims has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// Its name, which sources cite.
    pub name: String,
    /// The scenario's file, from the top of the tree.
    pub scenario: String,
    /// What differs from it in all columns, as `--set` takes it.
    #[serde(default)]
    pub set: Vec<String>,
    /// How many seeds, from the scenario's on.
    #[serde(default = "seeds")]
    pub seeds: u32,
    /// Whether each pause-loop exit is classified (ruling 28): some slower, and it needs memory for every event.
    #[serde(default)]
    pub outcomes: bool,
    /// What differs further, by column.
    pub columns: BTreeMap<String, Vec<String>>,
}

const fn seeds() -> u32 {
    PAIRS_LEAST
}

impl Run {
    /// The scenario of a column, with the first seed.
    ///
    /// # Errors
    /// No such column; a scenario that cannot be read, or not with these settings.
    pub fn scenario(&self, root: &Path, column: &str) -> anyhow::Result<Scenario> {
        let set = self
            .columns
            .get(column)
            .with_context(|| format!("{}: no column {column}", self.name))?;
        let mut overrides = Overrides::default();
        for given in self.set.iter().chain(set) {
            let why = || format!("{}, column {column}", self.name);
            overrides.set(given).with_context(why)?;
        }
        let scenario = Scenario::load(&root.join(&self.scenario), &overrides).map_err(|error| {
            anyhow::anyhow!("{}, column {column}: {}", self.name, error.plain())
        })?;
        ensure!(
            scenario.seed <= SEED_MAX - u64::from(self.seeds),
            "{}: no {} seeds from {} on",
            self.name,
            self.seeds,
            scenario.seed
        );
        Ok(scenario)
    }

    /// SHA-256 of what makes a column: the scenario's values, without comments and layout, and the settings. A new key of scenarios
    /// does not change it, as it would the scenario's own hash.
    ///
    /// # Errors
    /// No such column; a scenario that cannot be read.
    pub fn settings_hash(&self, root: &Path, column: &str) -> anyhow::Result<String> {
        let set = self
            .columns
            .get(column)
            .with_context(|| format!("{}: no column {column}", self.name))?;
        let text = fs::read_to_string(root.join(&self.scenario))
            .with_context(|| format!("cannot read {}", self.scenario))?;
        let values: toml::Table = toml::from_str(&text).with_context(|| self.scenario.clone())?;
        let mut hash = Sha256::new();
        hash.update(values.to_string());
        for given in self.set.iter().chain(set) {
            hash.update([0]);
            hash.update(given);
        }
        let digits = hash.finalize();
        Ok(digits.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// What is wrong with it, beside its scenarios.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.columns.is_empty(), "{}: no columns", self.name);
        ensure!(
            self.seeds >= PAIRS_LEAST,
            "{}: {} seeds, {PAIRS_LEAST} is the least",
            self.name,
            self.seeds
        );
        Ok(())
    }
}

/// Words that say where a parameter of a paper's scenario is from; each of its lines has one in its comment.
pub const ORIGINS: [&str; 5] = ["paper", "constant", "measured", "fitted", "assumed"];

/// Lines of a scenario of a paper, numbered from 1, that give a value and do not say where it is from.
pub fn without_origin(text: &str) -> BTreeSet<usize> {
    let says = |comment: &str| {
        let word = comment.trim_start().split([':', ',', ' ']).next();
        word.is_some_and(|word| ORIGINS.contains(&word))
    };
    let lines = text.lines().enumerate();
    let values = lines.filter(|(_, line)| {
        let line = line.trim_start();
        line.contains('=') && !line.starts_with('#')
    });
    values
        .filter(|(_, line)| {
            let comment = line.rsplit_once(" # ").map(|(_, comment)| comment);
            !comment.is_some_and(says)
        })
        .map(|(number, _)| number + 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_says_where_it_is_from() {
        let text = "# a = 1\nname = \"x\" # constant: a name\n\n[host]\ncpus = 8 # paper, section 6.1\nple_window = 3 # guessed\nseed = 1\n";
        assert_eq!(without_origin(text), [6, 7].into());
    }

    #[test]
    fn columns_are_the_scenario_with_changes() {
        let tree = tempfile::tempdir().unwrap();
        let text = "duration = \"1ms\"\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\nhold = \"1us\"\n";
        fs::write(tree.path().join("s.toml"), text).unwrap();
        let mut run: Run = toml::from_str(
            "name = \"r\"\nscenario = \"s.toml\"\nset = [\"vm.vcpus=2\"]\ncolumns = { a = [], b = [\"vm.lock=mcs\"], c = [\"vm.lock=none\"] }",
        )
        .unwrap();
        run.check().unwrap();
        let [a, b] = ["a", "b"].map(|column| run.scenario(tree.path(), column).unwrap());
        assert_eq!((a.vms[0].vcpus, b.vms[0].vcpus), (2, 2));
        assert_ne!(a.hash(), b.hash());
        let hash = |run: &Run, column: &str| run.settings_hash(tree.path(), column).unwrap();
        let before = hash(&run, "a");
        assert_ne!(before, hash(&run, "b"));
        fs::write(tree.path().join("s.toml"), format!("# words\n{text}")).unwrap();
        assert_eq!(hash(&run, "a"), before);
        run.set.push("seed=2".to_owned());
        assert_ne!(hash(&run, "a"), before);
        assert!(run.scenario(tree.path(), "c").is_err());
        assert!(run.scenario(tree.path(), "d").is_err());
        run.seeds = 4;
        assert!(run.check().is_err());
    }
}
