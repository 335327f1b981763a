// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is known of silent guests under VMX, whose state BPF cannot read from the VMCS.

use unspin_agent::Steerer;
use unspin_policy::steering::{
    UNSPIN_AGE_UNKNOWN, UNSPIN_ON_POLL, UNSPIN_ON_SLICE_END, UNSPIN_ON_YIELD,
};
use unspin_scenario::Vm;
use unspin_testbed::check;

use super::{
    super::{
        host::{counter, still_there},
        observer_vms::run_for,
    },
    fighting, operations, steer,
};

const USER: u32 = unspin_abi::UNSPIN_MODE_USER;
const KERNEL: u32 = unspin_abi::UNSPIN_MODE_KERNEL;

/// A VM whose vCPUs fight for one ticket lock, with every PAUSE of theirs.
fn fighting_for(pv_page: bool) -> Vm {
    Vm {
        pv_page,
        pause_every_spins: 1,
        ..fighting(4)
    }
}

/// How often a fact was what.
#[derive(Debug, Default)]
struct Modes {
    user: u64,
    kernel: u64,
    unknown: u64,
}

impl Modes {
    fn count(&mut self, value: u32, age_ns: u32) {
        match value {
            _ if age_ns == UNSPIN_AGE_UNKNOWN => self.unknown += 1,
            USER => self.user += 1,
            KERNEL => self.kernel += 1,
            _ => panic!("mode {value}"),
        }
    }

    fn known_share(&self) -> f64 {
        let known = self.user + self.kernel;
        known as f64 / (known + self.unknown) as f64
    }
}

check!(VMX: modes_of_guests_are_known_and_right);
/// Modes of vCPUs whose slice ends, that have a loan, and that KVM asks for; never user mode where the guest's page says that it
/// waits for a lock or holds one, which it does in its kernel.
fn modes_of_guests_are_known_and_right() {
    let steerer = steer("loan-cpl,kernel-exit", |options| {
        options.decision_log_bytes = 16 << 20;
    });
    let done = operations(&run_for(300, vec![fighting_for(true)]));
    let (mut ends, mut polls, mut candidates) =
        (Modes::default(), Modes::default(), Modes::default());
    let (mut critical, mut wrong) = (0, 0);
    let drained = steerer.drain_decisions(&mut |record| {
        assert!(record.replays(), "{record:?}");
        let (own, other) = (&record.facts.self_, &record.facts.candidate);
        match record.event {
            UNSPIN_ON_SLICE_END => ends.count(own.mode.value, own.mode.age_ns),
            UNSPIN_ON_POLL => polls.count(own.mode.value, own.mode.age_ns),
            UNSPIN_ON_YIELD => candidates.count(other.mode.value, other.mode.age_ns),
            _ => return,
        }
        let seen = if record.event == UNSPIN_ON_YIELD {
            other
        } else {
            own
        };
        let known = |age_ns| age_ns != UNSPIN_AGE_UNKNOWN;
        if known(seen.mode.age_ns) && known(seen.critical.age_ns) && seen.critical.value != 0 {
            critical += 1;
            wrong += u64::from(seen.mode.value == USER);
        }
    });
    drained.expect("the kernel tells");
    println!(
        "  {done} operations; slices' ends {ends:?}, polls {polls:?}, candidates {candidates:?}"
    );
    println!("  {wrong} of {critical} in user mode while critical");
    assert_eq!(wrong, 0);
    assert!(critical > 100 && ends.user > 10 && ends.kernel > 10);
    for modes in [&ends, &candidates] {
        assert!(modes.known_share() > 0.95, "{modes:?}");
    }
    still_there(&steerer);
}

check!(VMX: silent_guests_are_lent_to_on_intel);
/// A silent VM's convoy is drained on Intel as on AMD.
fn silent_guests_are_lent_to_on_intel() {
    let done = |policies: &str| {
        let steerer: Steerer = steer(policies, |_| ());
        let before = counter(&steerer, "lent");
        let done = operations(&run_for(300, vec![fighting_for(false)]));
        let lent = counter(&steerer, "lent") - before;
        println!("  {policies}: {done} operations, {lent} loans");
        still_there(&steerer);
        (done, lent)
    };
    let (refused, _) = done("refuse-yields");
    let (with, lent) = done("loan-cpl,kernel-exit");
    assert!(lent > 0 && with > 5 * refused, "{with} of {refused}");
}
