// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was lost while observing, and what observing cost.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{Object, libbpf_sys};
use unspin_abi as abi;
use unspin_events::KIND_NAMES;

use crate::{Error, KernelLog};

/// What was lost, since the last reset. All zero means that counters and events are complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Events that found the ring full, all kinds.
    pub lost_events: u64,
    /// The same by kind, with the kind's name; only kinds that lost some.
    pub lost_by_kind: Vec<(&'static str, u64)>,
    /// Exits of vCPU threads that had no slot (`threads_max`) or no memory; they are in no counter.
    pub unobserved_exits: u64,
    /// VMs seen so far, in all; not reset.
    pub vms: u64,
    /// Each program, in the order of the source.
    pub programs: Vec<ProgramHealth>,
}

/// One BPF program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramHealth {
    /// Its section: type and place ("tp_btf/kvm_exit").
    pub name: String,
    /// Runs; 0 unless `ObserveOptions::run_statistics` (or somebody else) switched statistics on.
    pub run_count: u64,
    /// Time spent in it, nanoseconds; 0 likewise.
    pub run_time_ns: u64,
    /// Runs that did not take place, because one was under way on that CPU.
    pub recursion_misses: u64,
}

impl Health {
    /// Missed runs of all programs.
    pub fn recursion_misses(&self) -> u64 {
        self.programs
            .iter()
            .map(|program| program.recursion_misses)
            .sum()
    }

    pub(crate) fn new(
        globals: &abi::unspin_observe_globals,
        earlier: &abi::unspin_observe_globals,
    ) -> Health {
        let lost = globals.lost_events.iter().zip(earlier.lost_events);
        let lost: Vec<u64> = lost.map(|(now, then)| now.saturating_sub(then)).collect();
        Health {
            lost_events: lost.iter().sum(),
            lost_by_kind: KIND_NAMES
                .into_iter()
                .zip(lost)
                .filter(|(_, count)| *count > 0)
                .collect(),
            unobserved_exits: globals
                .unobserved_exits
                .saturating_sub(earlier.unobserved_exits),
            vms: globals.vms,
            programs: Vec::new(),
        }
    }
}

impl ProgramHealth {
    pub(crate) fn since(self, earlier: Option<&ProgramHealth>) -> ProgramHealth {
        let Some(earlier) = earlier else { return self };
        ProgramHealth {
            run_count: self.run_count.saturating_sub(earlier.run_count),
            run_time_ns: self.run_time_ns.saturating_sub(earlier.run_time_ns),
            recursion_misses: self
                .recursion_misses
                .saturating_sub(earlier.recursion_misses),
            name: self.name,
        }
    }
}

/// Every program's figures since it was loaded.
pub(crate) fn programs(object: &Object) -> Result<Vec<ProgramHealth>, Error> {
    object
        .progs()
        .filter(|program| program.autoload())
        .map(|program| {
            let name = program.section().to_string_lossy().into_owned();
            let mut info = libbpf_sys::bpf_prog_info::default();
            let mut length = size_of_val(&info) as u32;
            // SAFETY: a live fd and a zeroed struct of `length` bytes: the kernel writes at most that many.
            let result = unsafe {
                libbpf_sys::bpf_prog_get_info_by_fd(
                    program.as_fd().as_raw_fd(),
                    &mut info,
                    &mut length,
                )
            };
            if result != 0 {
                return Err(Error::Bpf {
                    step: format!("reading the statistics of {name}"),
                    source: libbpf_rs::Error::from_raw_os_error(-result),
                    log: KernelLog::default(),
                });
            }
            Ok(ProgramHealth {
                name,
                run_count: info.run_cnt,
                run_time_ns: info.run_time_ns,
                recursion_misses: info.recursion_misses,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted_by_kind_since_the_reset() {
        let mut earlier = abi::unspin_observe_globals {
            unobserved_exits: 2,
            vms: 1,
            ..Default::default()
        };
        earlier.lost_events[abi::UNSPIN_EVENT_EXIT as usize] = 10;
        let mut globals = earlier;
        globals.lost_events[abi::UNSPIN_EVENT_EXIT as usize] = 13;
        globals.lost_events[abi::UNSPIN_EVENT_WAKEUP as usize] = 4;
        globals.unobserved_exits = 5;
        globals.vms = 3;
        let health = Health::new(&globals, &earlier);
        assert_eq!(health.lost_events, 7);
        assert_eq!(health.lost_by_kind, [("sched_wakeup", 4), ("kvm_exit", 3)]);
        assert_eq!((health.unobserved_exits, health.vms), (3, 3));
    }
}
