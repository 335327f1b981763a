// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who uses whom, and the cycles in that.

use std::collections::{BTreeMap, BTreeSet};

/// For each name those that it uses.
pub type Uses = BTreeMap<String, BTreeSet<String>>;

/// The sets of names that all use each other, directly or by others; each set and the list of them by name. A name that
/// uses only itself is none.
pub fn cycles(uses: &Uses) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> = uses
        .keys()
        .map(|name| (name, reached(uses, name)))
        .collect();
    let mut cycles: Vec<Vec<String>> = Vec::new();
    for (name, those) in &reached {
        if cycles.iter().any(|cycle| cycle.contains(name)) {
            continue;
        }
        let uses_back = |other: &&&String| {
            let back = reached.get(**other);
            back.is_some_and(|back| back.contains(name))
        };
        let cycle: Vec<String> = those
            .iter()
            .filter(uses_back)
            .map(|other| (*other).clone())
            .collect();
        if cycle.len() > 1 {
            cycles.push(cycle);
        }
    }
    cycles
}

/// All that a name uses, directly or by others.
fn reached<'a>(uses: &'a Uses, name: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&String> = uses[name].iter().collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(uses.get(next).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(pairs: &[(&str, &str)]) -> Uses {
        let mut uses = Uses::new();
        for (user, used) in pairs {
            uses.entry((*user).into())
                .or_default()
                .insert((*used).into());
        }
        uses
    }

    #[test]
    fn what_only_goes_one_way_has_no_cycle() {
        assert!(cycles(&uses(&[("a", "b"), ("a", "c"), ("b", "c"), ("c", "c")])).is_empty());
    }

    #[test]
    fn each_cycle_is_named_once_and_who_only_uses_it_is_not_in_it() {
        let found = cycles(&uses(&[
            ("user", "a"),
            ("a", "b"),
            ("b", "c"),
            ("c", "a"),
            ("c", "used"),
            ("x", "y"),
            ("y", "x"),
        ]));
        assert_eq!(found, [vec!["a", "b", "c"], vec!["x", "y"]]);
    }
}
