// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin serve` takes.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::Args;
use unspin_config::ServeConfig;

use crate::terminal::options::{parse_limit, parse_time};

/// `unspin serve`
#[derive(Args, Debug)]
pub struct ServeArguments {
    /// Where options come from that this command line does not have, table [serve]; /etc/unspin/unspin.toml when absent, if it is
    /// there (/dev/null: none).
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where to serve metrics. Any other address than 127.0.0.1 or ::1 shows the names of VMs and what they do to whoever reaches
    /// it, and is warned of: there is neither a password nor TLS. 127.0.0.1:9752 when absent.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Option<SocketAddr>,
    /// Where `unspin top` asks; `-`: nowhere. Every user of this host may. /run/unspin/watch.sock when absent.
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Serve what this recording ends with, in place of this host.
    #[arg(long, value_name = "FOLDER")]
    pub recording: Option<PathBuf>,
    /// How often counters are read; 2s when absent.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub interval: Option<Duration>,
    /// How often a burst of events is sampled, which says for whom VMs spin; 0s: never. Nothing is sampled while VMs waste less than
    /// 0.5 % of their CPU time. 60s when absent.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub burst_every: Option<Duration>,
    /// How long a burst lasts, 1s when absent; it ends early when it has 100,000 events.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub burst_length: Option<Duration>,
    /// Series are shown of so many VMs, the oldest, 1000 when absent; the others are counted in unspin_vms_hidden.
    #[arg(long, value_name = "NUMBER")]
    pub vms_max: Option<usize>,
    /// For how long; until Ctrl-C, SIGTERM, or the end of the command when absent.
    #[arg(long, value_name = "TIME", value_parser = parse_limit)]
    pub duration: Option<Duration>,
    /// A command to run meanwhile; its exit status is passed on. `unspin` is this binary.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// What is in force: the command line, else the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServeSettings {
    /// [`ServeArguments::listen`].
    pub listen: SocketAddr,
    /// [`ServeArguments::socket`].
    pub socket: PathBuf,
    /// [`ServeArguments::interval`].
    pub interval: Duration,
    /// [`ServeArguments::burst_every`].
    pub burst_every: Duration,
    /// [`ServeArguments::burst_length`].
    pub burst_length: Duration,
    /// [`ServeArguments::vms_max`].
    pub vms_max: usize,
}

impl ServeSettings {
    /// See above.
    pub fn of(arguments: &ServeArguments, config: &ServeConfig) -> ServeSettings {
        let socket = arguments.socket.clone();
        ServeSettings {
            listen: arguments.listen.unwrap_or(config.listen.value),
            socket: socket.unwrap_or_else(|| config.socket.value.0.clone()),
            interval: arguments.interval.unwrap_or(config.interval.value.0),
            burst_every: arguments.burst_every.unwrap_or(config.burst_every.value.0),
            burst_length: arguments
                .burst_length
                .unwrap_or(config.burst_length.value.0),
            vms_max: arguments.vms_max.unwrap_or(config.vms_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArguments,
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let config: ServeConfig =
            toml::from_str("interval = '7s'\nvms_max = 3\n").expect("a configuration");
        let line = Line::parse_from(["serve", "--interval", "3s", "--socket", "-"]);
        let settings = ServeSettings::of(&line.serve, &config);
        let defaults = ServeConfig::default();
        assert_eq!(
            settings,
            ServeSettings {
                listen: defaults.listen.value,
                socket: "-".into(),
                interval: Duration::from_secs(3),
                burst_every: defaults.burst_every.value.0,
                burst_length: defaults.burst_length.value.0,
                vms_max: 3,
            }
        );
    }

    /// The defaults are those of the configuration; help repeats them.
    #[test]
    fn help_says_the_defaults() {
        let defaults = serde_json::to_value(ServeConfig::default()).expect("plain values");
        for (key, default) in defaults.as_object().expect("keys") {
            let command = Line::command();
            let mut arguments = command.get_arguments();
            let argument = arguments.find(|argument| argument.get_id() == key.as_str());
            let argument = argument.unwrap_or_else(|| panic!("no option --{key}"));
            let help = argument.get_long_help().or(argument.get_help());
            let help = help.expect("help").to_string();
            let shown = default.as_str().map_or(default.to_string(), str::to_owned);
            assert!(
                help.contains(&format!("{shown} when absent")),
                "{key}: {help}"
            );
        }
    }
}
