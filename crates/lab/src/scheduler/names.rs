// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host schedulers by their names on command lines: `cfs-5.6`, `eevdf-7.2+lag-credit`, `credit`, ...

use super::HostScheduler;
use super::credit::Credit;
use super::fair::Fair;
use super::fair::rules::{Options, Tunables, Version};
use super::gang::{Gang, SLOT_NS};
use super::steer::Steer;
use crate::topology::Topology;
use std::ops::RangeInclusive;
use thiserror::Error;
use unspin_policy::Deboost;

/// The kernel's default tick frequency (kernel/Kconfig.hz), also that of Debian and Ubuntu.
const TICK_HZ: u64 = 250;

/// The known names, for messages.
const OPTIONS: &str = "+balance, +debooster=paper, +debooster=ancestor, +lag-credit and +hz=N (100 to 1000) for cfs \
    and eevdf, +slot-ms=N (1 to 1000) for gang";

/// Prefixes of options.
const KNOWN_KEYS: [&str; 5] = ["balance", "debooster", "lag-credit", "hz", "slot-ms"];

/// An unknown name, or options that a scheduler cannot have.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// There is no scheduler of that name.
    #[error("there is no host scheduler \"{name}\"; known are {}, with options {OPTIONS}", known_names().join(", "))]
    Scheduler {
        /// The name that was given.
        name: String,
    },
    /// There is no option of that name.
    #[error("there is no option \"+{option}\" of host schedulers; known are {OPTIONS}")]
    Option {
        /// The option that was given.
        option: String,
    },
    /// The scheduler cannot have this option.
    #[error("\"+{option}\" does not work with {scheduler}: {reason}")]
    Mismatch {
        /// The scheduler.
        scheduler: String,
        /// The option.
        option: String,
        /// The reason.
        reason: &'static str,
    },
}

/// The names of the schedulers, without options.
pub fn known_names() -> Vec<&'static str> {
    Version::ALL
        .iter()
        .map(|(name, _)| *name)
        .chain(["credit", "gang", "steer"])
        .collect()
}

/// The scheduler of that name, with its options after plus signs: "cfs-4.13+debooster=paper". `seed`: for schedulers
/// that use random numbers; none does so far.
///
/// # Errors
/// An unknown name or option, or an option that the scheduler cannot have: the message lists the known ones.
pub fn from_name(
    name: &str,
    topology: Topology,
    _seed: u64,
) -> Result<Box<dyn HostScheduler>, NameError> {
    let mut parts = name.split('+');
    let scheduler = parts.next().unwrap_or_default();
    match scheduler {
        "credit" => match parts.next() {
            None => Ok(Box::new(Credit::new(topology))),
            Some(option) => Err(refused(
                scheduler,
                option,
                "it has no options: its times are fixed in Xen",
            )),
        },
        "gang" => gang(parts, topology),
        "steer" => match parts.next() {
            None => Ok(steer(topology)),
            Some(option) => Err(refused(
                scheduler,
                option,
                "its policies are named apart from it",
            )),
        },
        _ => fair(scheduler, parts, topology),
    }
}

/// With the slice of the kernel on which it runs.
fn steer(topology: Topology) -> Box<dyn HostScheduler> {
    let tunables = Tunables::of(Version::Eevdf7_2, topology.cpus(), 1_000_000_000 / TICK_HZ);
    Box::new(Steer::new(topology, tunables.base_slice_ns))
}

fn fair<'a>(
    scheduler: &str,
    parts: impl Iterator<Item = &'a str>,
    topology: Topology,
) -> Result<Box<dyn HostScheduler>, NameError> {
    let version = Version::ALL.iter().find(|(known, _)| *known == scheduler);
    let Some((_, version)) = version else {
        return Err(NameError::Scheduler {
            name: scheduler.to_owned(),
        });
    };
    let mut options = Options::default();
    let mut tick_hz = TICK_HZ;
    for option in parts {
        match option {
            "balance" => options.balance = true,
            "debooster=paper" => options.debooster = Deboost::Paper,
            "debooster=ancestor" => options.debooster = Deboost::Ancestor,
            "lag-credit" => options.lag_credit = true,
            _ => {
                tick_hz = number(option, "hz=", 100..=1000)
                    .ok_or_else(|| refused(scheduler, option, "it runs at 100 to 1000 Hz"))?
            }
        }
    }
    if options.lag_credit && !version.is_eevdf() {
        return Err(refused(
            scheduler,
            "lag-credit",
            "only EEVDF keeps lag; use eevdf-6.19 or eevdf-7.2",
        ));
    }
    if options.lag_credit && !version.picks_next_buddy() {
        let reason = "its pick ignores the buddy that is credited; use eevdf-6.19 or eevdf-7.2";
        return Err(refused(scheduler, "lag-credit", reason));
    }
    Ok(Box::new(Fair::new(
        *version,
        options,
        topology,
        1_000_000_000 / tick_hz,
    )))
}

fn gang<'a>(
    parts: impl Iterator<Item = &'a str>,
    topology: Topology,
) -> Result<Box<dyn HostScheduler>, NameError> {
    let mut slot_ns = SLOT_NS;
    for option in parts {
        let slot_ms = number(option, "slot-ms=", 1..=1000);
        slot_ns = 1_000_000
            * slot_ms.ok_or_else(|| refused("gang", option, "it has slots of 1 to 1000 ms"))?;
    }
    Ok(Box::new(Gang::new(topology, slot_ns)))
}

/// The error for an option that is unknown, or not allowed for this scheduler.
fn refused(scheduler: &str, option: &str, reason: &'static str) -> NameError {
    let key = option.split('=').next().unwrap_or_default();
    if KNOWN_KEYS.contains(&key) {
        NameError::Mismatch {
            scheduler: scheduler.to_owned(),
            option: option.to_owned(),
            reason,
        }
    } else {
        NameError::Option {
            option: option.to_owned(),
        }
    }
}

fn number(option: &str, key: &str, range: RangeInclusive<u64>) -> Option<u64> {
    let number = option.strip_prefix(key)?.parse().ok()?;
    range.contains(&number).then_some(number)
}
