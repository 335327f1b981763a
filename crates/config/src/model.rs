// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is in the configuration file: a table for each command that reads it, a key for each of its options, called as the
//! option with `_` for `-`.

use std::net::SocketAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unspin_agent::{DisclosureChoice, PolicyChoice, steer::vm_choice::VmChoice};

use crate::value::{FromRoot, Limit, ModulePath, SocketPath, Text, Time};

/// The file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `unspin serve`, and the service unspin-watch.
    #[schemars(with = "ServeConfig")]
    pub serve: ServeConfig,
    /// `unspin steer`, and the service unspin-steer.
    #[schemars(with = "SteerConfig")]
    pub steer: SteerConfig,
}

/// `[serve]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServeConfig {
    /// Where metrics are served. Any other address than 127.0.0.1 or ::1 shows the names of VMs and what they do to whoever reaches
    /// it: there is neither a password nor TLS.
    pub listen: Text<SocketAddr>,
    /// Where `unspin top` asks; "-": nowhere.
    pub socket: Text<SocketPath>,
    /// How often counters are read.
    pub interval: Text<Limit>,
    /// How often a burst of events is sampled, which says for whom VMs spin; "0s": never.
    pub burst_every: Text<Time>,
    /// How long a burst lasts at most.
    pub burst_length: Text<Limit>,
    /// Series are shown of so many VMs, the oldest.
    #[schemars(title = "a whole number")]
    pub vms_max: usize,
}

/// `[steer]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SteerConfig {
    /// What decides: "auto", which gives each VM by trial what is best for it, or policies of `unspin policy list` with commas
    /// between.
    pub policy: Text<PolicyChoice>,
    /// Schedule VMs only; everything else stays with the kernel's scheduler.
    pub only_vms: bool,
    /// Attach nothing: only count what would have been decided. Needs a policy other than auto.
    pub dry_run: bool,
    /// VMs that policies touch, and no others; "VM=POLICY": that one has this policy in place of `policy`. They must run when steer
    /// starts. Empty: all VMs.
    #[schemars(example = ["web-3", "db-1=loan-cpl"])]
    pub vm: Vec<Text<VmChoice>>,
    /// Cgroups in which, and below which, policies touch vCPUs, and no others.
    #[schemars(example = ["/sys/fs/cgroup/machine.slice"])]
    pub cgroup: Vec<Text<FromRoot>>,
    /// How much guests are told in their pv pages.
    #[schemars(example = ["nothing", "all=web-3"])]
    pub disclose: Vec<Text<DisclosureChoice>>,
    /// The kernel module that sets pause-loop windows, where it is not installed; "none": set no windows.
    #[schemars(example = &"none")]
    pub ple_module: Option<Text<ModulePath>>,
    /// The guests' symbols, by which vCPUs in critical sections are known (AMD only).
    #[schemars(example = &"/etc/unspin/System.map")]
    pub sections: Option<Text<FromRoot>>,
}

impl Default for ServeConfig {
    fn default() -> ServeConfig {
        ServeConfig {
            listen: Text::known("127.0.0.1:9752"),
            socket: Text::known(unspin_watch::socket::SOCKET_PATH),
            interval: Text::known("2s"),
            burst_every: Text::known("60s"),
            burst_length: Text::known("1s"),
            vms_max: unspin_watch::metrics::VMS_MAX,
        }
    }
}

impl Default for SteerConfig {
    fn default() -> SteerConfig {
        SteerConfig {
            policy: Text::known("auto"),
            only_vms: false,
            dry_run: false,
            vm: Vec::new(),
            cgroup: Vec::new(),
            disclose: Vec::new(),
            ple_module: None,
            sections: None,
        }
    }
}
