// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules of the preemptable ticket lock, step by step: VEE'13 Figures 1, 3 and 4, rulings 8 and 9.

mod common;

use common::{HEAD, TAIL, TAKEN, TAU, kind};
use unspin_lockcheck::script::{FOREVER, Request, World};

const TAU_SPINS: u32 = 16_384;

fn world(programs: &[&str], words: &[(usize, u32)]) -> World {
    let mut world = World::new(kind("preemptable_ticket"), programs);
    world.start(words);
    world
}

/// A wait of at most this many spins while the head is `value`.
fn waits_for_head(world: &World, thread: usize, value: u32, spins: u32) {
    let expected = Request::Wait {
        word: HEAD,
        value,
        spins,
    };
    assert_eq!(world.pending(thread), expected, "thread {thread}");
}

/// Runs a thread up to its critical section; the lock must be free for it.
fn enter(world: &mut World, thread: usize) {
    assert_eq!(
        world.run_to_wait(thread),
        Request::Enter(true),
        "thread {thread}"
    );
    world.step(thread);
}

/// Leaves and unlocks.
fn leave(world: &mut World, thread: usize) {
    assert_eq!(world.step(thread), Request::Leave);
    world.run_until(thread, |request| request == Request::Done);
}

#[test]
fn tau_is_figure_3s_timeout_unit() {
    let mut world = world(&["L"], &[]);
    assert_eq!(world.words()[TAU], 1 << 14);
    // Fast path, lines 10 and 11: a free lock without waiters is taken without a spin.
    let mut waits = 0;
    while world.pending(0) != Request::Done {
        waits += usize::from(matches!(world.pending(0), Request::Wait { .. }));
        world.step(0);
    }
    assert_eq!(waits, 0);
    assert_eq!(world.words()[TAIL], 1, "one request");
    assert_eq!(world.words()[HEAD], 1, "one grant");
    assert_eq!(world.words()[TAKEN], 0, "free");
}

/// Figure 1, stages a to d, with its nodes 1 to 5 as threads 0 to 4.
#[test]
fn figure_1_step_by_step() {
    let mut world = world(&["L", "L", "L", "L", "L"], &[]);
    // (a) N1 holds; N2 to N5 wait n x tau each, and N2 is preempted: it is not stepped until (d).
    enter(&mut world, 0);
    for thread in 1..5 {
        world.run_to_wait(thread);
        waits_for_head(&world, thread, 0, thread as u32 * TAU_SPINS);
    }
    // After some spins: they must not count once the head has moved.
    for thread in 2..5 {
        for _ in 0..1_000 {
            world.step(thread);
        }
        waits_for_head(&world, thread, 0, thread as u32 * TAU_SPINS - 1_000);
    }
    // (b) N1 releases: every threshold starts again in full.
    leave(&mut world, 0);
    assert_eq!(world.words()[TAKEN], 0, "available, and nobody takes it");
    for thread in 2..5 {
        world.step(thread);
        waits_for_head(&world, thread, 1, (thread as u32 - 1) * TAU_SPINS);
    }
    // (c) After tau exactly, N3 times out and takes the lock before N2; N4 and N5 still wait.
    for spin in 0..TAU_SPINS {
        waits_for_head(&world, 2, 1, TAU_SPINS - spin);
        for thread in 2..5 {
            world.step(thread);
        }
    }
    enter(&mut world, 2);
    waits_for_head(&world, 3, 1, TAU_SPINS);
    waits_for_head(&world, 4, 1, 2 * TAU_SPINS);
    // (d) N3 releases: N4's threshold is updated again, and N2, passed meanwhile, gets the lock at once.
    leave(&mut world, 2);
    world.step(3);
    waits_for_head(&world, 3, 2, TAU_SPINS);
    let mut spins = 0;
    while world.pending(1) != Request::Enter(true) {
        spins += usize::from(matches!(world.pending(1), Request::Wait { .. }));
        assert!(
            spins <= 1,
            "passed, and still it waits: {:?}",
            world.pending(1)
        );
        world.step(1);
    }
    assert_eq!(spins, 1, "one look at the head, that has moved");
    world.step(1);
    leave(&mut world, 1);
    // Now N4 is called, then N5: as many grants as requests.
    enter(&mut world, 3);
    leave(&mut world, 3);
    enter(&mut world, 4);
    leave(&mut world, 4);
    assert_eq!(&world.words()[..3], [5, 5, 0]);
}

#[test]
fn a_called_ticket_competes_without_waiting_for_a_time_out() {
    let mut world = world(&["L", "L"], &[]);
    enter(&mut world, 0);
    world.run_to_wait(1);
    leave(&mut world, 0);
    assert_eq!(
        world.step(1),
        Request::Wait {
            word: HEAD,
            value: 0,
            spins: TAU_SPINS
        }
    );
    assert_eq!(world.pending(1), Request::Exchange(TAKEN, 1));
}

#[test]
fn a_timed_out_waiter_spins_on_the_lock_word_and_not_in_the_queue() {
    let mut world = world(&["L", "L"], &[]);
    enter(&mut world, 0);
    world.run_to_wait(1);
    world.time_out(1);
    // The lock is still held: from here it is a generic spinlock (Figure 3, lines 29 to 35), without a bound.
    assert_eq!(world.step(1), Request::Exchange(TAKEN, 1));
    assert_eq!(
        world.pending(1),
        Request::Wait {
            word: TAKEN,
            value: 1,
            spins: FOREVER
        }
    );
    // A move of the head does not send it back to the queue.
    world.set_word(HEAD, 1);
    world.step(1);
    assert_eq!(
        world.pending(1),
        Request::Wait {
            word: TAKEN,
            value: 1,
            spins: FOREVER
        }
    );
}

#[test]
fn the_countdown_restarts_however_late_the_head_moves() {
    let mut world = world(&["L"], &[(TAIL, 3)]);
    world.run_to_wait(0);
    waits_for_head(&world, 0, 0, 3 * TAU_SPINS);
    for _ in 0..3 * TAU_SPINS - 1 {
        world.step(0);
    }
    waits_for_head(&world, 0, 0, 1);
    world.set_word(HEAD, 1);
    world.step(0);
    waits_for_head(&world, 0, 1, 2 * TAU_SPINS);
}

/// Ruling 9: 32-bit tickets. With 16 bits each of these would have a wrong position.
#[test]
fn position_counts_in_32_bits() {
    for ahead in [0x7fff, 0x8000, 0xffff, 0x1_0000, 0x1_0001] {
        let mut world = world(&["L"], &[(TAIL, ahead)]);
        world.run_to_wait(0);
        waits_for_head(
            &world,
            0,
            0,
            ahead.saturating_mul(TAU_SPINS).min(FOREVER - 1),
        );
    }
    for passed_by in [1, 0x7fff, 0x8000, 0xffff, 0x1_0000, 0x7fff_0000] {
        let mut world = world(&["L"], &[(TAIL, 1)]);
        world.run_to_wait(0);
        waits_for_head(&world, 0, 0, TAU_SPINS);
        world.set_word(HEAD, 1 + passed_by);
        world.step(0);
        assert_eq!(
            world.pending(0),
            Request::Exchange(TAKEN, 1),
            "passed by {passed_by:#x}"
        );
    }
}

#[test]
fn position_is_signed_across_the_wrap_around() {
    // Ticket 0 after the wrap, head still before it: two places away.
    let mut before = world(&["LL"], &[(TAIL, 0), (HEAD, u32::MAX - 1)]);
    before.run_to_wait(0);
    waits_for_head(&before, 0, u32::MAX - 1, 2 * TAU_SPINS);
    // Ticket 2^32 - 1, head already behind the wrap: passed.
    let mut passed = world(&["L"], &[(TAIL, u32::MAX), (HEAD, 1)]);
    assert_eq!(passed.run_to_wait(0), Request::Enter(true));
}

#[test]
fn a_threshold_that_does_not_fit_is_the_longest_bounded_one() {
    let mut world = world(&["L"], &[(TAIL, 3), (TAU, 0x8000_0000)]);
    world.run_to_wait(0);
    waits_for_head(&world, 0, 0, FOREVER - 1);
}

#[test]
fn trylock_leaves_a_taken_or_awaited_lock_as_it_was() {
    // tail, head, taken: held; held and awaited; released but not yet taken by the ticket called.
    for words in [[1, 0, 1], [3, 0, 1], [2, 1, 0]] {
        let set = [(TAIL, words[0]), (HEAD, words[1]), (TAKEN, words[2])];
        let mut world = world(&["T"], &set);
        world.run_until(0, |request| request == Request::TryRefused);
        assert_eq!(&world.words()[..3], words);
    }
    // A thread takes a ticket after trylock has read the words and before it has the lock: trylock gives the lock back.
    let mut world = world(&["T", "L"], &[]);
    world.run_until(0, |request| request == Request::Exchange(TAKEN, 1));
    assert_eq!(world.step(1), Request::FetchAdd(TAIL, 1));
    world.run_until(0, |request| request == Request::TryRefused);
    assert_eq!(&world.words()[..3], [1, 0, 0]);
    enter(&mut world, 1);
    leave(&mut world, 1);
    assert_eq!(&world.words()[..3], [1, 1, 0]);
}

#[test]
fn is_locked_counts_waiters_as_figure_4_does() {
    let cases = [
        ([0, 0, 0], false),
        ([1, 0, 1], true),
        ([2, 1, 0], true),
        ([1, 1, 1], true),
    ];
    for (words, expected) in cases {
        let set = [(TAIL, words[0]), (HEAD, words[1]), (TAKEN, words[2])];
        let mut world = world(&["Q"], &set);
        let answer = world.run_until(0, |request| matches!(request, Request::IsLocked(_)));
        assert_eq!(answer, Request::IsLocked(expected), "{words:?}");
    }
}

#[test]
fn unlock_calls_the_next_ticket_and_then_opens_the_lock() {
    let mut world = world(&["L"], &[]);
    enter(&mut world, 0);
    world.step(0);
    let mut writes = Vec::new();
    while world.pending(0) != Request::Done {
        match world.step(0) {
            Request::Store(word, value) => writes.push((word, value)),
            Request::Load(_) => {}
            other => panic!("unlock does not do this: {other:?}"),
        }
    }
    assert_eq!(writes, [(HEAD, 1), (TAKEN, 0)]);
}
