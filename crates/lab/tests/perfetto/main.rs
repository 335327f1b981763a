// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces, decoded by Perfetto's own classes (the package `perfetto` of PyPI, which `make setup` puts into the cache).

mod checker;
mod common;
mod lab;

use std::path::PathBuf;

use checker::{check, check_all, save};
use common::{Expected, World, trace_ids};
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};
use unspin_lab::{
    ids::{Cpu, Lock, Task},
    perfetto::PerfettoWriter,
    trace_event::{Observer, TraceEvent, Vector},
};

/// Two vCPUs and a lock: the waiter is preempted, the lock handed over to it, an interrupt sent, one never handled.
fn scripted() -> (Vec<u8>, Expected) {
    let mut writer = PerfettoWriter::new(Vec::new(), trace_ids(2, 1, 2, 1));
    let (holder, waiter, lock) = (Task(0), Task(1), Lock(0));
    let script = [
        (
            1,
            0,
            None,
            TraceEvent::Wakeup {
                task: holder,
                target: Cpu(0),
            },
        ),
        (1, 0, None, TraceEvent::SwitchIn { task: holder }),
        (
            2,
            1,
            None,
            TraceEvent::Wakeup {
                task: waiter,
                target: Cpu(1),
            },
        ),
        (3, 1, None, TraceEvent::SwitchIn { task: waiter }),
        (3, 0, Some(holder), TraceEvent::Kernel),
        (4, 0, Some(holder), TraceEvent::LockAsked { lock }),
        (4, 0, Some(holder), TraceEvent::LockTaken { lock }),
        (5, 1, Some(waiter), TraceEvent::LockAsked { lock }),
        (
            6,
            1,
            Some(waiter),
            TraceEvent::SwitchOut {
                task: waiter,
                runnable: true,
                preempted: true,
            },
        ),
        (
            8,
            0,
            Some(holder),
            TraceEvent::IpiSent {
                receiver: waiter,
                vector: Vector::Shootdown,
            },
        ),
        (9, 0, Some(holder), TraceEvent::LockReleased { lock }),
        (9, 1, None, TraceEvent::SwitchIn { task: waiter }),
        (
            10,
            1,
            Some(waiter),
            TraceEvent::InterruptTaken {
                vector: Vector::Shootdown,
            },
        ),
        (11, 1, Some(waiter), TraceEvent::InterruptDone),
        (12, 1, Some(waiter), TraceEvent::LockTaken { lock }),
        (
            13,
            0,
            Some(holder),
            TraceEvent::IpiSent {
                receiver: waiter,
                vector: Vector::Reschedule,
            },
        ),
        (
            14,
            0,
            Some(holder),
            TraceEvent::SwitchOut {
                task: holder,
                runnable: false,
                preempted: false,
            },
        ),
        (14, 0, None, TraceEvent::SwitchIn { task: Task(2) }),
    ];
    for (now_ns, cpu, task, what) in script {
        writer.on_event(now_ns, Cpu(cpu), task, what);
    }
    let (trace, written) = writer.finish(20).expect("a Vec takes it");
    assert_eq!(written.bytes, trace.len() as u64);
    let expected = [
        ("switch_ins", 4),
        ("switch_outs", 4),
        ("preempted", 1),
        ("slept", 1),
        ("yielded", 2), // the tasks that run at the end of the trace
        ("wakings", 2),
        ("waits", 2),
        ("holds", 2),
        ("handovers", 1),
        ("interrupts", 1),
        ("ipis", 2),
        ("instants", 3),
    ];
    (trace, Expected::from(expected))
}

#[test]
fn a_scripted_world_is_decoded_as_it_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, expected) = scripted();
    check_all(&[save(folder.path(), "scripted", &trace, &expected)]);
}

#[test]
fn drawn_worlds_are_decoded_as_they_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(Default::default()),
    );
    let shape = (1u32..6, 1u32..4, 1u32..5, 1u32..4);
    let drawn = (shape, proptest::collection::vec(any::<u64>(), 0..3_000));
    let traces: Vec<PathBuf> = (0..40)
        .map(|number| {
            let tree = drawn.new_tree(&mut runner).expect("a world");
            let ((cpus, vms, vcpus, locks), choices) = tree.current();
            let mut world = World::new(Vec::new(), trace_ids(cpus, vms, vcpus, locks));
            choices.into_iter().for_each(|bits| world.step(bits));
            let (trace, written, expected) = world.finish();
            assert_eq!(written.unattributed, 0);
            save(folder.path(), &format!("drawn{number}"), &trace, &expected)
        })
        .collect();
    check_all(&traces);
}

/// The checker finds errors: a trace without one of its packets is refused, whichever it is.
#[test]
fn a_trace_with_a_hole_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, expected) = scripted();
    let mut holed = Vec::new();
    let mut begin = 0;
    while begin < trace.len() {
        let end = begin + packet_bytes(&trace[begin..]);
        // Without its descriptions of tracks or its counters a trace has less information but is valid.
        if trace[begin..end]
            .windows(8)
            .any(|piece| piece == b"hold vm0" || piece == b"wait vm0")
            || trace[begin..end]
                .windows(6)
                .any(|piece| piece == b"kernel" || piece == b"swappe")
        {
            let rest = [&trace[..begin], &trace[end..]].concat();
            holed.push(save(
                folder.path(),
                &format!("holed{begin}"),
                &rest,
                &expected,
            ));
        }
        begin = end;
    }
    assert!(holed.len() >= 6, "{} packets taken away", holed.len());
    let output = check(&holed);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && !said.contains(": ok"), "{said}");
    assert_eq!(said.lines().count(), holed.len(), "{said}");
}

/// The bytes of the first packet: a key, a length as a varint, the message.
fn packet_bytes(trace: &[u8]) -> usize {
    let digits = trace[1..].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let length = trace[1..=digits]
        .iter()
        .rev()
        .fold(0, |length, byte| length << 7 | usize::from(byte & 0x7f));
    1 + digits + length
}

/// A vCPU that is sent interrupts and never runs: the number of arrows is bounded, and the trace stays valid.
#[test]
fn a_receiver_that_never_runs_gets_so_many_arrows() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut writer = PerfettoWriter::new(Vec::new(), trace_ids(1, 1, 2, 1));
    let (sender, receiver) = (Task(0), Task(1));
    writer.on_event(1, Cpu(0), None, TraceEvent::SwitchIn { task: sender });
    for now_ns in 2..1_002 {
        let sent = TraceEvent::IpiSent {
            receiver,
            vector: Vector::Reschedule,
        };
        writer.on_event(now_ns, Cpu(0), Some(sender), sent);
    }
    let (trace, _) = writer.finish(2_000).expect("a Vec takes it");
    let expected = Expected::from([("ipis", 64), ("instants", 1_001), ("switch_ins", 1)]);
    check_all(&[save(folder.path(), "sent", &trace, &expected)]);
}

#[test]
fn an_error_of_the_sink_comes_out_at_the_end() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = PerfettoWriter::new(Full, trace_ids(1, 1, 1, 1));
    writer.on_event(1, Cpu(0), None, TraceEvent::SwitchIn { task: Task(0) });
    let error = writer.finish(2).err().map(|error| error.kind());
    assert_eq!(error, Some(std::io::ErrorKind::StorageFull));
}

/// A long trace is written in pieces, however many pCPUs keep scheduler events back.
#[test]
fn what_is_kept_is_bounded() {
    #[derive(Default)]
    struct Pieces {
        bytes: usize,
        largest: usize,
    }
    impl std::io::Write for Pieces {
        fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
            self.bytes += piece.len();
            self.largest = self.largest.max(piece.len());
            Ok(piece.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut world = World::new(Pieces::default(), trace_ids(800, 100, 16, 4));
    let mut bits = 0_u64;
    for _ in 0..600_000 {
        bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
        world.step(bits ^ bits.rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9));
    }
    let (pieces, written, expected) = world.finish();
    assert_eq!(pieces.bytes as u64, written.bytes);
    assert!(
        pieces.bytes > 16 << 20,
        "{} bytes, {expected:?}",
        pieces.bytes
    );
    assert!(pieces.largest < 4 << 20, "{} bytes at once", pieces.largest);
}
