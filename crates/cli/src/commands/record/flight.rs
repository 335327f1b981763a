// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin record --keep`: a flight recorder.

use std::{
    io,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

use signal_hook::{consts::SIGUSR1, flag};
use unspin_agent::{
    EventMask, Until,
    record::{
        About,
        flight::{self, Desk, News, Triggers, rows},
    },
    shell_status,
};
use unspin_recording::{Ended, ring::RingOptions};
use unspin_report::{Document, Table};
use unspin_watch::OwnCost;

use crate::{
    commands::record::{
        args::RecordArguments,
        flight_args::{FlightArguments, Trigger},
        tables,
    },
    terminal::{command, failure::Failure, output, progress::Activity},
};

/// How often a terminal is told how it does, and how often `--json` is.
const TELL_INTERVAL: Duration = Duration::from_secs(1);
const JSON_INTERVAL: Duration = Duration::from_secs(10);
/// Where the kernel's messages are.
const KERNEL_MESSAGES: &str = "/dev/kmsg";

/// Records until its time is over, the command has ended, or Ctrl-C, and prints what is there.
pub fn run(
    arguments: &RecordArguments,
    keep: Duration,
    events: EventMask,
    about: About,
    mut until: Until,
) -> Result<ExitCode, Failure> {
    let begin = Instant::now();
    let options = options(&arguments.flight, keep);
    let triggers = triggers(&arguments.flight.triggers)?;
    let mut flight = flight::start(&arguments.folder, events, about, options, triggers)?;
    if let Err(failure) = command::start(&arguments.command, arguments.output.json, &mut until) {
        flight.stream.finish(Ended::Failed);
        return Err(failure);
    }
    let desk = Arc::clone(flight.desk());
    let since = OwnCost::now();
    let mut teller = Teller::new(arguments, since);
    let ended = flight.watch(&mut until, &mut |desk| teller.tell(desk));
    // Whatever ended it, what is there is closed.
    let streamed = flight
        .stream
        .finish(*ended.as_ref().unwrap_or(&Ended::Failed));
    let told = teller.finish(&desk);
    let status = until.finish_or_terminate()?;
    ended?;
    told?;
    let mut document = output::document("record");
    document.table(ring_table(&arguments.folder, &desk, since));
    tables(&mut document, &arguments.folder, &streamed, begin.elapsed());
    output::print_beside(
        &document,
        arguments.output,
        !arguments.command.is_empty() && !arguments.output.json,
    )?;
    let error = streamed.error.or(streamed.summary.err().map(Into::into));
    if let Some(error) = error {
        return Err(Failure::Failed(anyhow::Error::from(error).context(
            "the flight recorder ended early; what was written before can be read",
        )));
    }
    Ok(status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(shell_status(status))
    }))
}

fn options(arguments: &FlightArguments, keep: Duration) -> RingOptions {
    let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    RingOptions {
        before_ns: ns(arguments.keep_before),
        after_ns: ns(arguments.keep_after),
        spans_max: arguments.max_kept,
        ..RingOptions::new(ns(keep), arguments.max_bytes)
    }
}

/// Of several spin shares the lowest counts.
fn triggers(wanted: &[Trigger]) -> io::Result<Triggers> {
    let mut triggers = Triggers::default();
    for trigger in wanted {
        match *trigger {
            Trigger::SpinShare(percent) => {
                let lowest = triggers.spin_share_percent.unwrap_or(percent).min(percent);
                triggers.spin_share_percent = Some(lowest);
            }
            Trigger::Signal if triggers.signal.is_none() => {
                let flag = Arc::new(AtomicBool::new(false));
                flag::register(SIGUSR1, Arc::clone(&flag))?;
                triggers.signal = Some(flag);
            }
            Trigger::Signal => {}
            Trigger::SoftLockup => triggers.soft_lockup = Some(PathBuf::from(KERNEL_MESSAGES)),
        }
    }
    Ok(triggers)
}

/// `since`: what this process had taken before it recorded anything.
fn ring_table(folder: &Path, desk: &Desk, since: OwnCost) -> Table {
    let cpu_seconds = OwnCost::now().cpu_seconds - since.cpu_seconds;
    let own_cpu_ns = (cpu_seconds * 1e9) as u64;
    Table::of("", [rows::ring(folder, &desk.status(), own_cpu_ns)])
}

/// Says how it does: a line that changes on a terminal, a JSON object a line with `--json`, news on standard error.
struct Teller<'arguments> {
    arguments: &'arguments RecordArguments,
    activity: Activity,
    since: OwnCost,
    told: Instant,
    error: Option<io::Error>,
}

impl Teller<'_> {
    fn new(arguments: &RecordArguments, since: OwnCost) -> Teller<'_> {
        Teller {
            arguments,
            activity: Activity::start("recording"),
            since,
            told: Instant::now(),
            error: None,
        }
    }

    fn tell(&mut self, desk: &Desk) {
        let news = desk.news();
        let mut document = output::document("record");
        for news in &news {
            self.activity
                .done(&format!("unspin: {}", rows::words(news)));
        }
        let triggers: Vec<_> = news.iter().filter_map(rows::trigger).collect();
        let json = self.arguments.output.json;
        let interval = if json { JSON_INTERVAL } else { TELL_INTERVAL };
        let is_due = self.told.elapsed() >= interval;
        let is_worth_it = is_due || !triggers.is_empty() || news.iter().any(is_trouble);
        if is_due {
            self.told = Instant::now();
            self.activity.say(&line(desk));
        }
        if !json || !is_worth_it {
            return;
        }
        document.table(ring_table(&self.arguments.folder, desk, self.since));
        if !triggers.is_empty() {
            document.table(Table::of("Triggers", triggers));
        }
        self.print(&document);
    }

    fn print(&mut self, document: &Document) {
        if let Err(error) = output::print(document, self.arguments.output) {
            // Who reads may have gone; what is recorded goes on, and it is told at the end.
            self.error.get_or_insert(error);
        }
    }

    fn finish(mut self, desk: &Desk) -> io::Result<()> {
        self.tell(desk);
        self.error.map_or(Ok(()), Err)
    }
}

fn is_trouble(news: &News) -> bool {
    matches!(news, News::DiskFull { .. })
}

fn line(desk: &Desk) -> String {
    let status = desk.status();
    let (extent, counts) = (&status.extent, &status.counts);
    let keeping = if status.is_keeping { ", keeping" } else { "" };
    format!(
        "flight recorder: {:.0} s, {:.1} MB, {} events; {} kept{keeping}",
        extent.span_ns as f64 / 1e9,
        extent.bytes as f64 / 1e6,
        extent.events,
        counts.spans
    )
}
