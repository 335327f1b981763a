// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which cell of ruling 35 a QEMU asks for, as far as its command line tells.

/// QEMU's bits and the words of a cell, in the order in which `unspin vm linux` prints them.
const WORDS: [(&str, &str); 5] = [
    ("kvm-pv-tlb-flush", "pv-tlb-flush"),
    ("kvm-pv-ipi", "pv-ipi"),
    ("kvm-pv-sched-yield", "pv-sched-yield"),
    ("kvm-asyncpf-int", "async-pf"),
    ("kvm-steal-time", "steal-time"),
];

/// The cell that these words of a command line ask for, as in `nopvspin,async-pf,steal-time`.
///
/// `None` unless the line tells it: the kernel's own command line must be there (`-append`), where `nopvspin` would
/// stand, and the CPU must be `host` or `max`, which give every bit that KVM has unless it is switched off. What the
/// guest's kernel makes of the bits is not seen.
pub(crate) fn asked_for<'a>(words: impl Iterator<Item = &'a str> + Clone) -> Option<String> {
    let value = |option: &str| {
        let mut words = words.clone();
        words.find(|word| *word == option)?;
        words.next()
    };
    let kernel = value("-append")?;
    let mut cpu = value("-cpu")?.split(',');
    if !matches!(cpu.next(), Some("host" | "max")) {
        return None;
    }
    let switches: Vec<&str> = cpu.collect();
    // The last word about a bit counts.
    let on = |bit: &str| {
        let of = |switch: &str| match switch.split_once('=') {
            Some((name, state)) if name == bit => Some(state == "on"),
            Some(_) => None,
            None if switch.strip_prefix('-') == Some(bit) => Some(false),
            None if switch.strip_prefix('+') == Some(bit) || switch == bit => Some(true),
            None => None,
        };
        switches
            .iter()
            .rev()
            .find_map(|switch| of(switch))
            .unwrap_or(true)
    };
    let spinlocks = match () {
        () if kernel.split_whitespace().any(|word| word == "nopvspin") => "nopvspin",
        () if on("kvm-pv-unhalt") => "pvspin",
        () => "virtspin",
    };
    let mut cell = vec![spinlocks];
    cell.extend(
        WORDS
            .iter()
            .filter(|(bit, _)| on(bit))
            .map(|(_, word)| *word),
    );
    Some(cell.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(line: &str) -> Option<String> {
        asked_for(line.split('|'))
    }

    #[test]
    fn the_line_tells_the_cell() {
        for (line, expected) in [
            (
                "-cpu|host|-append|quiet",
                "pvspin,pv-tlb-flush,pv-ipi,pv-sched-yield,async-pf,steal-time",
            ),
            (
                "-append|a nopvspin b|-m|1G|-cpu|host,kvm-pv-tlb-flush=off,kvm-pv-ipi=off,-kvm-pv-sched-yield",
                "nopvspin,async-pf,steal-time",
            ),
            (
                "-cpu|max,kvm-pv-unhalt=off,kvm-pv-ipi=off,+kvm-pv-ipi|-append|x=nopvspin",
                "virtspin,pv-tlb-flush,pv-ipi,pv-sched-yield,async-pf,steal-time",
            ),
        ] {
            assert_eq!(cell(line).as_deref(), Some(expected), "{line}");
        }
    }

    #[test]
    fn what_the_line_does_not_tell_is_unknown() {
        for line in [
            "",
            "-cpu|host",
            "-append|quiet",
            "-cpu|Skylake-Server|-append|quiet",
            "-append|quiet|-cpu",
        ] {
            assert_eq!(cell(line), None, "{line}");
        }
    }
}
