// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host that was steered did, as rows.

use unspin_policy::{EcsAccount, GuestAudit};
use unspin_report::row;

use crate::SteerCounter;

row! {
    "guest_audit", ["steer"];
    /// What the guest of a VM process claimed and asked for.
    pub struct GuestAuditRow {
        /// The VM's process.
        pub process: String = ("VM process", Text),
        /// Ends of slices at which its page was read.
        pub boundaries: u64 = ("slice ends", Count),
        /// Of these, those with a critical section claimed.
        pub claimed: u64 = ("claimed", Count),
        /// Loans and grants that it was told of.
        pub borrowed: u64 = ("loans, grants", Count),
        /// Of these, those that the clock ended.
        pub overrun: u64 = ("overrun", Count),
        /// Times that its page could not be read, or had no magic.
        pub page_failures: u64 = ("page failures", Count),
        /// Registrations of what is no page of its memory.
        pub bad_addresses: u64 = ("bad addresses", Count),
        /// Times that it gave back without owing anything.
        pub idle_calls: u64 = ("idle calls", Count),
        /// IPIs that its vCPUs sent one another, each once for all receivers; only where rules of candidates are loaded.
        pub sent: u64 = ("IPIs sent", Count),
        /// Receivers of these that were off their CPU and had not answered the last one.
        pub unanswered: u64 = ("unanswered", Count),
        /// CPU time of its vCPUs, where rules of candidates are loaded; ns.
        pub ran_ns: u64 = ("CPU time", Nanoseconds),
        /// What no honest guest does, with semicolons between; empty: nothing of that.
        pub says: String = ("what no honest guest does", Text),
    }
}

row! {
    "ecs", ["steer"];
    /// eCS's account of preemptions in critical sections (ruling 22), of all VMs whose guests say when they are in one.
    pub struct AccountRow {
        /// Ends of slices in a critical section, ends of grants and loans included.
        pub boundaries: u64 = ("ends of slices in one", Count),
        /// Of these, those at which the vCPU lost its CPU.
        pub descheduled: u64 = ("CPU lost there", Count),
        /// vCPUs pushed aside by a wake-up in a critical section.
        pub by_wakeup: u64 = ("pushed aside in one", Count),
        /// Share of `boundaries` at which the CPU was kept; percent.
        pub avoided: Option<f64> = ("avoided", Percent),
        /// Share of `descheduled` in all preemptions; percent.
        pub preempted_critical: Option<f64> = ("of all preemptions", Percent),
    }
}

/// What each VM's guest claimed, by process.
pub fn guest_audit(all: &[(u32, GuestAudit)]) -> impl Iterator<Item = GuestAuditRow> {
    all.iter().map(|(process, of)| GuestAuditRow {
        process: process.to_string(),
        boundaries: of.boundaries,
        claimed: of.claimed,
        borrowed: of.borrowed,
        overrun: of.overrun,
        page_failures: of.page_failures,
        bad_addresses: of.bad_addresses,
        idle_calls: of.idle_calls,
        sent: of.sent,
        unanswered: of.unanswered,
        ran_ns: of.ran_ns,
        says: of.says().join("; "),
    })
}

/// eCS's account of preemptions in critical sections (ruling 22).
pub fn account(counters: &[SteerCounter]) -> AccountRow {
    let value = |name: &str| {
        let found = counters.iter().find(|counter| counter.counter == name);
        found.map_or(0, |counter| counter.value)
    };
    let account = EcsAccount {
        boundaries: value("critical_ends"),
        descheduled: value("critical_lost"),
        by_wakeup: value("critical_pushed"),
    };
    let ended = value("ended");
    AccountRow {
        boundaries: account.boundaries,
        descheduled: account.descheduled,
        by_wakeup: account.by_wakeup,
        avoided: account.avoided_ppm().map(|ppm| ppm as f64 / 1e4),
        preempted_critical: (ended > 0).then(|| 100.0 * account.descheduled as f64 / ended as f64),
    }
}
