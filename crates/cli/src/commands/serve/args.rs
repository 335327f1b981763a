// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin serve` takes.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;

use crate::terminal::options::{parse_limit, parse_time};

/// `unspin serve`
#[derive(Args, Debug)]
pub struct ServeArguments {
    /// Where to serve metrics. Any other address than 127.0.0.1 or ::1 shows the names of VMs and what they do to whoever reaches
    /// it, and is warned of: there is neither a password nor TLS.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9752")]
    pub listen: SocketAddr,
    /// Where `unspin top` asks; `-`: nowhere. Every user of this host may.
    #[arg(long, value_name = "PATH", default_value = unspin_watch::socket::SOCKET_PATH)]
    pub socket: PathBuf,
    /// Serve what this recording ends with, in place of this host.
    #[arg(long, value_name = "FOLDER")]
    pub recording: Option<PathBuf>,
    /// How often counters are read.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_limit)]
    pub interval: Duration,
    /// How often a burst of events is sampled, which says for whom VMs spin; 0s: never. Nothing is sampled while VMs waste less than
    /// 0.5 % of their CPU time.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    pub burst_every: Duration,
    /// How long a burst lasts; it ends early when it has 100,000 events.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_limit)]
    pub burst_length: Duration,
    /// Series are shown of so many VMs, the oldest; the others are counted in unspin_vms_hidden.
    #[arg(long, value_name = "NUMBER", default_value_t = unspin_watch::metrics::VMS_MAX)]
    pub vms_max: usize,
    /// For how long; until Ctrl-C, SIGTERM, or the end of the command when absent.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub duration: Option<Duration>,
    /// A command to run meanwhile; its exit status is passed on. `unspin` is this binary.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}
