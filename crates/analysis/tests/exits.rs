// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every outcome and reason from a stream of events made for it, and what makes them unknown.

mod exits_common;

use exits_common::{ANSWERS, LOCK, Stream};
use unspin_analysis::{Exits, ReceiverState, Sight, VmExits, WindowUnit, analyse};
use unspin_events::{GuestMode, IpiForm, What};
use unspin_policy::{Outcome, Reason, RunRule};

const USER: Option<GuestMode> = Some(GuestMode::User);
const KERNEL: Option<GuestMode> = Some(GuestMode::Kernel);

fn sight() -> Sight {
    Sight {
        window_unit: WindowUnit::Pauses,
        ..Sight::default()
    }
}

fn seen(stream: &Stream) -> Exits {
    analyse(&stream.events, sight())
}

fn vm0(stream: &Stream) -> VmExits {
    seen(stream).vms.remove(&0).expect("VM 0")
}

/// The outcomes of all exits, without those that did not occur.
fn outcomes(stream: &Stream) -> Vec<(Outcome, u64)> {
    let vm = vm0(stream);
    Outcome::ALL
        .into_iter()
        .zip(vm.outcomes)
        .filter(|&(_, count)| count > 0)
        .collect()
}

fn reasons(stream: &Stream) -> Vec<(Reason, u64)> {
    let matrix = vm0(stream).locations.matrix(&|_| None);
    Reason::ALL
        .into_iter()
        .zip(matrix)
        .map(|(reason, exits)| (reason, exits.iter().sum()))
        .filter(|&(_, count)| count > 0)
        .collect()
}

/// vCPUs 0 and 1 run on pCPUs 0 and 1.
fn two_running() -> Stream {
    let mut stream = Stream::default();
    stream.later(10).on(0, 0).on(1, 1);
    stream
}

/// vCPU 0 on pCPU 0, vCPU 1 preempted in that mode.
fn one_preempted(mode: Option<GuestMode>) -> Stream {
    let mut stream = two_running();
    stream.preempted(1, 1, mode);
    stream
}

#[test]
fn no_candidate_when_the_others_run_or_sleep() {
    let mut running = two_running();
    running.exit(0, 0, LOCK).entry(0, 0);
    assert_eq!(outcomes(&running), [(Outcome::NoCandidate, 1)]);
    let mut asleep = two_running();
    asleep.halts(1, 1).exit(0, 0, LOCK).entry(0, 0);
    assert_eq!(outcomes(&asleep), [(Outcome::NoCandidate, 1)]);
}

#[test]
fn lost_opportunity_when_the_receiver_is_in_user_mode() {
    let mut stream = one_preempted(USER);
    stream.ipi(0, 0, 1).exit(0, 0, ANSWERS).entry(0, 0);
    assert_eq!(outcomes(&stream), [(Outcome::LostOpportunity, 1)]);
    assert_eq!(reasons(&stream), [(Reason::FunctionCall, 1)]);
}

#[test]
fn lost_other_otherwise() {
    // No IPI; a receiver in the kernel; a yield that was refused; a spinner in user mode, for whom nobody is passed over.
    let mut no_ipi = one_preempted(USER);
    no_ipi.exit(0, 0, LOCK).entry(0, 0);
    let mut in_kernel = one_preempted(KERNEL);
    in_kernel.ipi(0, 0, 1).exit(0, 0, ANSWERS).entry(0, 0);
    let mut refused = one_preempted(USER);
    refused.ipi(0, 0, 1).exit(0, 0, ANSWERS);
    refused.yielded(0, 0, 0, 1).entry(0, 0);
    let mut from_user = one_preempted(USER);
    from_user.ipi(0, 0, 1);
    from_user.exit_in(0, 0, LOCK, GuestMode::User).entry(0, 0);
    for stream in [no_ipi, in_kernel, refused, from_user] {
        assert_eq!(outcomes(&stream), [(Outcome::LostOther, 1)]);
    }
}

#[test]
fn mismatch_when_the_spinner_is_entered_before_the_boosted_one_runs() {
    let mut stream = one_preempted(KERNEL);
    stream.exit(0, 0, LOCK).yielded(0, 0, 1, 1).entry(0, 0);
    stream.on(1, 1);
    assert_eq!(outcomes(&stream), [(Outcome::Mismatch, 1)]);
    assert_eq!(vm0(&stream).mismatch_same_cpu, 0);
    // The same queue: both belong to pCPU 0.
    let mut same = Stream::default();
    same.later(10).on(1, 0).preempted(1, 0, KERNEL).on(0, 0);
    same.exit(0, 0, LOCK).preempted(0, 0, KERNEL).on(0, 0);
    same.yielded(0, 0, 1, 1).entry(0, 0);
    assert_eq!(outcomes(&same), [(Outcome::Mismatch, 1)]);
    assert_eq!(vm0(&same).mismatch_same_cpu, 1);
}

#[test]
fn success_when_the_boosted_one_runs_first() {
    // On the spinner's pCPU, and on another, where it arrives between yield_to() and the entry.
    let mut same = Stream::default();
    same.later(10).on(1, 0).preempted(1, 0, KERNEL).on(0, 0);
    same.exit(0, 0, LOCK).preempted(0, 0, KERNEL).on(1, 0);
    same.preempted(1, 0, USER).on(0, 0).yielded(0, 0, 1, 1);
    same.entry(0, 0);
    assert_eq!(outcomes(&same), [(Outcome::Success, 1)]);
    let mut other = one_preempted(KERNEL);
    other.exit(0, 0, LOCK).yielded(0, 0, 1, 1).on(1, 1);
    other.entry(0, 0);
    assert_eq!(outcomes(&other), [(Outcome::Success, 1)]);
}

#[test]
fn overboost_when_the_boosted_one_was_halted_and_got_nothing_from_the_spinner() {
    let boosted = |ipi: bool| {
        let mut stream = two_running();
        stream.halts(1, 1);
        if ipi {
            stream.ipi(0, 0, 1);
        }
        stream.woken(1).exit(0, 0, LOCK).yielded(0, 0, 1, 1);
        stream.on(1, 1).entry(0, 0);
        outcomes(&stream)
    };
    assert_eq!(boosted(false), [(Outcome::Overboost, 1)]);
    assert_eq!(boosted(true), [(Outcome::Success, 1)]);
}

/// "Forgotten once scheduled" (ruling 32).
#[test]
fn a_receiver_that_has_run_since_is_no_receiver() {
    let mut stream = one_preempted(USER);
    stream.ipi(0, 0, 1).on(1, 1).preempted(1, 1, USER);
    stream.exit(0, 0, LOCK).entry(0, 0);
    assert_eq!(outcomes(&stream), [(Outcome::LostOther, 1)]);
    // Running when it was sent: it has got it.
    let mut running = two_running();
    running.ipi(0, 0, 1).preempted(1, 1, USER);
    running.exit(0, 0, LOCK).entry(0, 0);
    assert_eq!(outcomes(&running), [(Outcome::LostOther, 1)]);
}

#[test]
fn what_is_not_known_is_unknown() {
    // A vCPU that shows itself only later.
    let mut later = Stream::default();
    later.later(10).on(0, 0).exit(0, 0, LOCK).entry(0, 0);
    later.on(1, 1);
    assert_eq!(outcomes(&later), [(Outcome::Unknown, 1)]);
    // Its mode; the end of the recording; nobody saw where KVM looked.
    let mut mode = one_preempted(None);
    mode.ipi(0, 0, 1).exit(0, 0, ANSWERS).entry(0, 0);
    let mut end = one_preempted(KERNEL);
    end.exit(0, 0, LOCK);
    let mut unseen = one_preempted(KERNEL);
    unseen.exit(0, 0, LOCK).entry(0, 0);
    unseen
        .events
        .retain(|event| event.what.name() != "kvm_vcpu_on_spin");
    for stream in [mode, end, unseen] {
        assert_eq!(outcomes(&stream), [(Outcome::Unknown, 1)], "{stream:?}");
    }
}

/// A vCPU that was off its pCPU before anybody looked may be waited for by an IPI that nobody saw.
#[test]
fn an_ipi_before_the_first_event_may_be_open() {
    let mut stream = Stream::default();
    stream.later(10).on(0, 0).preempted(1, 1, USER);
    // vCPU 1 has run, so it has got everything; vCPU 2 was only woken.
    stream.woken(2).exit(0, 0, LOCK).yielded(0, 0, 1, 2);
    stream.on(2, 1).entry(0, 0);
    assert_eq!(outcomes(&stream), [(Outcome::Unknown, 1)]);
}

#[test]
fn blind_to_ipis() {
    let mut stream = one_preempted(USER);
    stream.exit(0, 0, LOCK).entry(0, 0);
    let blind = Sight {
        ipi_blind: true,
        ..sight()
    };
    let vm = &analyse(&stream.events, blind).vms[&0];
    assert_eq!(vm.outcomes[Outcome::Unknown as usize], 1);
    let matrix = vm.locations.matrix(&|_| None);
    let unknown = matrix[Reason::Unknown as usize];
    assert_eq!(unknown.iter().sum::<u64>(), 1);
    // What does not depend on them is still known.
    let mut nobody = two_running();
    nobody.exit(0, 0, LOCK).entry(0, 0);
    let vm = &analyse(&nobody.events, blind).vms[&0];
    assert_eq!(vm.outcomes[Outcome::NoCandidate as usize], 1);
}

#[test]
fn a_loss_makes_unknown_what_it_may_touch() {
    let mut stream = two_running();
    stream.exit(0, 0, LOCK).entry(0, 0);
    stream.later(1_000).lost();
    stream.exit(0, 0, LOCK).entry(0, 0);
    // From here on both are known again.
    stream.later(10).preempted(1, 1, KERNEL).on(1, 1);
    stream.exit(0, 0, LOCK).entry(0, 0);
    assert_eq!(
        outcomes(&stream),
        [(Outcome::NoCandidate, 1), (Outcome::Unknown, 2)]
    );
    assert_eq!(seen(&stream).lost_events, Some(1));
}

#[test]
fn events_out_of_order_are_counted_and_left_out() {
    let mut stream = two_running();
    stream.exit(0, 0, LOCK).entry(0, 0);
    let mut early = stream.events[0];
    early.time_ns = 0;
    stream.events.push(early);
    assert_eq!(seen(&stream).late_events, 1);
    assert_eq!(outcomes(&stream), [(Outcome::NoCandidate, 1)]);
}

/// A reused thread: the vCPU that it served before has none now, and is not known any more.
#[test]
fn a_thread_that_turns_to_another_vcpu() {
    let mut stream = two_running();
    stream.push(
        2,
        1,
        What::SwitchIn {
            previous_thread: 0,
            previous_vm: None,
        },
    );
    stream.events.last_mut().expect("one").thread = 101; // vCPU 1's
    stream.exit(0, 0, LOCK).entry(0, 0);
    assert_eq!(outcomes(&stream), [(Outcome::Unknown, 1)]);
}

/// The same IPI before a lock wait and before a wait for answers: the location tells which.
#[test]
fn an_ipi_alone_does_not_make_a_function_call() {
    let mut stream = one_preempted(USER);
    stream.preempted(0, 0, USER).on(0, 0);
    for _ in 0..5 {
        stream.exit(0, 0, LOCK).entry(0, 0);
    }
    stream.ipi(0, 0, 1).exit(0, 0, LOCK).entry(0, 0);
    assert_eq!(reasons(&stream), [(Reason::Spinlock, 6)]);
    for _ in 0..3 {
        stream.ipi(0, 0, 1);
        stream.exit(0, 0, ANSWERS).entry(0, 0);
        stream.exit(0, 0, ANSWERS).entry(0, 0);
        stream.exit(0, 0, LOCK).entry(0, 0);
    }
    assert_eq!(
        reasons(&stream),
        [(Reason::Spinlock, 9), (Reason::FunctionCall, 6)]
    );
}

/// Before an IPI could be seen, one may be open; another location or user mode ends that.
#[test]
fn what_was_sent_before_the_first_event_is_not_known() {
    let mut stream = two_running();
    for location in [LOCK, LOCK, ANSWERS, LOCK] {
        stream.exit(0, 0, location).entry(0, 0);
    }
    assert_eq!(
        reasons(&stream),
        [(Reason::Spinlock, 2), (Reason::Unknown, 2)]
    );
}

#[test]
fn a_return_to_user_mode_ends_the_wait_for_answers() {
    let mut stream = one_preempted(USER);
    stream.ipi(0, 0, 1).preempted(0, 0, USER).on(0, 0);
    stream.exit(0, 0, LOCK).entry(0, 0);
    assert_eq!(reasons(&stream), [(Reason::Spinlock, 1)]);
}

/// A location at which most exits come with a reschedule IPI is a lock's; without the vectors it would be a function call's.
#[test]
fn linux_vectors_say_what_is_not_waited_for() {
    let mut stream = one_preempted(USER);
    for _ in 0..3 {
        stream.ipi(0, 0, 1).exit(0, 0, LOCK).entry(0, 0);
    }
    for event in &mut stream.events {
        if let What::Ipi { vector, .. } = &mut event.what {
            *vector = 0xfd;
        }
    }
    let exits = |linux_vectors| {
        let sight = Sight {
            linux_vectors,
            ..sight()
        };
        let vm = &analyse(&stream.events, sight).vms[&0];
        let matrix = vm.locations.matrix(&|_| None);
        let count = |reason: Reason| matrix[reason as usize].iter().sum::<u64>();
        (count(Reason::Spinlock), count(Reason::FunctionCall))
    };
    assert_eq!(exits(true), (3, 0));
    assert_eq!(exits(false), (0, 3));
}

/// An interrupt handler that waits for a lock in between; and a host that lets the vCPU sleep over a page fault.
#[test]
fn a_wait_for_answers_goes_on_after_interruptions() {
    let mut stream = one_preempted(USER);
    stream.preempted(0, 0, USER).on(0, 0);
    for _ in 0..4 {
        stream.exit(0, 0, LOCK).entry(0, 0);
    }
    stream.ipi(0, 0, 1).exit(0, 0, ANSWERS).entry(0, 0);
    stream.exit(0, 0, LOCK).entry(0, 0);
    stream.exit(0, 0, ANSWERS).entry(0, 0);
    stream.sleeps(0, 0, 0x400).woken(0).on(0, 0);
    stream.exit(0, 0, ANSWERS).entry(0, 0);
    assert_eq!(
        reasons(&stream),
        [(Reason::Spinlock, 5), (Reason::FunctionCall, 3)]
    );
    // HLT ends it.
    stream.sleeps(0, 0, 0x78).woken(0).on(0, 0);
    for _ in 0..6 {
        stream.exit(0, 0, ANSWERS).entry(0, 0);
    }
    assert_eq!(reasons(&stream), [(Reason::Spinlock, 14)]);
}

#[test]
fn the_record_of_ipis() {
    let mut stream = one_preempted(USER);
    stream.ipi(0, 0, 1).later(99).on(1, 1).ipi(0, 0, 1);
    stream.halts(1, 1).ipi(0, 0, 1);
    let exits = seen(&stream);
    let sums = &exits.ipis.sums()[&(0, IpiForm::Physical, 0xfc)];
    let states: Vec<_> = sums
        .by_state
        .iter()
        .map(|(&state, &n)| (state, n))
        .collect();
    assert_eq!(
        states,
        [
            (ReceiverState::Running, 1),
            (ReceiverState::PreemptedInUser, 1),
            (ReceiverState::Halted, 1)
        ]
    );
    assert_eq!(sums.delay.largest_ns(), Some(100_000));
    assert_eq!((sums.delay.count(), sums.delay_unknown), (1, 1));
    let longest = exits.ipis.longest()[0];
    assert_eq!((longest.sender, longest.receiver), (0, 1));
    assert_eq!(longest.delay_ns, Some(100_000));
}

/// An exit that came after work as well does not make the window longer: the unit is that of the quickest.
#[test]
fn the_quickest_window_says_how_long_a_unit_takes() {
    let mut stream = two_running();
    for _ in 0..3 {
        stream.exit(0, 0, LOCK).entry(0, 0);
    }
    let slow = stream.events.len();
    for _ in 0..3 {
        stream.exit(0, 0, LOCK).entry(0, 0);
    }
    for event in &mut stream.events[slow..] {
        if let What::PauseExit { inside_ns, .. } = &mut event.what {
            *inside_ns *= 7;
        }
    }
    let unit_ps = vm0(&stream).epochs.unit_ps(WindowUnit::Pauses);
    assert_eq!(unit_ps, Some(100_000));
}

#[test]
fn runs_and_epochs() {
    let mut stream = two_running();
    for _ in 0..2_500 {
        stream.exit(0, 0, LOCK).entry(0, 0);
    }
    let vm = vm0(&stream);
    let runs = vm.runs(RunRule::InterruptsEnd);
    assert_eq!((runs.shares.runs, runs.shares.longest), (1, 2_500));
    assert_eq!(runs.shares.above_hundred, 2_500);
    assert_eq!(vm.epochs.ended().len(), 2);
    // 100 PAUSEs take 10 us: 100 ns each. An exit comes every 3 us here, and 11 us of each count on two running vCPUs.
    assert_eq!(vm.epochs.unit_ps(WindowUnit::Pauses), Some(100_000));
    let second = vm.epochs.ended()[1];
    assert!(second.whole);
    assert_eq!(second.epoch.cpu_ns(), 2 * 3_000_000);
    let ppm = second.epoch.inefficiency_ppm(Some(100_000));
    assert_eq!(ppm, Some(11_000_000_000_000 / 6_000_000));
    // The first began before vCPU 1 was known.
    assert_eq!(vm.epochs.window_is_honoured(WindowUnit::Pauses), Some(true));
    let cycles = |tsc_khz| WindowUnit::Cycles { tsc_khz };
    assert_eq!(vm.epochs.unit_ps(cycles(None)), None);
    assert_eq!(vm.epochs.unit_ps(cycles(Some(2_500_000))), Some(400));
    // 10 us of 100 cycles at 5 MHz would be 20 us: such a window is ignored.
    assert_eq!(vm.epochs.unit_ps(cycles(Some(5_000))), None);
    assert_eq!(
        vm.epochs.window_is_honoured(cycles(Some(5_000))),
        Some(false)
    );
}
