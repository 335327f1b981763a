// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin serve`: what this host's VMs run, wait, halt and spin, as OpenMetrics over HTTP, and for `unspin top`.

pub(crate) mod args;

use std::{path::Path, process::ExitCode, sync::Arc};

use anyhow::Context;
use args::ServeArguments;
use unspin_agent::{Until, shell_status};
use unspin_watch::{
    HostView, Live, LiveOptions, OwnCost,
    http::{HttpServer, Pages},
    metrics::{self, Format},
    recording,
    socket::SocketServer,
};

use crate::terminal::{command, failure::Failure, interrupt};

/// Serves until it is interrupted, its time is over or the command has ended.
pub fn run(arguments: &ServeArguments) -> Result<ExitCode, Failure> {
    let mut until = Until::new(interrupt::flag()?, arguments.duration);
    let source = Arc::new(Source::open(arguments)?);
    let pages = Arc::new(Served {
        source: Arc::clone(&source),
        vms_max: arguments.vms_max,
    });
    let http = HttpServer::start(arguments.listen, pages)
        .with_context(|| format!("{}: nobody can listen there", arguments.listen))?;
    let asked = Arc::clone(&source);
    let socket = match arguments.socket.as_path() {
        nowhere if nowhere == Path::new("-") => None,
        path => Some(SocketServer::start(path, move || asked.view())?),
    };
    say_where(arguments, &http, socket.is_some(), &source);
    command::start(&arguments.command, false, &mut until)?;
    while until.poll()?.is_none() {}
    drop((http, socket));
    let status = until.finish_or_terminate()?;
    Ok(status.map_or(ExitCode::SUCCESS, |status| {
        ExitCode::from(shell_status(status))
    }))
}

/// Where what is served comes from.
enum Source {
    Live(Live),
    Recording(Box<HostView>),
}

impl Source {
    fn open(arguments: &ServeArguments) -> Result<Source, Failure> {
        if let Some(folder) = &arguments.recording {
            return Ok(Source::Recording(Box::new(recording::view(folder)?)));
        }
        let every = arguments.burst_every;
        Ok(Source::Live(Live::start(LiveOptions {
            interval: arguments.interval,
            burst_every: (!every.is_zero()).then_some(every),
            burst_length: arguments.burst_length,
        })?))
    }

    fn view(&self) -> HostView {
        match self {
            Source::Live(live) => live.view(),
            Source::Recording(view) => (**view).clone(),
        }
    }
}

struct Served {
    source: Arc<Source>,
    vms_max: usize,
}

impl Pages for Served {
    fn metrics(&self, accept: &str) -> (String, &'static str) {
        let format = Format::accepted(accept);
        let view = self.source.view();
        let text = metrics::text(&view, &OwnCost::now(), self.vms_max, format);
        (text, format.content_type())
    }

    fn trouble(&self) -> Option<String> {
        self.source.view().blind
    }
}

fn say_where(arguments: &ServeArguments, http: &HttpServer, socket: bool, source: &Source) {
    let address = http.address();
    eprintln!("unspin: metrics at http://{address}/metrics, health at http://{address}/health");
    if socket {
        eprintln!(
            "unspin: `unspin top` asks at {}",
            arguments.socket.display()
        );
    }
    if !address.ip().is_loopback() {
        eprintln!(
            "unspin: warning: {address} may be reached from other machines: whoever does sees the names of VMs and what they do"
        );
    }
    let view = source.view();
    for limit in &view.limits {
        eprintln!("unspin: warning: {limit}");
    }
    if let Some(why) = view.blind {
        eprintln!("unspin: warning: this host is not watched: {why}. It is tried again every 10 s");
    }
}
