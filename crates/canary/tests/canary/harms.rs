// SPDX-License-Identifier: MIT OR Apache-2.0
//! Planted harm of several kinds: each is undone within 5 s from when our scheduler began.

use std::{sync::Arc, time::Duration};

use unspin_canary::{Guard, Outcome, Request, SAMPLE_MIN};
use unspin_testbed::check;

use super::host::{Bursts, Vms, is_steered, probed, request, run};

/// From when our scheduler began until the kernel's own is back.
const LIMIT: Duration = Duration::from_secs(5);

/// A probe that prints one number while the kernel's own scheduler has the host, and does something else while ours has it.
macro_rules! probe {
    ($else:literal) => {
        concat!(
            "read state </sys/kernel/sched_ext/state; if [ $state = enabled ]; then ",
            $else,
            "; else echo 100; fi"
        )
    };
}

/// What is planted.
#[derive(Clone, Copy)]
struct Harm {
    /// VMs, vCPUs of each, their lock.
    vms: (usize, u32, &'static str),
    policy: &'static str,
    probe: Option<&'static str>,
    /// Real-time threads that come with our scheduler, for so long at a time, ms.
    bursts_ms: Option<u64>,
    sample: Duration,
    /// Guards one of which must see it.
    guards: &'static [Guard],
}

const USEFUL_OR_SPIN: &[Guard] = &[Guard::UsefulShare, Guard::SpinShare];
const LATE: &[Guard] = &[Guard::SleeperDelay, Guard::RunDelay, Guard::UsefulShare];
const PROBE: &[Guard] = &[Guard::Probe];
const FAILS: &[Guard] = &[Guard::ProbeFails];
const TAKEN_BACK: &[Guard] = &[Guard::TakenBack];

const fn policy(vms: (usize, u32, &'static str), policy: &'static str) -> Harm {
    Harm {
        vms,
        policy,
        probe: None,
        bursts_ms: None,
        sample: SAMPLE_MIN,
        guards: USEFUL_OR_SPIN,
    }
}

/// Beside a policy that is good for that guest.
const fn good(guards: &'static [Guard]) -> Harm {
    Harm {
        guards,
        ..policy((2, 4, "telling-ticket"), "loan,kernel-exit")
    }
}

const fn probe(probe: &'static str, guards: &'static [Guard]) -> Harm {
    Harm {
        probe: Some(probe),
        ..good(guards)
    }
}

const fn bursts(milliseconds: u64) -> Harm {
    Harm {
        bursts_ms: Some(milliseconds),
        ..good(LATE)
    }
}

impl Harm {
    /// Runs a canary into it. A boot of several of them goes on when one fails.
    fn is_undone(self) {
        let (count, vcpus, lock) = self.vms;
        let mut vms = Vms::start(count, vcpus, lock);
        let request = match self.probe {
            Some(command) => probed(self.policy, command),
            None => request(self.policy),
        };
        let request = Request {
            sample: self.sample,
            ..request
        };
        let bursts = self
            .bursts_ms
            .map(|length| Bursts::start(Duration::from_millis(length)));
        let measured = match run(request, &Arc::default(), &mut |_| ()) {
            Ok(measured) => measured,
            Err(error) => panic!("{error}"),
        };
        drop(bursts);
        assert!(!is_steered(), "the kernel's own scheduler is not back");
        for line in unspin_canary::outcome(&measured, self.policy) {
            println!("  {line}");
        }
        let Outcome::Harm(harm) = &measured.outcome else {
            panic!("nobody saw it: {:?}", measured.outcome)
        };
        assert!(self.guards.contains(&harm.guard), "{harm:?}");
        assert!(harm.back_after < LIMIT, "{harm:?}");
        assert_eq!(harm.end.is_some(), harm.guard == Guard::TakenBack);
        assert!(vms.are_running(), "a VM is lost");
    }
}

/// A check for each.
macro_rules! harms {
    ($boot:ident: $($name:ident => $harm:expr;)*) => {$(
        check!($boot: $name);
        fn $name() {
            $harm.is_undone();
        }
    )*};
}

check!(CANARY: a_scheduler_that_errs_is_harm_at_once);
/// In phases that are too short for guards of figures: the kernel says so.
fn a_scheduler_that_errs_is_harm_at_once() {
    Harm {
        guards: TAKEN_BACK,
        sample: Duration::from_millis(500),
        ..policy((1, 2, "ticket"), "/erring.o")
    }
    .is_undone();
}

harms! { CANARY_LONG:
    refused_yields_of_two_vms => policy((2, 4, "ticket"), "refuse-yields");
    refused_yields_of_one_vm => policy((1, 4, "ticket"), "refuse-yields");
    refused_yields_of_preemptable_tickets => policy((1, 4, "preemptable_ticket"), "refuse-yields");
    refused_yields_of_two_vms_of_preemptable_tickets => policy((2, 4, "preemptable_ticket"), "refuse-yields");
    refused_yields_of_a_queue => policy((2, 4, "mcs"), "refuse-yields");
    samples_without_a_loan => policy((2, 4, "ticket"), "kernel-exit,candidates=strict,spin-samples");
    samples_without_a_loan_for_one_vm => policy((1, 4, "ticket"), "kernel-exit,candidates=strict,spin-samples");
    a_users_policy_that_refuses => policy((2, 4, "ticket"), "/refusing.o");
    a_users_policy_that_refuses_before_a_good_one => policy((2, 4, "telling-ticket"), "/refusing.o,loan");
    a_users_policy_with_a_fault => Harm { guards: TAKEN_BACK, ..policy((2, 4, "ticket"), "/erring.o") };
    a_probe_that_falls_to_a_half => probe(probe!("echo 50"), PROBE);
    a_probe_that_falls_to_two_thirds => probe(probe!("echo 67"), PROBE);
    a_probe_that_falls_to_nothing => probe(probe!("echo 0"), PROBE);
    a_probe_that_fails => probe(probe!("exit 1"), FAILS);
    a_probe_that_is_killed => probe(probe!("kill -9 $$"), FAILS);
    a_probe_that_prints_no_number => probe(probe!("echo broken"), FAILS);
    a_probe_that_hangs => probe(probe!("read nothing <&-; while :; do :; done"), FAILS);
    a_sleeper_that_is_late_by_20_ms => bursts(20);
    a_sleeper_that_is_late_by_40_ms => bursts(40);
    a_sleeper_that_is_late_by_100_ms => bursts(100);
}
