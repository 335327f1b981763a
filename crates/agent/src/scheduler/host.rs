// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host's own scheduler goes by: the CPUs, as /sys tells them (how many there may be, and which are left alone), and the
//! slice that it gives.

use std::{collections::BTreeSet, fs, io};

use super::SteerError;

const FOLDER: &str = "/sys/devices/system/cpu";

/// The host's CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cpus {
    /// Possible CPUs have numbers below this.
    pub count: u32,
    /// `isolcpus=`, isolated partitions.
    pub isolated: BTreeSet<u32>,
    /// `nohz_full=`.
    pub nohz_full: BTreeSet<u32>,
}

impl Cpus {
    /// Of this host.
    pub(super) fn here() -> Result<Cpus, SteerError> {
        let read = |name: &str, needed: bool| {
            let path = format!("{FOLDER}/{name}");
            let text = match fs::read_to_string(&path) {
                Err(source) if !needed && source.kind() == io::ErrorKind::NotFound => String::new(),
                text => text.map_err(|source| SteerError::File {
                    path: path.clone(),
                    source,
                })?,
            };
            parse(&text).ok_or_else(|| SteerError::File {
                path,
                source: io::Error::new(io::ErrorKind::InvalidData, format!("`{}`", text.trim())),
            })
        };
        Ok(Cpus {
            count: read("possible", true)?.last().map_or(0, |last| last + 1),
            isolated: read("isolated", false)?,
            nohz_full: read("nohz_full", false)?,
        })
    }

    /// Those that take shared tasks, of those that are possible.
    pub(super) fn shared(&self) -> BTreeSet<u32> {
        (0..self.count)
            .filter(|cpu| !self.isolated.contains(cpu))
            .collect()
    }

    /// What `bpf/scheduler/main.bpf.c` is told of a CPU: bits of `enum unspin_steer_cpu`. A CPU without a tick still takes shared
    /// tasks, unless it is isolated.
    pub(super) fn flags(&self, cpu: u32) -> u32 {
        let flag = |set: bool, flag| if set { flag } else { 0 };
        flag(
            !self.isolated.contains(&cpu),
            unspin_abi::UNSPIN_STEER_CPU_SHARED,
        ) | flag(
            self.nohz_full.contains(&cpu),
            unspin_abi::UNSPIN_STEER_CPU_NOHZ_FULL,
        )
    }
}

/// A kernel's list: "0-3,8"; empty, "(null)" and "\n" are no CPU. `None`: something else.
pub(super) fn parse(text: &str) -> Option<BTreeSet<u32>> {
    let text = text.trim();
    if text.is_empty() || text == "(null)" {
        return Some(BTreeSet::new());
    }
    let mut cpus = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        // The kernel's own limit is 8,192 (CONFIG_NR_CPUS).
        if first > last || last >= 1 << 16 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Where the slice was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceSource {
    /// /sys/kernel/debug/sched/base_slice_ns.
    DebugFs,
    /// debugfs is not mounted or not readable: by the kernel's rule for its default.
    Rule,
}

const FILE: &str = "/sys/kernel/debug/sched/base_slice_ns";

/// The kernel's `base_slice_ns`, and where that was found.
///
/// # Errors
/// When debugfs has it and what it says is no number above 0.
pub fn base_slice() -> Result<(u64, SliceSource), SteerError> {
    let Ok(text) = fs::read_to_string(FILE) else {
        return Ok((by_rule(online_cpus()), SliceSource::Rule));
    };
    match text.trim().parse() {
        Ok(slice_ns) if slice_ns > 0 => Ok((slice_ns, SliceSource::DebugFs)),
        _ => Err(SteerError::File {
            path: FILE.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidData, format!("`{}`", text.trim())),
        }),
    }
}

/// kernel/sched/fair.c, Linux 7.2: sysctl_sched_base_slice is 0.7 ms times get_update_sysctl_factor(), 1 + log2 of the
/// online CPUs, of which 8 count at most.
fn by_rule(online_cpus: u32) -> u64 {
    700_000 * u64::from(1 + online_cpus.clamp(1, 8).ilog2())
}

fn online_cpus() -> u32 {
    // SAFETY: takes a number, touches no memory of ours.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    u32::try_from(online).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_the_kernel() {
        let list = |text| parse(text).map(|cpus| cpus.into_iter().collect::<Vec<u32>>());
        assert_eq!(list("0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(list("5"), Some(vec![5]));
        assert_eq!(list("\n"), Some(vec![]));
        assert_eq!(list("  (null)\n"), Some(vec![]));
        for wrong in ["3-1", "x", "1,,2", "0-99999", "-1"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn isolated_cpus_take_no_shared_tasks() {
        let cpus = Cpus {
            count: 4,
            isolated: BTreeSet::from([2]),
            nohz_full: BTreeSet::from([1, 2]),
        };
        let flags: Vec<u32> = (0..4).map(|cpu| cpus.flags(cpu)).collect();
        assert_eq!(flags, [1, 3, 2, 1]);
    }

    #[test]
    fn this_host_has_cpus() {
        assert!(Cpus::here().expect("sysfs").count >= 1);
    }

    #[test]
    fn the_kernels_rule() {
        let slices: Vec<u64> = [0, 1, 2, 3, 4, 8, 128].map(by_rule).into();
        let ms: Vec<f64> = slices.iter().map(|ns| *ns as f64 / 1e6).collect();
        assert_eq!(ms, [0.7, 0.7, 1.4, 1.4, 2.1, 2.8, 2.8]);
    }
}
