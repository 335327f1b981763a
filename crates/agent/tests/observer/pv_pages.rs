// SPDX-License-Identifier: MIT OR Apache-2.0
//! What guests say in their pv pages, against what they must have been doing.

use std::collections::BTreeMap;
use unspin_testbed::check;

use unspin_abi as abi;
use unspin_agent::EventMask;
use unspin_events::{Event, GuestMode, What};
use unspin_scenario::Vm;

use crate::{
    checks::recorded,
    vms::{loops, vcpus, vm},
};

const VCPUS: u32 = 4;

/// `critical`, `holding` and `waiting` of an event's arguments.
fn said(arguments: [u64; 3]) -> (u64, u64, u32) {
    let at = |shift| arguments[0] >> shift & 255;
    (
        at(abi::UNSPIN_PV_PAGE_CRITICAL_SHIFT),
        at(abi::UNSPIN_PV_PAGE_HOLDING_SHIFT),
        at(abi::UNSPIN_PV_PAGE_WAITING_SHIFT) as u32,
    )
}

check!(INTERRUPTED: pv_pages_say_what_the_vcpu_was_doing);
/// A pv page comes right after its event and fits it.
pub fn pv_pages_say_what_the_vcpu_was_doing() {
    let talks = Vm {
        shootdown_every_iterations: 5,
        user_work: loops(20_000),
        tick_hz: 500,
        pv_page: true,
        ..vm(VCPUS)
    };
    let events = EventMask::SWITCHES
        .and(EventMask::PAUSE_LOOPS)
        .and(EventMask::PV_PAGES);
    let (report, events, _) = recorded(100, talks, events);
    let (mut at_pause, mut at_switch, mut in_user, mut for_answers) = (0, 0, 0, 0);
    let mut before: BTreeMap<u32, &Event> = BTreeMap::new();
    for event in &events {
        let What::PvPage { arguments } = event.what else {
            before.insert(event.thread, event);
            continue;
        };
        let previous = before[&event.thread];
        assert_eq!(previous.time_ns, event.time_ns, "{previous:?} {event:?}");
        let (critical, holding, waiting) = said(arguments);
        assert!(holding <= critical && critical <= 1, "{event:?}");
        match previous.what {
            What::PauseExit { .. } => {
                at_pause += 1;
                assert_ne!(waiting, abi::UNSPIN_PV_PAGE_NOT_WAITING, "{event:?}");
            }
            What::SwitchOut { mode, .. } => {
                at_switch += 1;
                if mode == Some(GuestMode::User) {
                    in_user += 1;
                    assert_eq!((critical, holding, waiting), (0, 0, 0), "{event:?}");
                }
            }
            _ => panic!("a pv_page after {previous:?}"),
        }
        if waiting == abi::UNSPIN_PV_PAGE_WAITS_FOR_ANSWERS {
            for_answers += 1;
            let own = 1 << event.vcpu.expect("a vCPU's");
            assert_eq!(arguments[1], ((1 << VCPUS) - 1) & !own, "{event:?}");
        }
    }
    let exits = |event: &&Event| matches!(event.what, What::PauseExit { .. });
    let exits = events.iter().filter(exits).count();
    assert_eq!(
        at_pause, exits,
        "every vCPU registers before its first iteration"
    );
    assert!(
        at_pause > 100 && at_switch > 100 && in_user > 10 && for_answers > 10,
        "{at_pause} {at_switch} {in_user} {for_answers} prove little"
    );
    assert_eq!(vcpus(&report).count(), VCPUS as usize);
}
