// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the slots of vCPU threads: whole, and up to this moment.

use libbpf_rs::MapHandle;
use unspin_abi as abi;
use unspin_events::VcpuCounters;

use crate::{Error, kernel::load};

/// Tries before a slot that keeps changing is taken as it is; a change takes some ten instructions.
const TRIES: u32 = 100;

/// A slot's content at one moment.
pub(crate) struct Snapshot {
    /// When the thread was first seen: with `counters.thread` it tells one owner of a slot from the next.
    pub first_seen_ns: u64,
    /// Whether nothing changes any more.
    pub ended: bool,
    /// Up to the moment of reading; for an ended thread, up to its end.
    pub counters: VcpuCounters,
}

/// What is in slot `index`; `None` if it is free.
pub(crate) fn read(threads: &MapHandle, index: u32) -> Result<Option<Snapshot>, Error> {
    let mut thread: abi::unspin_observed_thread = load::value(threads, "threads", index)?;
    for _ in 0..TRIES {
        if thread.state == abi::UNSPIN_THREAD_NONE {
            return Ok(None);
        }
        // The kernel copies a value without a lock: it is whole if the sequence is even and still the same afterwards.
        let again: abi::unspin_observed_thread = load::value(threads, "threads", index)?;
        if thread.sequence % 2 == 0 && thread.sequence == again.sequence {
            break;
        }
        thread = again;
    }
    Ok(Some(up_to(&thread, monotonic_ns())))
}

/// The snapshot at `now_ns`: the state that is still going on is counted up to then.
fn up_to(thread: &abi::unspin_observed_thread, now_ns: u64) -> Snapshot {
    let mut counters = VcpuCounters::from_abi(&thread.counters);
    let ended = thread.state == abi::UNSPIN_THREAD_ENDED;
    let end_ns = if ended {
        thread.since_ns
    } else {
        now_ns.max(thread.since_ns)
    };
    let current_ns = end_ns - thread.since_ns;
    match thread.state {
        abi::UNSPIN_THREAD_RUNNING => counters.running_ns += current_ns,
        abi::UNSPIN_THREAD_RUNNABLE => counters.runnable_ns += current_ns,
        abi::UNSPIN_THREAD_ASLEEP => counters.asleep_ns += current_ns,
        _ => {}
    }
    counters.wall_ns = end_ns.saturating_sub(thread.first_seen_ns);
    Snapshot {
        first_seen_ns: thread.first_seen_ns,
        ended,
        counters,
    }
}

/// Nanoseconds of CLOCK_MONOTONIC, the clock of `bpf_ktime_get_ns()`.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid clock id and a live timespec; the call writes that and cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(state: u32) -> abi::unspin_observed_thread {
        let mut thread = abi::unspin_observed_thread {
            state,
            first_seen_ns: 1_000,
            since_ns: 1_700,
            ..Default::default()
        };
        thread.counters.running_ns = 400;
        thread.counters.runnable_ns = 200;
        thread.counters.asleep_ns = 100;
        thread
    }

    #[test]
    fn the_state_that_goes_on_is_counted_up_to_now() {
        let at = |state| up_to(&thread(state), 2_000).counters;
        let running = at(abi::UNSPIN_THREAD_RUNNING);
        assert_eq!((running.running_ns, running.wall_ns), (700, 1_000));
        assert_eq!(at(abi::UNSPIN_THREAD_RUNNABLE).runnable_ns, 500);
        assert_eq!(at(abi::UNSPIN_THREAD_ASLEEP).asleep_ns, 400);
        for state in [
            abi::UNSPIN_THREAD_RUNNING,
            abi::UNSPIN_THREAD_RUNNABLE,
            abi::UNSPIN_THREAD_ASLEEP,
        ] {
            assert_eq!(at(state).conservation_error_ns(), 0);
        }
    }

    #[test]
    fn an_ended_thread_stands_still() {
        let ended = up_to(&thread(abi::UNSPIN_THREAD_ENDED), 9_000_000);
        assert!(ended.ended);
        assert_eq!(ended.counters.wall_ns, 700);
        assert_eq!(ended.counters.conservation_error_ns(), 0);
    }

    #[test]
    fn a_clock_that_is_behind_takes_nothing_away() {
        let early = up_to(&thread(abi::UNSPIN_THREAD_RUNNING), 1_500);
        assert_eq!(early.counters.wall_ns, 700);
        assert_eq!(early.counters.conservation_error_ns(), 0);
    }
}
