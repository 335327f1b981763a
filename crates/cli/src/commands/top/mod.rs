// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin top`: VMs by the CPU time that they waste by spinning, their vCPUs, and for whom they spin.

pub(crate) mod args;

use std::{
    io::{self, IsTerminal},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use args::TopArguments;
use unspin_agent::{Until, shell_status};
use unspin_report::{Document, Table};
use unspin_watch::{
    HostView, Live, LiveOptions, ViewSource,
    rates::{HostRates, between},
    rows, screen,
    socket::{self, SocketError},
};

use crate::terminal::{command, failure::Failure, interrupt, output};

/// How often it is looked at whether there are new figures.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How much longer than an interval figures may take to come.
const SERVE_PATIENCE: Duration = Duration::from_secs(30);
/// How often a burst is sampled while `top` watches by itself: somebody looks.
const BURST_EVERY: Duration = Duration::from_secs(5);

/// Shows the host.
pub fn run(arguments: &TopArguments) -> Result<ExitCode, Failure> {
    if arguments.output.json && !arguments.once {
        return Err(Failure::Usage("--json is for --once".to_owned()));
    }
    if arguments.once {
        return once(arguments);
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::Usage(
            "standard output is no terminal: --once prints a table, with --json for programs"
                .to_owned(),
        ));
    }
    let flag = interrupt::flag()?;
    let host = Host::open(arguments)?;
    screen::run(arguments.interval, &flag, || host.view())?;
    Ok(ExitCode::SUCCESS)
}

/// Where views come from.
enum Host {
    Served(std::path::PathBuf),
    Own(Live),
}

impl Host {
    fn open(arguments: &TopArguments) -> Result<Host, Failure> {
        if arguments.own {
            return Host::own(arguments);
        }
        match socket::ask(&arguments.socket) {
            Ok(_) => Ok(Host::Served(arguments.socket.clone())),
            Err(SocketError::Connect { .. }) if is_root() => Host::own(arguments),
            Err(error @ SocketError::Connect { .. }) => Err(anyhow::Error::from(error)
                .context("start `unspin serve`, or run this as root")
                .into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Fails where the host cannot be watched: a screen without figures is of no use.
    fn own(arguments: &TopArguments) -> Result<Host, Failure> {
        let every = match arguments.once {
            true => arguments.interval / 2,
            false => BURST_EVERY,
        };
        let live = Live::start(LiveOptions {
            interval: arguments.interval.min(Duration::from_secs(1)) / 4,
            burst_every: Some(every),
            burst_length: (arguments.interval / 4).min(LiveOptions::default().burst_length),
        })?;
        match live.view().blind {
            Some(why) => Err(anyhow::anyhow!("this host cannot be watched: {why}").into()),
            None => Ok(Host::Own(live)),
        }
    }

    fn view(&self) -> Result<HostView, Failure> {
        match self {
            Host::Served(path) => Ok(socket::ask(path)?),
            Host::Own(live) => Ok(live.view()),
        }
    }
}

fn is_root() -> bool {
    // SAFETY: it only tells a number.
    unsafe { libc::geteuid() == 0 }
}

fn once(arguments: &TopArguments) -> Result<ExitCode, Failure> {
    let mut until = Until::new(interrupt::flag()?, None);
    let host = Host::open(arguments)?;
    command::start(&arguments.command, arguments.output.json, &mut until)?;
    let rates = match arguments.command.is_empty() {
        true => one_interval(arguments, &host, &mut until)?,
        false => last_interval(arguments, &host, &mut until)?,
    };
    drop(host);
    let status = until.finish_or_terminate()?;
    let mut document = output::document("top");
    add(&mut document, &rates);
    let beside = !arguments.command.is_empty() && !arguments.output.json;
    output::print_beside(&document, arguments.output, beside)?;
    Ok(status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(shell_status(status))
    }))
}

/// From a view to the first one that is an interval later, by its own clock: `serve` reads when it likes.
fn one_interval(
    arguments: &TopArguments,
    host: &Host,
    until: &mut Until,
) -> Result<HostRates, Failure> {
    let earlier = host.view()?;
    let began = Instant::now();
    if earlier.source == ViewSource::Recording {
        return Ok(between(&earlier, &earlier));
    }
    loop {
        if until.over()?.is_some() {
            return Err(Failure::Interrupted);
        }
        if began.elapsed() > arguments.interval + SERVE_PATIENCE {
            return Err(anyhow::anyhow!(
                "no new figures came: `unspin serve` reads them more rarely, see its --interval"
            )
            .into());
        }
        thread::sleep(POLL_INTERVAL.min(arguments.interval));
        // Asked no more often than it may have changed.
        if began.elapsed() < arguments.interval {
            continue;
        }
        let later = host.view()?;
        let passed_ns = later.time_ns.saturating_sub(earlier.time_ns);
        // Of a host that nobody watches the time stands still.
        if Duration::from_nanos(passed_ns) >= arguments.interval * 9 / 10 || later.blind.is_some() {
            return Ok(between(&earlier, &later));
        }
    }
}

/// Of the last whole interval in which the command's VMs were there: they are gone when it has ended.
fn last_interval(
    arguments: &TopArguments,
    host: &Host,
    until: &mut Until,
) -> Result<HostRates, Failure> {
    let mut earlier = host.view()?;
    let mut best = HostRates::default();
    let mut began = Instant::now();
    while until.poll()?.is_none() {
        if began.elapsed() < arguments.interval {
            continue;
        }
        began = Instant::now();
        let later = host.view()?;
        if later.time_ns == earlier.time_ns {
            continue;
        }
        let rates = between(&earlier, &later);
        // Threads that have just come, or are going, have not run all the time.
        if threads(&rates) >= threads(&best) {
            best = rates;
        }
        earlier = later;
    }
    Ok(best)
}

fn threads(rates: &HostRates) -> usize {
    rates.vms.iter().map(|vm| vm.vcpus.len()).sum()
}

fn add(document: &mut Document, rates: &HostRates) {
    document.table(Table::of(
        "VMs by the CPU time that they waste by spinning",
        rows::vms(rates),
    ));
    document.table(Table::of("vCPUs", rows::vcpus(rates)));
    let blame = rows::blame(rates);
    if !blame.is_empty() {
        document.table(Table::of(
            "Sampled: for whom, and who ran on the CPU that it had left",
            blame,
        ));
        document.note(
            "Causes are judged from the host's events alone: where a guest's lock shows no order, `contention` may hide preempted waiters.",
        );
    }
    if rates.vms.is_empty() {
        document.note("No VM has run since the host is watched.");
    }
    let health = &rates.health;
    if health.failed_bursts > 0 {
        let why = health
            .last_error
            .as_deref()
            .unwrap_or("for no known reason");
        document.note(format!(
            "{} of {} sampled bursts failed: {why}",
            health.failed_bursts,
            health.bursts + health.failed_bursts
        ));
    }
    for limit in rates.blind.iter().chain(&rates.limits) {
        document.note(limit.clone());
    }
}
