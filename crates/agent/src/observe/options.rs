// SPDX-License-Identifier: MIT OR Apache-2.0
//! What to observe.

use unspin_abi as abi;

use crate::Error;

/// Which events are written to the ring, one bit per kind. Counters are always kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventMask(u32);

impl EventMask {
    /// No events: counters only.
    pub const NONE: EventMask = EventMask(0);
    /// Switches and wake-ups: what the join with the guest's ground truth needs.
    pub const SWITCHES: EventMask = EventMask(
        1 << abi::UNSPIN_EVENT_SWITCH_IN
            | 1 << abi::UNSPIN_EVENT_SWITCH_OUT
            | 1 << abi::UNSPIN_EVENT_WAKEUP,
    );
    /// Pause-loop exits and what became of them.
    pub const PAUSE_LOOPS: EventMask = EventMask(
        1 << abi::UNSPIN_EVENT_PAUSE_EXIT
            | 1 << abi::UNSPIN_EVENT_ON_SPIN
            | 1 << abi::UNSPIN_EVENT_YIELD_TO
            | 1 << abi::UNSPIN_EVENT_PAUSE_ENTRY,
    );
    /// Every exit and entry: by far the most.
    pub const EXITS: EventMask =
        EventMask(1 << abi::UNSPIN_EVENT_EXIT | 1 << abi::UNSPIN_EVENT_ENTRY);

    /// Inter-processor interrupts, one event per receiver; without it the programs that see them are not loaded.
    pub const IPIS: EventMask = EventMask(1 << abi::UNSPIN_EVENT_IPI);
    /// What guests say in their pv pages (`abi/guest/pv_page.h`), after switches and pause-loop exits.
    pub const PV_PAGES: EventMask = EventMask(1 << abi::UNSPIN_EVENT_PV_PAGE);

    /// Both.
    #[must_use]
    pub const fn and(self, other: EventMask) -> EventMask {
        EventMask(self.0 | other.0)
    }

    pub(crate) const fn has(self, kind: u32) -> bool {
        self.0 >> kind & 1 == 1
    }

    /// The bits, as `unspin_observe_options.event_mask`.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// How to observe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObserveOptions {
    /// Which events to write.
    pub events: EventMask,
    /// Size of the ring, bytes: a power of two from 4 KiB to 1 GiB. An event takes 56.
    pub ring_bytes: u32,
    /// How many vCPU threads at a time, 1 to 65,536; each takes some 700 bytes of kernel memory. Ended ones give way when
    /// slots are short. A thread that finds none is not observed, but for its exits: `Health::unobserved_exits`.
    pub threads_max: u32,
    /// Count runs and time of each program (`BPF_STATS_RUN_TIME`, for every BPF program of the host; some 20 ns a run).
    pub run_statistics: bool,
    /// Read the kernel's memory by guarded loads where the kernel allows it; else, and always when false, by calls that
    /// take some ten times as long. What is read is the same.
    pub direct_reads: bool,
}

impl Default for ObserveOptions {
    /// Switches and pause loops in 16 MiB (some 299,000 events between two drains), 4,096 threads, no statistics.
    fn default() -> ObserveOptions {
        ObserveOptions {
            events: EventMask::SWITCHES.and(EventMask::PAUSE_LOOPS),
            ring_bytes: 16 << 20,
            threads_max: 4096,
            run_statistics: false,
            direct_reads: true,
        }
    }
}

impl ObserveOptions {
    /// # Errors
    /// An option out of its range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.ring_bytes.is_power_of_two() || !(4 << 10..=1 << 30).contains(&self.ring_bytes) {
            return Err(Error::Option {
                option: "ring_bytes",
                value: self.ring_bytes.into(),
                allowed: "a power of two from 4096 to 1073741824",
            });
        }
        if !(1..=65_536).contains(&self.threads_max) {
            return Err(Error::Option {
                option: "threads_max",
                value: self.threads_max.into(),
                allowed: "1 to 65536",
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut ObserveOptions)) -> String {
        let mut options = ObserveOptions::default();
        change(&mut options);
        options.check().expect_err("out of range").to_string()
    }

    #[test]
    fn ranges_are_checked_and_told() {
        assert!(ObserveOptions::default().check().is_ok());
        for bytes in [0, 1, 2048, 5000, 3 << 20, 1 << 31] {
            let said = refused(|options| options.ring_bytes = bytes);
            assert!(
                said.contains(&bytes.to_string()) && said.contains("power of two"),
                "{said}"
            );
        }
        for threads in [0, 65_537] {
            let said = refused(|options| options.threads_max = threads);
            assert!(
                said.contains("threads_max") && said.contains("1 to 65536"),
                "{said}"
            );
        }
    }

    #[test]
    fn masks_name_their_kinds_and_no_others() {
        let kinds = |mask: EventMask| (0..32).filter(|kind| mask.has(*kind)).collect::<Vec<u32>>();
        assert!(kinds(EventMask::NONE).is_empty());
        assert_eq!(kinds(EventMask::SWITCHES), [1, 2, 3]);
        assert_eq!(kinds(EventMask::PAUSE_LOOPS), [4, 5, 6, 10]);
        assert_eq!(kinds(EventMask::EXITS), [7, 8]);
        assert_eq!(kinds(EventMask::IPIS), [11]);
        assert_eq!(kinds(EventMask::PV_PAGES), [13]);
        let both = EventMask::SWITCHES.and(EventMask::EXITS);
        assert_eq!(kinds(both), [1, 2, 3, 7, 8]);
    }
}
