// SPDX-License-Identifier: MIT OR Apache-2.0
//! What pause-loop exits say of themselves, against the trace of every exit, entry and switch around them.

use unspin_agent::EventMask;
use unspin_events::{Event, GuestMode, What};
use unspin_scenario::Vm;
use unspin_testbed::check;

use crate::{
    checks::recorded,
    vms::{loops, vcpus, vm},
};

/// Of the boot's kvm_amd: a window that KVM leaves alone.
const WINDOW: u32 = 64;
/// arch/x86/include/uapi/asm/svm.h, SVM_EXIT_INTR
const EXIT_INTERRUPT: u64 = 0x60;

/// Since a vCPU's previous pause-loop exit, or its first event.
#[derive(Default)]
struct Since {
    entered_ns: Option<u64>,
    others: u16,
    interrupts: u16,
    exit: Option<Exit>,
}

struct Exit {
    time_ns: u64,
    first_out_ns: Option<u64>,
}

#[derive(Default)]
struct Seen {
    exits: u32,
    left: u32,
    stayed: u32,
    others: u32,
    interrupts: u32,
}

impl Since {
    fn look(&mut self, event: &Event, seen: &mut Seen) {
        match event.what {
            What::KvmExit { exit_code } => match exit_code {
                Some(0x77) => {}
                Some(EXIT_INTERRUPT) => self.interrupts += 1,
                _ => self.others += 1,
            },
            What::PauseExit {
                guest_rip,
                mode,
                window,
                inside_ns,
                other_exits,
                interrupt_exits,
            } => {
                assert_eq!(
                    (mode, window, guest_rip.is_some()),
                    (Some(GuestMode::Kernel), Some(WINDOW), true),
                    "{event:?}"
                );
                assert_eq!(
                    (other_exits, interrupt_exits),
                    (self.others, self.interrupts),
                    "{event:?}"
                );
                let entered_ns = self.entered_ns.expect("it was seen entering");
                assert_eq!(
                    u64::from(inside_ns),
                    event.time_ns - entered_ns,
                    "{event:?}"
                );
                seen.exits += 1;
                seen.others += u32::from(self.others > 0);
                seen.interrupts += u32::from(self.interrupts > 0);
                *self = Since {
                    exit: Some(Exit {
                        time_ns: event.time_ns,
                        first_out_ns: None,
                    }),
                    ..Since::default()
                };
            }
            What::SwitchOut { .. } => {
                if let Some(exit) = &mut self.exit {
                    exit.first_out_ns.get_or_insert(event.time_ns);
                }
            }
            What::KvmEntry { .. } => self.entered_ns = Some(event.time_ns),
            What::PauseEntry {
                outside_ns,
                handling_ns,
            } => {
                let exit = self.exit.take().expect("an exit came before");
                let until = exit.first_out_ns.unwrap_or(event.time_ns);
                assert_eq!(
                    (outside_ns, handling_ns),
                    (event.time_ns - exit.time_ns, until - exit.time_ns),
                    "{event:?}"
                );
                match exit.first_out_ns {
                    Some(_) => seen.left += 1,
                    None => seen.stayed += 1,
                }
            }
            _ => {}
        }
    }
}

check!(INTERRUPTED: pause_exits_say_what_happened);
/// Window, mode, times and what came between are those of the trace; handling ends when the vCPU first leaves its CPU.
pub fn pause_exits_say_what_happened() {
    let spins = Vm {
        shootdown_every_iterations: 50,
        wakeup_every_iterations: 50,
        load_changes_every_ms: 0,
        user_work: loops(1_000),
        tick_hz: 500,
        ..vm(4)
    };
    let events = EventMask::SWITCHES
        .and(EventMask::PAUSE_LOOPS)
        .and(EventMask::EXITS);
    let (report, events, _) = recorded(100, spins, events);
    let mut seen = Seen::default();
    for (_, vcpu) in vcpus(&report) {
        let mut since = Since::default();
        let mut mine: Vec<&Event> = events
            .iter()
            .filter(|event| event.thread == vcpu.thread_id)
            .collect();
        mine.sort_by_key(|event| event.time_ns); // stable: an exit comes before what else it was
        for event in mine {
            since.look(event, &mut seen);
        }
    }
    let Seen {
        exits,
        left,
        stayed,
        others,
        interrupts,
    } = seen;
    assert!(
        exits > 300 && left > 50 && stayed > 50 && others > 20 && interrupts > 20,
        "{exits} {left} {stayed} {others} {interrupts} prove little"
    );
}
