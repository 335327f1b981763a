// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events survive encoding and files; broken files say what is broken.

mod common;

use common::{any_event, metadata};
use proptest::prelude::*;
use unspin_abi as abi;
use unspin_events::{
    DecodeError, Event, What,
    log::{EventLog, LogError, RECORD_BYTES},
};

fn bytes_of(log: &EventLog) -> Vec<u8> {
    let mut bytes = Vec::new();
    log.write(&mut bytes).expect("a Vec takes everything");
    bytes
}

fn example(events: usize) -> EventLog {
    let event = |time_ns| Event {
        time_ns,
        vm: Some(1),
        vcpu: Some(2),
        thread: 77,
        cpu: 0,
        what: What::SchedWakeup { waker_thread: 5 },
    };
    EventLog::new(metadata(), (0..events as u64).rev().map(event).collect())
}

proptest! {
    #[test]
    fn decoding_inverts_encoding(event in any_event()) {
        prop_assert_eq!(Event::decode(&event.encode()), Ok(event));
    }

    #[test]
    fn whatever_decodes_encodes_to_the_same_meaning(
        kind in 0u32..16, vm in any::<u32>(), vcpu in any::<u16>(),
        arguments in prop::array::uniform3(prop_oneof![0u64..3, any::<u64>(), Just(u64::MAX), Just(0xffff_ffff)]),
    ) {
        let raw = abi::unspin_event {
            time_ns: 9, kind, vm, thread: 3, vcpu, cpu: 1,
            argument0: arguments[0], argument1: arguments[1], argument2: arguments[2],
        };
        if let Ok(event) = Event::decode(&raw) {
            prop_assert!(kind > 0 && kind < abi::UNSPIN_EVENT_KINDS);
            prop_assert_eq!(Event::decode(&event.encode()), Ok(event));
        }
    }

    #[test]
    fn json_keeps_events(event in any_event()) {
        let text = serde_json::to_string(&event).expect("plain data");
        prop_assert_eq!(serde_json::from_str::<Event>(&text).expect("what we wrote"), event);
    }

    #[test]
    fn a_log_survives_its_file(events in prop::collection::vec(any_event(), 0..50)) {
        let log = EventLog::new(metadata(), events);
        let read = EventLog::read(&mut bytes_of(&log).as_slice()).expect("what we wrote");
        prop_assert_eq!(read.truncated, None);
        prop_assert_eq!(read.log, log);
    }

    #[test]
    fn equal_events_give_equal_bytes(events in prop::collection::vec(any_event(), 0..30), by in 0usize..30) {
        // One event per thread and time, so that the order in which they come decides nothing.
        let mut events: Vec<Event> = events;
        for (number, event) in events.iter_mut().enumerate() {
            event.thread = number as u32;
        }
        let mut rotated = events.clone();
        if !rotated.is_empty() {
            let middle = by % rotated.len();
            rotated.rotate_left(middle);
        }
        prop_assert_eq!(
            bytes_of(&EventLog::new(metadata(), events)),
            bytes_of(&EventLog::new(metadata(), rotated))
        );
    }

    #[test]
    fn a_cut_log_gives_what_is_whole(events in 1usize..20, cut in 1usize..960) {
        let whole = example(events);
        let bytes = bytes_of(&whole);
        let records = events * RECORD_BYTES;
        let cut = cut.min(records);
        let read = EventLog::read(&mut &bytes[..bytes.len() - cut]).expect("its header is whole");
        let truncated = read.truncated.expect("something is missing");
        let found = (records - cut) / RECORD_BYTES;
        prop_assert_eq!(truncated.expected_events, events as u64);
        prop_assert_eq!(truncated.found_events, found as u64);
        prop_assert_eq!(truncated.left_over_bytes, ((records - cut) % RECORD_BYTES) as u64);
        prop_assert_eq!(read.log.events(), &whole.events()[..found]);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..200) {
        let _ = EventLog::read(&mut bytes.as_slice());
        let mut log = bytes_of(&example(3));
        for (offset, byte) in bytes.iter().take(8).enumerate() {
            let at = (at + offset) % log.len();
            log[at] ^= byte;
        }
        let _ = EventLog::read(&mut log.as_slice());
    }
}

#[test]
fn the_bytes_are_as_described() {
    let bytes = bytes_of(&example(1));
    assert_eq!(&bytes[..8], b"UNSPINEV");
    assert_eq!(bytes[8..12], 2u32.to_le_bytes());
    let length = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]) as usize;
    assert_eq!(bytes[16..24], 1u64.to_le_bytes());
    assert_eq!(bytes[24], b'{');
    assert_eq!(bytes.len(), 24 + length.next_multiple_of(8) + RECORD_BYTES);
}

#[test]
fn events_are_sorted_by_time_then_thread_then_arrival() {
    let event = |time_ns, thread, waker_thread| Event {
        time_ns,
        vm: None,
        vcpu: None,
        thread,
        cpu: 0,
        what: What::SchedWakeup { waker_thread },
    };
    let log = EventLog::new(
        metadata(),
        vec![
            event(2, 1, 0),
            event(1, 9, 5),
            event(1, 3, 2),
            event(1, 3, 1),
        ],
    );
    assert_eq!(
        log.events(),
        [
            event(1, 3, 2),
            event(1, 3, 1),
            event(1, 9, 5),
            event(2, 1, 0)
        ]
    );
}

#[test]
fn broken_headers_are_named() {
    let bytes = bytes_of(&example(2));
    let read = |bytes: &[u8]| EventLog::read(&mut &bytes[..]);
    assert!(matches!(read(b""), Err(LogError::Magic)));
    assert!(matches!(
        read(b"PK\x03\x04 and so on"),
        Err(LogError::Magic)
    ));
    assert!(matches!(read(&bytes[..20]), Err(LogError::Header(_))));
    assert!(matches!(read(&bytes[..40]), Err(LogError::Header(_))));
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert!(matches!(read(&newer), Err(LogError::Version { found: 9 })));
    let mut huge = bytes.clone();
    huge[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(read(&huge), Err(LogError::Header(_))));
    let mut more = bytes.clone();
    more.push(0);
    assert!(matches!(read(&more), Err(LogError::TooLong(1))));
    let mut kind = bytes.clone();
    let last = kind.len() - RECORD_BYTES;
    kind[last + 8] = 200;
    let found = read(&kind);
    assert!(matches!(
        found,
        Err(LogError::Event {
            index: 1,
            source: DecodeError::Kind(200)
        })
    ));
}
