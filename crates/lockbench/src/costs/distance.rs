// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which CPUs share what, as sysfs says (Documentation/ABI/stable/sysfs-devices-system-cpu).

use std::{fs, path::Path};

/// What the nearest thing is that two CPUs share; from near to far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Near {
    /// A core: they are its hardware threads.
    Core,
    /// The last-level cache.
    Cache,
    /// The socket.
    Socket,
    /// Only the machine.
    Machine,
}

const SYSFS: &str = "/sys/devices/system/cpu";

/// For each distance that there is from `here`, a CPU of `cpus` that is so far away.
pub fn near_cpus(here: usize, cpus: &[usize]) -> Vec<(Near, usize)> {
    let mut found: Vec<(Near, usize)> = Vec::new();
    for &cpu in cpus.iter().filter(|cpu| **cpu != here) {
        let distance = distance(Path::new(SYSFS), here, cpu);
        if found.iter().all(|(known, _)| *known != distance) {
            found.push((distance, cpu));
        }
    }
    found.sort_unstable();
    found
}

/// What sysfs does not tell counts as not shared.
fn distance(sysfs: &Path, one: usize, other: usize) -> Near {
    let folder = sysfs.join(format!("cpu{one}"));
    let shared =
        |list: String| fs::read_to_string(folder.join(list)).is_ok_and(|list| holds(&list, other));
    let last_level = (0..10)
        .rev()
        .find(|level| folder.join(format!("cache/index{level}")).exists());
    if shared("topology/thread_siblings_list".into()) {
        Near::Core
    } else if last_level.is_some_and(|level| shared(format!("cache/index{level}/shared_cpu_list")))
    {
        Near::Cache
    } else if shared("topology/package_cpus_list".into()) {
        Near::Socket
    } else {
        Near::Machine
    }
}

/// Whether a list as in "0-3,8" holds the number.
fn holds(list: &str, number: usize) -> bool {
    list.trim().split(',').any(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let bounds = first.parse::<usize>().ok().zip(last.parse::<usize>().ok());
        bounds.is_some_and(|(first, last)| (first..=last).contains(&number))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        for (list, yes, no) in [("0-3,8\n", 8, 7), ("0-3,8", 2, 4), ("5", 5, 0)] {
            assert!(holds(list, yes), "{list}");
            assert!(!holds(list, no), "{list}");
        }
        assert!(!holds("", 0) && !holds("a-b", 0));
    }

    #[test]
    fn what_two_cpus_share() {
        let sysfs = tempfile::tempdir().expect("a folder");
        let cpu = sysfs.path().join("cpu0");
        for (file, list) in [
            ("topology/thread_siblings_list", "0-1"),
            ("cache/index0/shared_cpu_list", "0-1"),
            ("cache/index3/shared_cpu_list", "0-3"),
            ("topology/package_cpus_list", "0-7"),
        ] {
            let file = cpu.join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("made");
            fs::write(file, list).expect("written");
        }
        let seen: Vec<Near> = [1, 3, 7, 8]
            .into_iter()
            .map(|other| distance(sysfs.path(), 0, other))
            .collect();
        assert_eq!(seen, [Near::Core, Near::Cache, Near::Socket, Near::Machine]);
        assert_eq!(distance(sysfs.path(), 9, 0), Near::Machine);
    }
}
