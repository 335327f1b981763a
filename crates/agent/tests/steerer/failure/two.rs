// SPDX-License-Identifier: MIT OR Apache-2.0
//! One scheduler a host: a second one is refused by the first one's name, also if both begin at the same instant.

use std::{
    io::Read,
    process::{Command, Stdio},
    sync::Barrier,
};

use unspin_agent::{SteerError, SteerOptions, Steerer};
use unspin_testbed::check;

use crate::steerer::host::{attach, state, still_there};

#[track_caller]
fn names_the_other(error: &SteerError) {
    let named =
        matches!(error, SteerError::OtherScheduler { name, .. } if name.starts_with("unspin"));
    assert!(named, "{error}");
    assert!(error.to_string().contains("stop it first"), "{error}");
}

check!(FAILURE: a_second_one_is_refused_by_name);
/// Also where the second one had been loaded before the first was attached, as a comparison does.
fn a_second_one_is_refused_by_name() {
    let loaded = Steerer::load(&SteerOptions::default()).expect("it loads");
    let first = attach();
    names_the_other(&Steerer::check().expect_err("one is enough"));
    let early = loaded.attach();
    names_the_other(&early.err().expect("one is enough"));
    let late = Steerer::attach(&SteerOptions::default());
    names_the_other(&late.err().expect("one is enough"));
    still_there(&first);
}

check!(STEERER_LONG: of_two_at_once_one_is_attached);
/// Each has looked, found nobody, and been loaded.
fn of_two_at_once_one_is_attached() {
    for _ in 0..3 {
        let both = [(); 2].map(|()| Steerer::load(&SteerOptions::default()).expect("it loads"));
        let together = Barrier::new(2);
        let attached = std::thread::scope(|scope| {
            let threads = both.map(|loaded| {
                scope.spawn(|| {
                    together.wait();
                    loaded.attach()
                })
            });
            threads.map(|thread| thread.join().expect("it tries"))
        });
        let [one, other] = attached;
        let (winner, refusal) = match (one, other) {
            (Ok(winner), Err(refusal)) | (Err(refusal), Ok(winner)) => (winner, refusal),
            (Ok(_), Ok(_)) => panic!("both are attached"),
            (Err(one), Err(other)) => panic!("none is attached: {one}; {other}"),
        };
        println!("  the other one: {refusal}");
        names_the_other(&refusal);
        still_there(&winner);
        drop(winner);
        assert_eq!(state(), "disabled");
    }
}

check!(STEERER_LONG: of_two_processes_at_once_one_is_attached);
/// The same of processes, which also load at the same time.
fn of_two_processes_at_once_one_is_attached() {
    let own = std::env::current_exe().expect("procfs is mounted");
    let mut both = [(); 2].map(|()| {
        let mut command = Command::new(&own);
        command.arg("steer").stderr(Stdio::piped());
        command.spawn().expect("this very binary")
    });
    // The one that is refused ends, the other one waits.
    let loser = loop {
        let ended = both
            .iter_mut()
            .position(|child| child.try_wait().expect("it is ours").is_some());
        if let Some(ended) = ended {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    assert_eq!(state(), "enabled");
    let mut says = String::new();
    let mut stderr = both[loser].stderr.take().expect("it is piped");
    stderr.read_to_string(&mut says).expect("it has ended");
    println!("  {}", says.trim());
    assert!(
        says.contains("another sched_ext scheduler, `unspin"),
        "{says}"
    );
    let winner = &mut both[1 - loser];
    winner.kill().expect("it is ours");
    winner.wait().expect("it was killed");
    assert_eq!(state(), "disabled");
}
