// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keys of scenarios that had another name, or that have gone: the refusal of the old one names what to write instead.

/// Section, the name before, what to write now.
const RENAMED: &[(&str, &str, &str)] = &[
    ("", "turns", "it is called `iterations` now"),
    ("[lab]", "burners", "it is called `cpu_hogs` now"),
    ("[lab]", "look_period", "it is called `poll_period` now"),
    ("[lab]", "spin_turns", "it is called `spin_count` now"),
    ("[[vm]]", "hints", "it is called `pv_page` now"),
    ("[[vm]]", "hint_pages", "it is called `pv_page_memory` now"),
    (
        "[[vm]]",
        "help_after_turns",
        "it is called `help_after_spins` now",
    ),
    (
        "[[vm]]",
        "log_minimum_turns",
        "it is called `log_minimum_spins` now",
    ),
    (
        "[[vm]]",
        "pause_every_turns",
        "it is called `pause_every_spins` now",
    ),
    (
        "[[vm]]",
        "shootdown_every_turns",
        "it is called `shootdown_every_iterations` now",
    ),
    (
        "[[vm]]",
        "wakeup_every_turns",
        "it is called `wakeup_every_iterations` now",
    ),
    (
        "[lab]",
        "page_fault_every_turns",
        "it is called `page_fault_every_iterations` now",
    ),
    (
        "[host]",
        "scheduler",
        "a scenario does not choose it: write `lab.scheduler` for the lab, `unspin steer` for a host",
    ),
    (
        "[host]",
        "policy",
        "a scenario does not choose it: write `lab.policy` for the lab, `unspin steer --policy` for a host",
    ),
];

/// What to write in place of `key` of a section; `None`: no scenario ever had that key there.
pub(crate) fn instead_of(section: &str, key: &str) -> Option<&'static str> {
    RENAMED
        .iter()
        .find(|(of, before, _)| *of == section && *before == key)
        .map(|(_, _, now)| *now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::has_key;

    #[test]
    fn what_is_named_instead_is_a_key() {
        for (section, before, now) in RENAMED {
            let named = now.split('`').nth(1).expect("a name in backquotes");
            let own = section.trim_matches(['[', ']']);
            let (table, key) = named.split_once('.').unwrap_or((own, named));
            assert!(has_key(table, key), "{section} {before}: {now}");
            assert!(!has_key(own, before), "{section} {before}");
        }
    }
}
