// SPDX-License-Identifier: MIT OR Apache-2.0
//! A dry run for a while: every decision is taken and none acted upon.

use std::process::ExitStatus;

use unspin_policy::steering::{
    DecisionFile, UNSPIN_DIRECT, UNSPIN_GRANT, UNSPIN_LEND, UNSPIN_ON_SLICE_END, UNSPIN_ON_YIELD,
    UNSPIN_REFUSE,
};

use unspin_report::row;

use super::{Notice, SteerRequest, SteerRunError, start, write_decisions};
use crate::{DryAnswer, DryLosses, DryRun, Until};

/// Choices that are rows; the rest is a sum.
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
    pub struct DryCounterRow {
        /// Its name.
        pub counter: &'static str = ("counter", Text),
        /// What it has counted; null where the kernel does not let yields be seen.
        pub value: Option<u64> = ("since attach", Count),
        /// What it counts.
        pub says: &'static str = ("what it counts", Text),
    }
}

row! {
    "choices", ["steer"];
    /// Whom a policy would have chosen for a vCPU (`steer --dry-run`), the most frequent first, 20 at most.
    pub struct DryChoiceRow {
        /// The VM's process.
        pub process: u32 = ("process", Text),
        /// What its manager calls the VM, else its program's name; null: it has ended.
        pub name: Option<String> = ("name", Text),
        /// The VM's number, as the kernel numbers them.
        pub vm: u32 = ("VM", Text),
        /// The vCPU that yielded, or lost its CPU.
        pub vcpu: u32 = ("vCPU", Text),
        /// Its thread.
        pub thread: u32 = ("thread", Text),
        /// What would have been done.
        pub answer: &'static str = ("would have", Text),
        /// The chosen vCPU; null: itself.
        pub chosen_vcpu: Option<u32> = ("chosen vCPU", Text),
        /// The chosen vCPU's thread.
        pub chosen_thread: Option<u32> = ("its thread", Text),
        /// How often.
        pub times: u64 = ("times", Count),
    }
}

/// What was seen.
pub struct DryFigures {
    /// Every answer, and how often it was given.
    pub answers: Vec<DryAnswer>,
    /// Whether this kernel lets yields be seen.
    pub sees_yields: bool,
    /// Pv pages registered.
    pub pv_pages: u64,
    /// What was lost.
    pub losses: DryLosses,
    /// The command's, if there was one.
    pub status: Option<ExitStatus>,
}

/// As [`super::steer`], with nothing attached to the scheduler; windows are not asked for.
///
/// # Errors
/// As [`super::steer`].
pub fn dry_run(
    request: SteerRequest,
    mut until: Until,
    notice: &mut dyn FnMut(Notice),
) -> Result<DryFigures, SteerRunError> {
    let mut log = request
        .log
        .as_deref()
        .map(DecisionFile::create)
        .transpose()?;
    let dry_run = DryRun::attach(&request.options)?;
    notice(Notice::DryRun {
        slice_ns: dry_run.slice_ns(),
    });
    start(&mut until, request.command)?;
    loop {
        let over = until.poll()?;
        write_decisions(log.as_mut(), |each| dry_run.drain_decisions(each))?;
        if over.is_some() {
            break;
        }
    }
    let answers = dry_run.answers()?;
    let sees_yields = dry_run.sees_yields();
    let (pv_pages, losses) = dry_run.losses()?;
    // Nothing is decided any more, but what was is still to be written.
    write_decisions(log.as_mut(), |each| dry_run.drain_decisions(each))?;
    drop(dry_run);
    log.map(DecisionFile::finish).transpose()?;
    Ok(DryFigures {
        answers,
        sees_yields,
        pv_pages,
        losses,
        status: until.finish()?,
    })
}

impl DryFigures {
    fn sum(&self, which: impl Fn(&DryAnswer) -> bool) -> u64 {
        let answers = self.answers.iter().filter(|it| which(it));
        answers.map(|it| it.count).sum()
    }

    /// What would have been decided, and what was lost.
    pub fn counters(&self) -> impl Iterator<Item = DryCounterRow> {
        let of =
            |event, action| self.sum(|it| it.event == event && it.action == action && it.asked);
        let yields = |asked| self.sum(|it| it.event == UNSPIN_ON_YIELD && it.asked == asked);
        let slice_ends = self.sum(|it| it.event == UNSPIN_ON_SLICE_END);
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
            ("pv_pages", self.pv_pages, "pv pages registered"),
            (
                "pv_page_failures",
                self.losses.pv_page_failures,
                "pv pages that could not be read",
            ),
            (
                "unlogged",
                self.losses.unlogged,
                "decisions that found no room in the log",
            ),
            (
                "uncounted",
                self.losses.answers,
                "decisions that found no room in these tables",
            ),
            (
                "unfollowed",
                self.losses.threads,
                "entries into guests by threads for which there was no room",
            ),
            (
                "missed_runs",
                self.losses.missed_runs,
                "runs of the programs that did not take place",
            ),
        ];
        let sees_yields = self.sees_yields;
        rows.into_iter()
            .map(move |(counter, value, says)| DryCounterRow {
                counter,
                value: Some(value).filter(|_| sees_yields || !OF_YIELDS.contains(&counter)),
                says,
            })
    }

    /// Who would have been chosen: the 20 most frequent choices; how many more there are, and how often these came, if any.
    pub fn choices(&self) -> (Vec<DryChoiceRow>, Option<(usize, u64)>) {
        let mut choices: Vec<(&DryAnswer, &'static str)> = self
            .answers
            .iter()
            .filter_map(|answer| Some((answer, choice(answer)?)))
            .collect();
        choices.sort_by_key(|(answer, _)| std::cmp::Reverse(answer.count));
        let shown = choices.iter().take(CHOICES_MAX);
        let rows = shown.map(|(answer, words)| DryChoiceRow {
            process: answer.process,
            name: unspin_vms::name_of(answer.process),
            vm: answer.vm,
            vcpu: answer.vcpu,
            thread: answer.thread,
            answer: words,
            chosen_vcpu: answer.candidate.map(|(vcpu, _)| vcpu),
            chosen_thread: answer.candidate.map(|(_, thread)| thread),
            times: answer.count,
        });
        let rest = choices.get(CHOICES_MAX..).filter(|rest| !rest.is_empty());
        let rest = rest.map(|rest| {
            let times = rest.iter().map(|(answer, _)| answer.count).sum();
            (rest.len(), times)
        });
        (rows.collect(), rest)
    }
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
