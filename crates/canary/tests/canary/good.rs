// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is good is kept, and whatever ends it leaves the kernel's own scheduler.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use unspin_canary::{Error, Measured, Outcome, Request};
use unspin_experiment::{Progress, Session};
use unspin_testbed::check;

use super::host::{Vms, is_steered, probed, request, run};

fn says(measured: &Measured, policy: &str) -> String {
    unspin_canary::outcome(measured, policy).join("\n")
}

check!(CANARY_LONG: a_good_policy_is_kept_until_the_interrupt);
/// Two VMs with a convoy each, whose guests say what they wait for.
fn a_good_policy_is_kept_until_the_interrupt() {
    let vms = Vms::start(2, 4, "telling-ticket");
    let interrupt = Arc::new(AtomicBool::new(false));
    let request = Request {
        keep: true,
        ..request("loan,kernel-exit")
    };
    let (mut told, mut interrupter) = (0, None);
    let measured = run(request, &interrupt, &mut |measured| {
        told += 1;
        assert_eq!(measured.outcome, Outcome::Better);
        let interrupt = Arc::clone(&interrupt);
        interrupter = Some(thread::spawn(move || {
            // Beside the convoys of the kernel's scheduler it takes some ten seconds to load ours.
            for _ in 0..600 {
                thread::sleep(Duration::from_millis(100));
                if is_steered() {
                    break;
                }
            }
            thread::sleep(Duration::from_secs(4));
            let steered = is_steered();
            interrupt.store(true, Ordering::Relaxed);
            steered
        }));
    });
    let measured = measured.unwrap_or_else(|error| panic!("{error}"));
    println!("  {}", says(&measured, "loan,kernel-exit"));
    let steered = interrupter.expect("it was good").join();
    assert!(steered.expect("it does not panic"), "nothing was kept");
    assert_eq!((told, &measured.outcome), (1, &Outcome::Better));
    assert!(
        measured
            .kept
            .is_some_and(|kept| kept > Duration::from_secs(4))
    );
    let host = measured.compared.host.as_ref().expect("pairs");
    assert!(host.interval.low > 1.5, "{host:?}");
    assert!(!is_steered());
    drop(vms);
}

check!(CANARY_LONG: only_the_vms_are_tried);
/// `--only-vms`: under our scheduler are the vCPUs' threads alone, and afterwards they are as they were.
fn only_the_vms_are_tried() {
    let vms = Vms::start(2, 4, "telling-ticket");
    let request = Request {
        only_vms: true,
        ..request("loan,kernel-exit")
    };
    let measured = run(request, &Arc::default(), &mut |_| ());
    let measured = measured.unwrap_or_else(|error| panic!("{error}"));
    println!("  {}", says(&measured, "loan,kernel-exit"));
    assert_eq!(measured.outcome, Outcome::Better);
    let host = measured.compared.host.as_ref().expect("pairs");
    assert!(host.interval.low > 1.5, "{host:?}");
    assert!(!is_steered());
    let threads = vms.threads();
    assert!(threads.len() >= 8, "{threads:?}");
    for thread in threads {
        // SAFETY: takes a number only.
        let policy = unsafe { libc::sched_getscheduler(thread) };
        assert_eq!(policy, libc::SCHED_OTHER, "{thread}");
    }
}

check!(CANARY_LONG: auto_is_no_harm_and_is_kept);
/// What is tried when nobody says otherwise: guards let its trials be.
fn auto_is_no_harm_and_is_kept() {
    let _vms = Vms::start(2, 4, "ticket");
    let request = Request {
        pairs: 4,
        sample: Duration::from_secs(10),
        ..request("auto")
    };
    let measured = run(request, &Arc::default(), &mut |_| ());
    let measured = measured.unwrap_or_else(|error| panic!("{error}"));
    println!("  {}", says(&measured, "auto"));
    assert_eq!(measured.outcome, Outcome::Better);
    assert_eq!(measured.kept, None);
    assert!(!is_steered());
}

check!(CANARY_LONG: vms_that_never_wait_see_no_difference);
/// As many vCPUs as CPUs, one VM: nobody has anything to gain or to lose.
fn vms_that_never_wait_see_no_difference() {
    let _vms = Vms::start(1, 1, "ticket");
    let measured = run(request("loan,kernel-exit"), &Arc::default(), &mut |_| ());
    let measured = measured.unwrap_or_else(|error| panic!("{error}"));
    println!("  {}", says(&measured, "loan,kernel-exit"));
    assert_eq!(measured.outcome, Outcome::NoDifference);
    assert!(!is_steered());
}

/// Interrupts a second after a phase of that name has begun.
struct Interrupter {
    phase: &'static str,
    interrupt: Arc<AtomicBool>,
    said: AtomicBool,
}

impl Progress for Interrupter {
    fn say(&self, what: &str) {
        if !what.contains(self.phase) || self.said.swap(true, Ordering::Relaxed) {
            return;
        }
        let interrupt = Arc::clone(&self.interrupt);
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(1));
            interrupt.store(true, Ordering::Relaxed);
        });
    }
}

check!(CANARY_LONG: an_interrupt_in_any_phase_leaves_the_kernels_scheduler);
fn an_interrupt_in_any_phase_leaves_the_kernels_scheduler() {
    let _vms = Vms::start(2, 4, "telling-ticket");
    for (phase, phases) in [("pair 1 of 2, the kernel's", 1), ("pair 1 of 2, policy", 2)] {
        let progress = Interrupter {
            phase,
            interrupt: Arc::default(),
            said: AtomicBool::new(false),
        };
        let session = Session {
            progress: &progress,
            interrupt: Arc::clone(&progress.interrupt),
        };
        let measured = unspin_canary::run(request("loan,kernel-exit"), &session, &mut |_| ());
        let measured = measured.unwrap_or_else(|error| panic!("{error}"));
        println!("  {phase}: {}", says(&measured, "loan,kernel-exit"));
        assert_eq!(measured.outcome, Outcome::Interrupted);
        assert_eq!(measured.phases.len(), phases);
        assert!(!is_steered());
    }
}

check!(CANARY_LONG: vms_come_and_go_meanwhile);
/// One ends under our scheduler, another one comes: neither is harm, and the one that stays has its pairs.
fn vms_come_and_go_meanwhile() {
    let stays = Vms::start(1, 4, "telling-ticket");
    let ends = Vms::start(1, 4, "telling-ticket");
    let others = thread::spawn(move || {
        thread::sleep(Duration::from_secs(10));
        drop(ends);
        let _comes = Vms::start(1, 4, "telling-ticket");
        thread::sleep(Duration::from_secs(20));
    });
    let measured = run(request("loan,kernel-exit"), &Arc::default(), &mut |_| ());
    let measured = measured.unwrap_or_else(|error| panic!("{error}"));
    others.join().expect("it does not panic");
    println!("  {}", says(&measured, "loan,kernel-exit"));
    assert!(
        !matches!(measured.outcome, Outcome::Harm(_)),
        "{:?}",
        measured.outcome
    );
    assert_eq!(measured.vms.len(), 3);
    assert!(measured.compared.vms.values().any(|of| of.pairs == 2));
    drop(stays);
}

check!(CANARY_LONG: what_cannot_be_tried_is_refused);
fn what_cannot_be_tried_is_refused() {
    let refused = |request| run(request, &Arc::default(), &mut |_| ()).expect_err("refused");
    let error = refused(request("loan"));
    assert!(matches!(error, Error::NoVms(_)), "{error}");
    let _vms = Vms::start(1, 2, "ticket");
    let error = refused(probed("loan", "exit 1"));
    assert!(matches!(error, Error::Probe(_)), "{error}");
    let error = refused(probed("loan", "while :; do :; done"));
    assert!(
        error.to_string().contains("did not end within 2.0 s"),
        "{error}"
    );
    // `steer` runs already.
    let steerer = unspin_agent::Steerer::attach(&unspin_agent::SteerOptions::default());
    let error = refused(request("loan"));
    assert!(
        error.to_string().contains("another sched_ext scheduler"),
        "{error}"
    );
    drop(steerer);
}
