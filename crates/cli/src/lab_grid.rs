// SPDX-License-Identifier: MIT OR Apache-2.0
//! The grid of `unspin lab sweep`: `--set key=a..b[..step]` and `--set key=x,y,z`, every value with every other.

use unspin_scenario::{Overrides, Scenario, limits::SEED_MAX};
use unspin_sim::Laboratory;

use crate::{arguments::ScenarioArguments, failure::Failure, lab};

/// Most values of one key.
const VALUES_MAX: usize = 100_000;
/// Most cells of a grid: their files have six digits.
const CELLS_MAX: usize = 1_000_000;

/// A key with several values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// As `--set` takes it.
    pub key: String,
    /// At least two.
    pub values: Vec<String>,
}

/// A cell: one run.
#[derive(Clone, Debug)]
pub struct GridCell {
    /// One value for each axis.
    pub values: Vec<String>,
    /// With these values in it, and its seed.
    pub scenario: Scenario,
}

/// All cells, checked.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The scenario without the axes.
    pub base: Scenario,
    /// In the order of the command line; the last one changes fastest but for the seeds.
    pub axes: Vec<Axis>,
    /// Seeds of each point.
    pub seeds: u32,
    /// In order.
    pub cells: Vec<GridCell>,
}

impl Grid {
    /// Reads the scenario once, and checks every cell.
    ///
    /// # Errors
    /// A range that cannot be understood, a cell that cannot run, too many cells: nothing has run.
    pub fn load(arguments: &ScenarioArguments, seeds: u32) -> Result<Grid, Failure> {
        let mut plain = arguments.clone();
        plain.overrides.set.clear();
        let mut axes: Vec<Axis> = Vec::new();
        for given in &arguments.overrides.set {
            let refused = |why: String| Failure::Usage(format!("--set {given}: {why}"));
            let axis = parse_axis(given).map_err(refused)?;
            if axes.iter().any(|other| other.key == axis.key) {
                return Err(refused("this key has values already".to_owned()));
            }
            match &axis.values[..] {
                [_] => plain.overrides.set.push(given.clone()),
                _ => axes.push(axis),
            }
        }
        let base = plain.load()?;
        refuse_own(&base)?;
        Laboratory::new(&base).map_err(|error| lab::refused(&plain.file.display(), &error))?;
        let points = axes.iter().try_fold(1usize, |product, axis| {
            product.checked_mul(axis.values.len())
        });
        let cells = points.and_then(|points| points.checked_mul(seeds as usize));
        let Some(points) = points.filter(|_| cells.is_some_and(|cells| cells <= CELLS_MAX)) else {
            return Err(Failure::Usage(format!(
                "the grid has more than {CELLS_MAX} cells; take fewer values or seeds"
            )));
        };
        let mut grid = Grid {
            base,
            axes,
            seeds,
            cells: Vec::new(),
        };
        for point in 0..points {
            grid.add_point(arguments, &plain, point)?;
        }
        Ok(grid)
    }

    /// The cells of one point, one for each seed.
    fn add_point(
        &mut self,
        arguments: &ScenarioArguments,
        plain: &ScenarioArguments,
        point: usize,
    ) -> Result<(), Failure> {
        let mut rest = point;
        let mut values: Vec<String> = Vec::new();
        for axis in self.axes.iter().rev() {
            values.push(axis.values[rest % axis.values.len()].clone());
            rest /= axis.values.len();
        }
        values.reverse();
        let mut overrides: Overrides = plain.overrides.overrides()?;
        for (axis, value) in self.axes.iter().zip(&values) {
            let set = format!("{}={value}", axis.key);
            overrides
                .set(&set)
                .map_err(|error| Failure::Usage(error.to_string()))?;
        }
        let scenario = Scenario::load(&arguments.file, &overrides)?;
        refuse_own(&scenario)?;
        Laboratory::new(&scenario)
            .map_err(|error| lab::refused(&format!("cell {}", self.name(&values)), &error))?;
        if scenario.seed > SEED_MAX - u64::from(self.seeds) {
            let (seeds, seed) = (self.seeds, scenario.seed);
            return Err(Failure::Usage(format!(
                "there are no {seeds} seeds from {seed} on"
            )));
        }
        for seed in 0..u64::from(self.seeds) {
            let mut scenario = scenario.clone();
            scenario.seed += seed;
            let values = values.clone();
            self.cells.push(GridCell { values, scenario });
        }
        Ok(())
    }

    /// `key=value key=value`.
    pub fn name(&self, values: &[String]) -> String {
        let pairs = self.axes.iter().zip(values);
        let words: Vec<String> = pairs
            .map(|(axis, value)| format!("{}={value}", axis.key))
            .collect();
        words.join(" ")
    }

    /// All axes and the number of seeds, in one line.
    pub fn describe(&self) -> String {
        let mut words: Vec<String> = self
            .axes
            .iter()
            .map(|axis| format!("{}={}", axis.key, axis.values.join("|")))
            .collect();
        words.push(format!("seeds={}", self.seeds));
        words.join(" ")
    }
}

/// A file may say something else when the sweep is gone on with.
fn refuse_own(scenario: &Scenario) -> Result<(), Failure> {
    let policy = scenario.lab.as_ref().and_then(|lab| lab.policy.as_deref());
    let own = policy.is_some_and(|policy| policy.split(',').any(|word| word.ends_with(".c")));
    match own {
        false => Ok(()),
        true => Err(Failure::Usage(
            "a sweep may be gone on with later, when a file with a policy of your own says something else: `lab compare` \
             takes such files"
                .to_owned(),
        )),
    }
}

/// `key=value`, `key=x,y,z`, `key=a..b`, `key=a..b..step` or `key=a..b..*factor`; both ends belong to it.
fn parse_axis(given: &str) -> Result<Axis, String> {
    let (key, values) = given
        .split_once('=')
        .ok_or("write key=value, key=a..b or key=x,y,z")?;
    let mut all = Vec::new();
    for part in split(values) {
        match range(part)? {
            Some(values) => all.extend(values),
            None => all.push(part.to_owned()),
        }
        if all.len() > VALUES_MAX {
            return Err(format!("more than {VALUES_MAX} values"));
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    if let Some(twice) = all.iter().find(|value| !seen.insert(value.as_str())) {
        return Err(format!("the value {twice} stands there twice"));
    }
    Ok(Axis {
        key: key.trim().to_owned(),
        values: all,
    })
}

/// At the commas that are in no quotes, brackets or braces.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut quoted) = (Vec::new(), 0, 0i32, false);
    for (place, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if !quoted && depth <= 0 => {
                parts.push(text[begin..place].trim());
                begin = place + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

/// The values of `a..b..step`; `None`: it is no range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let parts: Vec<&str> = text.split("..").map(str::trim).collect();
    let (first, last, step) = match parts[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return Ok(None),
    };
    let (Some((first, unit)), Some((last, other))) = (number(first), number(last)) else {
        return Ok(None);
    };
    let (factor, step) = match step.strip_prefix('*') {
        Some(step) => (true, step),
        None => (false, step),
    };
    let bad = "a range is a..b, a..b..step or a..b..*factor, whole numbers in one unit, with a step that leads from a to b";
    let (step, step_unit) = number(step).ok_or(bad)?;
    let same = unit == other && (step_unit.is_empty() || (step_unit == unit && !factor));
    let leads = step >= 1 && first <= last && (!factor || (step >= 2 && first >= 1));
    if !same || !leads {
        return Err(bad.to_owned());
    }
    let next = |value: &u64| match factor {
        true => value.checked_mul(step),
        false => value.checked_add(step),
    };
    let values = std::iter::successors(Some(first), next).take_while(|value| *value <= last);
    let values: Vec<String> = values
        .take(VALUES_MAX + 1)
        .map(|value| format!("{value}{unit}"))
        .collect();
    Ok(Some(values))
}

/// A whole number and what stands behind it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|character: char| !character.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let known = ["", "ns", "us", "ms", "s", "loops", " loops"].contains(&unit);
    Some((digits.parse().ok().filter(|_| known)?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(given: &str) -> Vec<String> {
        parse_axis(given)
            .unwrap_or_else(|error| panic!("{given}: {error}"))
            .values
    }

    #[test]
    fn values_of_a_key() {
        assert_eq!(values("vm.vcpus=2..5"), ["2", "3", "4", "5"]);
        assert_eq!(values("vm.hold=2us..9us..3us"), ["2us", "5us", "8us"]);
        assert_eq!(values("vm.hold=2us..9us..3"), ["2us", "5us", "8us"]);
        assert_eq!(
            values("host.ple_window=10..1000..*10"),
            ["10", "100", "1000"]
        );
        assert_eq!(
            values("vm.lock=ticket,test_and_set"),
            ["ticket", "test_and_set"]
        );
        assert_eq!(values("vm.vcpus=1,4..6,9"), ["1", "4", "5", "6", "9"]);
        assert_eq!(
            values("lab.pins=[\"0,2\"],[\"1\"]"),
            ["[\"0,2\"]", "[\"1\"]"]
        );
        assert_eq!(values("vm.hold={ uniform = [\"1us\", \"2us\"] }").len(), 1);
        assert_eq!(values("seed=7"), ["7"]);
    }

    #[test]
    fn what_is_no_range() {
        for given in [
            "a",
            "a=5..1",
            "a=1..5..0",
            "a=0..8..*2",
            "a=1..8..*1",
            "a=1us..5ms",
            "a=1,1",
            "a=1..999999999",
        ] {
            assert!(parse_axis(given).is_err(), "{given}");
        }
        assert_eq!(values("a=x..y"), ["x..y"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[a-z.=,0-9us*\\[\\]{}\" ]{0,40}") {
            if let Ok(axis) = parse_axis(&text) {
                prop_assert!(!axis.values.is_empty());
            }
        }
    }
}
