// SPDX-License-Identifier: MIT OR Apache-2.0
//! What holds for every stream: exits are neither lost nor counted twice, and less knowledge gives "unknown", never another
//! outcome.

mod exits_common;

use exits_common::{ANSWERS, LOCK, Stream};
use proptest::prelude::*;
use unspin_analysis::{Exits, ReceiverState, Sight, analyse};
use unspin_events::{Event, GuestMode, SwitchTrace, ThreadState, What};
use unspin_policy::{Outcome, RunRule};

const VCPUS: usize = 4;
const CPUS: usize = 2;

/// What a vCPU of the little host does.
#[derive(Clone, Copy, PartialEq)]
enum Doing {
    Running(usize),
    Runnable,
    Asleep,
}

/// A host of two pCPUs and one VM that does nothing impossible: a stream of events that is consistent.
struct Host {
    stream: Stream,
    doing: [Doing; VCPUS],
}

impl Host {
    fn new() -> Host {
        let mut host = Host {
            stream: Stream::default(),
            doing: [Doing::Runnable; VCPUS],
        };
        host.stream.later(10);
        for vcpu in 0..VCPUS {
            // Everybody shows itself once, so that from here on all is known.
            host.switch_in(vcpu, vcpu % CPUS);
            if vcpu >= CPUS {
                continue;
            }
            host.preempt(vcpu, GuestMode::User);
        }
        host
    }

    fn switch_in(&mut self, vcpu: usize, cpu: usize) {
        self.stream.on(vcpu as u16, cpu as u16);
        self.doing[vcpu] = Doing::Running(cpu);
    }

    fn preempt(&mut self, vcpu: usize, mode: GuestMode) {
        if let Doing::Running(cpu) = self.doing[vcpu] {
            self.stream.preempted(vcpu as u16, cpu as u16, Some(mode));
            self.doing[vcpu] = Doing::Runnable;
        }
    }

    fn fill(&mut self, cpu: usize, first: usize) {
        let busy = self.doing.contains(&Doing::Running(cpu));
        let next = (0..VCPUS)
            .map(|step| (first + step) % VCPUS)
            .find(|&vcpu| self.doing[vcpu] == Doing::Runnable);
        if let (false, Some(next)) = (busy, next) {
            self.switch_in(next, cpu);
        }
    }

    /// A pause-loop exit with all that follows.
    fn spin(&mut self, vcpu: usize, cpu: usize, pick: usize, variant: u8) {
        let (v, c) = (vcpu as u16, cpu as u16);
        let location = if variant & 1 == 0 { LOCK } else { ANSWERS };
        self.stream.exit(v, c, location);
        let target = (pick % VCPUS) as u16;
        let runnable = self.doing[pick % VCPUS] == Doing::Runnable;
        if variant & 2 != 0 && runnable {
            if variant & 4 != 0 {
                self.stream.yielded(v, c, 0, target);
            } else if variant & 8 != 0 {
                self.preempt(vcpu, GuestMode::Kernel);
                self.switch_in(target.into(), cpu);
                self.preempt(target.into(), GuestMode::Kernel);
                self.switch_in(vcpu, cpu);
                self.stream.yielded(v, c, 1, target);
            } else {
                self.stream.yielded(v, c, 1, target);
            }
        }
        self.stream.entry(v, c);
    }

    /// Everybody runs once more: whom nobody sees run is not known to be there.
    fn show_all(&mut self) {
        for vcpu in 0..VCPUS {
            if self.doing[vcpu] == Doing::Asleep {
                self.stream.woken(vcpu as u16);
                self.doing[vcpu] = Doing::Runnable;
            }
            self.preempt(vcpu, GuestMode::User);
        }
        for vcpu in 0..VCPUS {
            self.switch_in(vcpu, 0);
            self.preempt(vcpu, GuestMode::User);
        }
    }

    fn act(&mut self, (what, who, pick, variant): (u8, u8, u8, u8)) {
        let (who, pick) = (usize::from(who) % VCPUS, usize::from(pick) % VCPUS);
        let mode = [GuestMode::User, GuestMode::Kernel][usize::from(variant & 1)];
        match (what % 6, self.doing[who]) {
            (0 | 1, Doing::Running(cpu)) => self.spin(who, cpu, pick, variant),
            (2, Doing::Running(cpu)) if pick != who => {
                self.stream.ipi(who as u16, cpu as u16, pick as u16);
            }
            (3, Doing::Running(cpu)) => {
                self.preempt(who, mode);
                self.fill(cpu, pick);
            }
            (4, Doing::Running(cpu)) => {
                self.stream.halts(who as u16, cpu as u16);
                self.doing[who] = Doing::Asleep;
                self.fill(cpu, pick);
            }
            (5, Doing::Asleep) => {
                self.stream.woken(who as u16);
                self.doing[who] = Doing::Runnable;
                (0..CPUS).for_each(|cpu| self.fill(cpu, who));
            }
            _ => {}
        }
    }
}

/// Streams, and a place between two actions.
fn streams() -> impl Strategy<Value = (Vec<Event>, usize)> {
    let action = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>());
    let actions = prop::collection::vec(action, 1..120);
    (actions, any::<prop::sample::Index>()).prop_map(|(actions, cut)| {
        let mut host = Host::new();
        let cut = cut.index(actions.len());
        let mut place = 0;
        for (index, action) in actions.into_iter().enumerate() {
            if index == cut {
                place = host.stream.events.len();
            }
            host.act(action);
        }
        host.show_all();
        (host.stream.events, place)
    })
}

fn seen(events: &[Event]) -> Exits {
    analyse(events, Sight::default())
}

fn outcomes(exits: &Exits) -> [u64; Outcome::ALL.len()] {
    exits
        .vms
        .get(&0)
        .map_or(Default::default(), |vm| vm.outcomes)
}

fn count(events: &[Event], kind: &str) -> u64 {
    events
        .iter()
        .filter(|event| event.what.name() == kind)
        .count() as u64
}

/// Sums that hold whatever the events are.
fn check_sums(events: &[Event]) -> Result<(), TestCaseError> {
    let exits = seen(events);
    let all = count(events, "pause_exit");
    let vms = exits.vms.values();
    prop_assert_eq!(vms.clone().map(|vm| vm.exits()).sum::<u64>(), all);
    for vm in vms {
        let matrix = vm.locations.matrix(&|_| None);
        let by_reason: u64 = matrix.iter().flatten().sum();
        prop_assert_eq!(by_reason, vm.exits());
        for (outcome, count) in vm.outcomes.iter().enumerate() {
            let column: u64 = matrix.iter().map(|row| row[outcome]).sum();
            prop_assert_eq!(column, *count);
        }
        for rule in [RunRule::InterruptsEnd, RunRule::InterruptsIgnored] {
            let in_runs = vm.runs(rule).shares.exits;
            prop_assert_eq!(in_runs + vm.exits_without_location, vm.exits());
            let by_length: u64 = vm.runs(rule).exits_by_length.values().sum();
            prop_assert_eq!(by_length, in_runs);
        }
        prop_assert!(vm.cpu_ns <= vm.seen_for_ns() * vm.vcpus);
    }
    let sums = exits.ipis.sums().values();
    let receivers: u64 = sums.clone().map(|sums| sums.receivers()).sum();
    prop_assert_eq!(receivers, count(events, "ipi"));
    for sums in sums {
        let running = sums.by_state.get(&ReceiverState::Running).unwrap_or(&0);
        prop_assert_eq!(
            running + sums.delay.count() + sums.delay_unknown,
            sums.receivers()
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn everything_is_counted_once((events, _) in streams()) {
        check_sums(&events)?;
        let known = outcomes(&seen(&events));
        prop_assert_eq!(known[Outcome::Unknown as usize], 0, "all is known in such a stream");
    }

    #[test]
    fn senseless_streams_are_counted_once_too((events, _) in streams(), order in any::<u64>()) {
        // The same events dealt out anew among the times and vCPUs.
        let mut shuffled = events.clone();
        for (index, event) in shuffled.iter_mut().enumerate() {
            let other = (index as u64).wrapping_mul(order | 1) as usize % events.len();
            event.what = events[other].what;
            event.vcpu = Some((other % 5) as u16);
            event.vm = Some((other % 2) as u32);
        }
        check_sums(&shuffled)?;
    }

    /// Whoever comes later knows less, and nothing else.
    #[test]
    fn a_late_observer_is_never_wrong((events, cut) in streams()) {
        let whole = outcomes(&seen(&events));
        let before = outcomes(&seen(&events[..cut]));
        let after = outcomes(&seen(&events[cut..]));
        for outcome in Outcome::ALL {
            let index = outcome as usize;
            prop_assert!(
                outcome == Outcome::Unknown || after[index] <= whole[index] - before[index],
                "{:?}: {:?} of {:?} less {:?}", outcome, after, whole, before
            );
        }
    }

    /// Losses, told where they are, make outcomes unknown and never others.
    #[test]
    fn losses_are_never_wrong((events, cut) in streams(), lost in 1usize..20) {
        let whole = outcomes(&seen(&events));
        let mut holey = events[..cut].to_vec();
        let rest = events.get(cut + lost..).unwrap_or(&[]);
        if let Some(first) = rest.first() {
            holey.push(Event {
                vm: None,
                vcpu: None,
                what: What::Lost { events: lost as u64, lost_kind: 1 },
                ..*first
            });
            holey.extend(rest);
        }
        let found = outcomes(&seen(&holey));
        for outcome in Outcome::ALL.into_iter().filter(|&outcome| outcome != Outcome::Unknown) {
            prop_assert!(found[outcome as usize] <= whole[outcome as usize], "{:?}: {:?} of {:?}", outcome, found, whole);
        }
        let exits: u64 = found.iter().sum();
        prop_assert_eq!(exits, count(&holey, "pause_exit"));
    }

    /// Receivers' states are those of the switch trace, which looks at the whole stream instead of following it.
    #[test]
    fn receivers_are_what_the_switch_trace_says((events, _) in streams()) {
        let trace = SwitchTrace::new(0, 0..VCPUS as u16, &events);
        let mut expected = [0u64; 3];
        for event in &events {
            if let What::Ipi { receiver_vcpu, .. } = event.what {
                let state = trace.state_at(receiver_vcpu, event.time_ns).expect("observed");
                expected[match state {
                    ThreadState::Running => 0,
                    ThreadState::Runnable => 1,
                    ThreadState::Asleep => 2,
                }] += 1;
            }
        }
        let mut found = [0u64; 3];
        for sums in seen(&events).ipis.sums().values() {
            for (state, count) in &sums.by_state {
                found[match state {
                    ReceiverState::Running => 0,
                    ReceiverState::Halted => 2,
                    ReceiverState::Unknown => panic!("all is known"),
                    _ => 1,
                }] += count;
            }
        }
        prop_assert_eq!(found, expected);
    }
}

/// 1,000 VMs of 8 vCPUs, with events missing now and then: each exit is counted once, for its VM.
#[test]
fn a_thousand_vms() {
    let mut events = Vec::new();
    for round in 0..3u64 {
        for vm in 0..1_000u32 {
            let mut stream = Stream {
                vm,
                now_us: 2_000_000 * round + u64::from(vm) * 1_000,
                ..Stream::default()
            };
            for vcpu in 0..8 {
                stream.on(vcpu, vcpu);
            }
            for vcpu in 0..8 {
                stream.exit(vcpu, vcpu, LOCK).entry(vcpu, vcpu);
            }
            if vm == 500 {
                stream.lost();
            }
            for event in &mut stream.events {
                event.thread += vm * 8;
            }
            events.extend(stream.events);
        }
    }
    let exits = seen(&events);
    assert_eq!(exits.vms.len(), 1_000);
    assert_eq!(exits.lost_events, Some(3));
    for (number, vm) in &exits.vms {
        assert_eq!((vm.vcpus, vm.exits()), (8, 24), "VM {number}");
        // Those of the second before the loss; what comes after shows anew what every vCPU does.
        let unknown = vm.outcomes[Outcome::Unknown as usize];
        let expected = if *number <= 500 { 24 } else { 0 };
        assert_eq!(unknown, expected, "VM {number}");
    }
}
