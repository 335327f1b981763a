// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin steer --dry-run`: every decision is taken and none acted upon; who would have been chosen.

use std::process::ExitCode;

use unspin_agent::{ChosenPolicies, DryAnswer, DryLosses, DryRun};
use unspin_policy::steering::{
    DecisionFile, UNSPIN_DIRECT, UNSPIN_GRANT, UNSPIN_LEND, UNSPIN_ON_SLICE_END, UNSPIN_ON_YIELD,
    UNSPIN_REFUSE,
};
use unspin_report::{Document, Table, row};

use crate::{
    commands::steer::{
        args::SteerArguments,
        options,
        wait::{Wait, print},
    },
    terminal::{failure::Failure, output},
};

/// Rows of the table of choices; the rest is one sentence.
const CHOICES_MAX: usize = 20;

/// Counters of which nothing is known where yields cannot be seen.
const OF_YIELDS: [&str; 5] = [
    "yields",
    "not_asked",
    "would_refuse",
    "would_direct",
    "would_lend",
];

row! {
    "dry_run", ["steer"];
    /// A counter of a dry run (`steer --dry-run`), since it was attached.
    struct CounterRow {
        /// Its name.
        counter: &'static str = ("counter", Text),
        /// What it has counted; null where the kernel does not let yields be seen.
        value: Option<u64> = ("since attach", Count),
        /// What it counts.
        says: &'static str = ("what it counts", Text),
    }
}

row! {
    "choices", ["steer"];
    /// Whom a policy would have chosen for a vCPU (`steer --dry-run`), the most frequent first, 20 at most.
    struct ChoiceRow {
        /// The VM's process.
        process: u32 = ("process", Text),
        /// The VM's number, as the kernel numbers them.
        vm: u32 = ("VM", Text),
        /// The vCPU that yielded, or lost its CPU.
        vcpu: u32 = ("vCPU", Text),
        /// Its thread.
        thread: u32 = ("thread", Text),
        /// What would have been done.
        answer: &'static str = ("would have", Text),
        /// The chosen vCPU; null: itself.
        chosen_vcpu: Option<u32> = ("chosen vCPU", Text),
        /// The chosen vCPU's thread.
        chosen_thread: Option<u32> = ("its thread", Text),
        /// How often.
        times: u64 = ("times", Count),
    }
}

/// Attaches, waits, detaches, prints. The exit status is the command's where there is one.
pub fn run(arguments: &SteerArguments) -> Result<ExitCode, Failure> {
    let mut wait = Wait::new(arguments)?;
    let chosen = arguments.policy.ready(true)?;
    let options = options(arguments, &chosen)?;
    let log = arguments.log_decisions.as_deref();
    let mut log = log.map(DecisionFile::create).transpose()?;
    let dry_run = DryRun::attach(&options).map_err(anyhow::Error::from)?;
    eprintln!(
        "unspin: dry run of policy {chosen}: nothing is attached to the scheduler; a slice counts as {} us",
        dry_run.slice_ns() as f64 / 1e3
    );
    wait.start(&arguments.command)?;
    loop {
        let continues = wait.continues()?;
        write_decisions(&dry_run, log.as_mut())?;
        if !continues {
            break;
        }
    }
    let answers = dry_run.answers().map_err(anyhow::Error::from)?;
    let sees_yields = dry_run.sees_yields();
    let (pv_page, losses) = dry_run.losses().map_err(anyhow::Error::from)?;
    // Nothing is decided any more, but what was is still to be written.
    write_decisions(&dry_run, log.as_mut())?;
    drop(dry_run);
    log.map(DecisionFile::finish).transpose()?;
    let status = wait.finish()?;
    let mut document = output::document("steer");
    add_counters(&mut document, &answers, sees_yields, pv_page, losses);
    add_choices(&mut document, &answers);
    add_notes(&mut document, &chosen, sees_yields);
    print(&document, arguments)?;
    Ok(status)
}

fn write_decisions(dry_run: &DryRun, log: Option<&mut DecisionFile>) -> Result<(), Failure> {
    let Some(log) = log else {
        return Ok(());
    };
    let mut written = Ok(());
    let drained = dry_run.drain_decisions(&mut |record| {
        if written.is_ok() {
            written = log.add(&record);
        }
    });
    drained.map_err(anyhow::Error::from)?;
    Ok(written?)
}

fn sum(answers: &[DryAnswer], which: impl Fn(&DryAnswer) -> bool) -> u64 {
    answers
        .iter()
        .filter(|it| which(it))
        .map(|it| it.count)
        .sum()
}

fn add_counters(
    document: &mut Document,
    answers: &[DryAnswer],
    sees_yields: bool,
    pv_page: u64,
    losses: DryLosses,
) {
    let of = |event, action| {
        sum(answers, |it| {
            it.event == event && it.action == action && it.asked
        })
    };
    let yields = |asked| {
        sum(answers, |it| {
            it.event == UNSPIN_ON_YIELD && it.asked == asked
        })
    };
    let slice_ends = sum(answers, |it| it.event == UNSPIN_ON_SLICE_END);
    let rows = [
        (
            "yields",
            yields(true) + yields(false),
            "directed yields that KVM asked for",
        ),
        (
            "not_asked",
            yields(false),
            "of them no policy was asked: none is on, or none may touch these vCPUs; they would be refused",
        ),
        (
            "would_refuse",
            of(UNSPIN_ON_YIELD, UNSPIN_REFUSE),
            "of them a policy would have refused",
        ),
        (
            "would_direct",
            of(UNSPIN_ON_YIELD, UNSPIN_DIRECT),
            "of them the target would have run on the rest of the yielder's slice",
        ),
        (
            "would_lend",
            of(UNSPIN_ON_YIELD, UNSPIN_LEND),
            "of them the target would have had a loan",
        ),
        (
            "slice_ends",
            slice_ends,
            "times a vCPU lost its CPU that could have gone on, and a policy was asked",
        ),
        (
            "would_grant",
            of(UNSPIN_ON_SLICE_END, UNSPIN_GRANT),
            "of them it would have gone on for a while",
        ),
        ("pv_pages", pv_page, "pv pages registered"),
        (
            "pv_page_failures",
            losses.pv_page_failures,
            "pv pages that could not be read",
        ),
        (
            "unlogged",
            losses.unlogged,
            "decisions that found no room in the log",
        ),
        (
            "uncounted",
            losses.answers,
            "decisions that found no room in these tables",
        ),
        (
            "unfollowed",
            losses.threads,
            "entries into guests by threads for which there was no room",
        ),
        (
            "missed_runs",
            losses.missed_runs,
            "runs of the programs that did not take place",
        ),
    ];
    let rows = rows.into_iter().map(|(counter, value, says)| CounterRow {
        counter,
        value: Some(value).filter(|_| sees_yields || !OF_YIELDS.contains(&counter)),
        says,
    });
    document.table(Table::of("What would have been decided", rows));
}

/// In words what was answered, if it chooses somebody.
fn choice(answer: &DryAnswer) -> Option<&'static str> {
    match (answer.event, answer.action) {
        (UNSPIN_ON_YIELD, UNSPIN_DIRECT) => Some("run it on its slice"),
        (UNSPIN_ON_YIELD, UNSPIN_LEND) => Some("lent to it"),
        (UNSPIN_ON_SLICE_END, UNSPIN_GRANT) => Some("gone on itself"),
        _ => None,
    }
}

fn add_choices(document: &mut Document, answers: &[DryAnswer]) {
    let mut choices: Vec<(&DryAnswer, &'static str)> = answers
        .iter()
        .filter_map(|answer| Some((answer, choice(answer)?)))
        .collect();
    choices.sort_by_key(|(answer, _)| std::cmp::Reverse(answer.count));
    let shown = choices.iter().take(CHOICES_MAX);
    let rows = shown.map(|(answer, words)| ChoiceRow {
        process: answer.process,
        vm: answer.vm,
        vcpu: answer.vcpu,
        thread: answer.thread,
        answer: words,
        chosen_vcpu: answer.candidate.map(|(vcpu, _)| vcpu),
        chosen_thread: answer.candidate.map(|(_, thread)| thread),
        times: answer.count,
    });
    document.table(Table::of("Who would have been chosen", rows));
    if let Some(rest) = choices.get(CHOICES_MAX..).filter(|rest| !rest.is_empty()) {
        let times: u64 = rest.iter().map(|(answer, _)| answer.count).sum();
        document.note(format!(
            "{} more choices, {times} times in all, are not shown",
            rest.len()
        ));
    }
}

fn add_notes(document: &mut Document, chosen: &ChosenPolicies, sees_yields: bool) {
    if !sees_yields {
        document.note(
            "This kernel lets nobody hook its functions (CONFIG_FPROBE): yields were not seen.",
        );
    }
    document.note(format!(
        "Policy {chosen}. The host's own scheduler has decided all the same: had the policy been in charge, other yields would \
         have followed."
    ));
    document.note(
        "Nothing was lent or granted, so nobody was asked when to end that (on_poll); guests' asks for help were not looked into.",
    );
}
