// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin serve`: what this host's VMs run, wait, halt and spin, as OpenMetrics over HTTP, and for `unspin top`.

pub(crate) mod args;

use std::{path::Path, process::ExitCode, sync::Arc, time::Duration};

use anyhow::Context;
use args::{ServeArguments, ServeSettings};
use unspin_agent::{Until, shell_status};
use unspin_config::Configuration;
use unspin_watch::{
    HostView, Live, LiveOptions, OwnCost,
    http::{HttpServer, Pages},
    metrics::{self, Format},
    recording,
    socket::SocketServer,
};

use crate::terminal::{command, failure::Failure, interrupt, service_manager::ServiceManager};

/// The counters may be read so late, beyond three intervals, before the service manager is no longer told that all is well: to attach
/// to a host that has just got KVM takes seconds.
const LATE_AT_MOST: Duration = Duration::from_secs(30);

/// Serves until it is interrupted, its time is over or the command has ended.
pub fn run(arguments: &ServeArguments) -> Result<ExitCode, Failure> {
    let configuration = Configuration::load(arguments.config.as_deref())?;
    let settings = ServeSettings::of(arguments, &configuration.config.serve);
    let until = Until::new(interrupt::flag()?, arguments.duration);
    let source = Arc::new(Source::open(arguments, &settings)?);
    let pages = Arc::new(Served {
        source: Arc::clone(&source),
        vms_max: settings.vms_max,
    });
    let http = HttpServer::start(settings.listen, pages)
        .with_context(|| format!("{}: nobody can listen there", settings.listen))?;
    let asked = Arc::clone(&source);
    let socket = match settings.socket.as_path() {
        nowhere if nowhere == Path::new("-") => None,
        path => Some(SocketServer::start(path, move || asked.view())?),
    };
    say_where(&settings, &http, socket.is_some(), &source);
    let mut manager = ServiceManager::here();
    manager.ready(&format!("metrics at http://{}/metrics", http.address()));
    let late = settings.interval * 3 + LATE_AT_MOST;
    let mut until = until.with_beat(move || {
        if source.since_reading() < late {
            manager.alive();
        }
    });
    command::start(&arguments.command, false, &mut until)?;
    while until.poll()?.is_none() {}
    ServiceManager::here().stopping("detaching");
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
    fn open(arguments: &ServeArguments, settings: &ServeSettings) -> Result<Source, Failure> {
        if let Some(folder) = &arguments.recording {
            return Ok(Source::Recording(Box::new(recording::view(folder)?)));
        }
        let every = settings.burst_every;
        Ok(Source::Live(Live::start(LiveOptions {
            interval: settings.interval,
            burst_every: (!every.is_zero()).then_some(every),
            burst_length: settings.burst_length,
        })?))
    }

    /// For how long nobody has tried to read the counters.
    fn since_reading(&self) -> Duration {
        match self {
            Source::Live(live) => live.since_reading(),
            Source::Recording(_) => Duration::ZERO,
        }
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

fn say_where(settings: &ServeSettings, http: &HttpServer, socket: bool, source: &Source) {
    let address = http.address();
    eprintln!("unspin: metrics at http://{address}/metrics, health at http://{address}/health");
    if socket {
        eprintln!("unspin: `unspin top` asks at {}", settings.socket.display());
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
