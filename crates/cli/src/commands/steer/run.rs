// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer`: our scheduler and a policy on this host, until Ctrl-C, a time, or the end of a command.

use std::{collections::BTreeSet, process::ExitCode};

use unspin_agent::{ChosenPolicies, SliceSource, SteerCounter, Steerer, base_slice};
use unspin_policy::{EcsAccount, GuestAudit, steering::DecisionFile};
use unspin_report::{Document, Table, row};

use crate::{
    commands::steer::{
        args::SteerArguments,
        dry as steer_dry, options,
        wait::{Wait, print},
        windows::Windows,
    },
    terminal::{failure::Failure, output},
};

row! {
    "guest_audit", ["steer"];
    /// What the guest of a VM process claimed and asked for.
    struct GuestAuditRow {
        /// The VM's process.
        process: String = ("VM process", Text),
        /// Ends of slices at which its page was read.
        boundaries: u64 = ("slice ends", Count),
        /// Of these, those with a critical section claimed.
        claimed: u64 = ("claimed", Count),
        /// Loans and grants that it was told of.
        borrowed: u64 = ("loans, grants", Count),
        /// Of these, those that the clock ended.
        overrun: u64 = ("overrun", Count),
        /// Times that its page could not be read, or had no magic.
        page_failures: u64 = ("page failures", Count),
        /// Registrations of what is no page of its memory.
        bad_addresses: u64 = ("bad addresses", Count),
        /// Times that it gave back without owing anything.
        idle_calls: u64 = ("idle calls", Count),
        /// IPIs that its vCPUs sent one another, each once for all receivers; only where rules of candidates are loaded.
        sent: u64 = ("IPIs sent", Count),
        /// Receivers of these that were off their CPU and had not answered the last one.
        unanswered: u64 = ("unanswered", Count),
        /// CPU time of its vCPUs, where rules of candidates are loaded; ns.
        ran_ns: u64 = ("CPU time", Nanoseconds),
        /// What no honest guest does, with semicolons between; empty: nothing of that.
        says: String = ("what no honest guest does", Text),
    }
}

row! {
    "steer", ["steer"];
    /// A counter of the scheduler, since it was attached.
    struct CounterRow {
        /// Its name.
        counter: &'static str = ("counter", Text),
        /// What it has counted.
        value: u64 = ("since attach", Count),
        /// What it counts.
        says: &'static str = ("what it counts", Text),
    }
}

row! {
    "ecs", ["steer"];
    /// eCS's account of preemptions in critical sections (ruling 22), of all VMs whose guests say when they are in one.
    struct AccountRow {
        /// Ends of slices in a critical section, ends of grants and loans included.
        boundaries: u64 = ("ends of slices in one", Count),
        /// Of these, those at which the vCPU lost its CPU.
        descheduled: u64 = ("CPU lost there", Count),
        /// vCPUs pushed aside by a wake-up in a critical section.
        by_wakeup: u64 = ("pushed aside in one", Count),
        /// Share of `boundaries` at which the CPU was kept; percent.
        avoided: Option<f64> = ("avoided", Percent),
        /// Share of `descheduled` in all preemptions; percent.
        preempted_critical: Option<f64> = ("of all preemptions", Percent),
    }
}

/// Attaches, waits, detaches, prints the counters. The exit status is the command's where there is one.
pub fn run(arguments: &SteerArguments) -> Result<ExitCode, Failure> {
    if arguments.dry_run {
        arguments
            .policy
            .without_window("a dry run")
            .map_err(Failure::Usage)?;
        return steer_dry::run(arguments);
    }
    let mut wait = Wait::new(arguments)?;
    let chosen = arguments.policy.ready(false)?;
    let options = options(arguments, &chosen)?;
    let log = arguments.log_decisions.as_deref();
    let mut log = log.map(DecisionFile::create).transpose()?;
    let mut named = BTreeSet::new();
    // Windows first: where they cannot be set, the scheduler need not come and go for nothing.
    let mut windows = Windows::attach(arguments, chosen.window, &options.disclosures)?;
    if windows.sets_thresholds() {
        eprintln!(
            "unspin: no module that sets windows: guests with a pv page are told how long to spin (README, Steering)"
        );
    }
    let steerer = chosen.steers.then(|| Steerer::attach(&options));
    let steerer = steerer.transpose().map_err(anyhow::Error::from)?;
    match &steerer {
        Some(steerer) => say(&chosen, steerer)?,
        None => eprintln!("unspin: setting windows by policy {chosen}; the host's scheduler stays"),
    }
    wait.start(&arguments.command)?;
    let end = loop {
        let continues = wait.continues()?;
        windows.look()?;
        let ended = match &steerer {
            Some(steerer) => {
                write_decisions(steerer, log.as_mut())?;
                name_who_lies(steerer, &mut named)?;
                steerer.ended().map_err(anyhow::Error::from)?
            }
            None => None,
        };
        if ended.is_some() || !continues {
            break ended;
        }
    };
    if let Some(steerer) = &steerer {
        write_decisions(steerer, log.as_mut())?;
    }
    log.map(DecisionFile::finish).transpose()?;
    let guest_audit = steerer
        .as_ref()
        .map(|steerer| name_who_lies(steerer, &mut named));
    let guest_audit = guest_audit.transpose()?;
    let counters = steerer.as_ref().map(Steerer::counters).transpose();
    let counters = counters.map_err(anyhow::Error::from)?;
    drop(steerer);
    let windows = windows.detach()?;
    // A command outlives its scheduler: what it did after that is its own.
    let status = wait.finish()?;
    let mut document = output::document("steer");
    if let Some(counters) = &counters {
        add_counters(&mut document, counters);
        add_account(&mut document, counters);
    }
    if let Some(guest_audit) = &guest_audit {
        add_audit(&mut document, guest_audit);
    }
    windows.add_tables(&mut document, arguments.output.json);
    print(&document, arguments)?;
    if let Some(end) = end {
        return Err(anyhow::anyhow!(
            "the kernel took its own scheduler back: {}: {}\n{}",
            end.reason,
            end.message,
            end.dump
        )
        .into());
    }
    Ok(status)
}

/// Moves what was decided since the last call into the file, if there is one.
fn write_decisions(steerer: &Steerer, log: Option<&mut DecisionFile>) -> Result<(), Failure> {
    let Some(log) = log else {
        return Ok(());
    };
    let mut written = Ok(());
    let drained = steerer.drain_decisions(&mut |record| {
        if written.is_ok() {
            written = log.add(&record);
        }
    });
    drained.map_err(anyhow::Error::from)?;
    Ok(written?)
}

/// Warns once of each VM whose guest does what no honest one does (policy/classify/guest_audit.h); what all of them did.
fn name_who_lies(
    steerer: &Steerer,
    named: &mut BTreeSet<u32>,
) -> Result<Vec<(u32, GuestAudit)>, Failure> {
    let all = steerer.guest_audit().map_err(anyhow::Error::from)?;
    for (process, guest_audit) in &all {
        let says = guest_audit.says();
        if !says.is_empty() && named.insert(*process) {
            eprintln!(
                "unspin: warning: the guest of VM process {process} {}; its claims buy it no CPU time, and nobody else loses any",
                says.join("; it ")
            );
        }
    }
    Ok(all)
}

/// What is attached, in one line on standard error.
fn say(chosen: &ChosenPolicies, steerer: &Steerer) -> Result<(), Failure> {
    let source = match base_slice().map_err(anyhow::Error::from)?.1 {
        SliceSource::DebugFs => "the kernel's base_slice_ns",
        SliceSource::Rule => "the kernel's default by its rule: debugfs is not to be read",
    };
    eprintln!(
        "unspin: steering with policy {chosen}; slice {} us ({source}){}",
        steerer.slice_ns() as f64 / 1e3,
        if chosen.policies.slice_ns() == 0 {
            ""
        } else {
            ", but for the vCPUs that the policy `slice` is for"
        }
    );
    Ok(())
}

fn add_counters(document: &mut Document, counters: &[SteerCounter]) {
    let rows = counters.iter().map(|counter| CounterRow {
        counter: counter.name,
        value: counter.value,
        says: counter.says,
    });
    document.table(Table::of("What the scheduler did", rows));
}

/// eCS's account of preemptions in critical sections (ruling 22), of all VMs whose guests say when they are in one.
fn add_account(document: &mut Document, counters: &[SteerCounter]) {
    let value = |name: &str| {
        let found = counters.iter().find(|counter| counter.name == name);
        found.map_or(0, |counter| counter.value)
    };
    let account = EcsAccount {
        boundaries: value("critical_ends"),
        descheduled: value("critical_lost"),
        by_wakeup: value("critical_pushed"),
    };
    let ended = value("ended");
    let row = AccountRow {
        boundaries: account.boundaries,
        descheduled: account.descheduled,
        by_wakeup: account.by_wakeup,
        avoided: account.avoided_ppm().map(|ppm| ppm as f64 / 1e4),
        preempted_critical: (ended > 0).then(|| 100.0 * account.descheduled as f64 / ended as f64),
    };
    document.table(Table::of("Preemptions in critical sections", [row]));
}

fn add_audit(document: &mut Document, guest_audit: &[(u32, GuestAudit)]) {
    let rows = guest_audit.iter().map(|(process, of)| GuestAuditRow {
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
    });
    document.table(Table::of("What guests claimed", rows));
}
