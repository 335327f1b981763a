// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host schedulers by the names that users type: `cfs-5.6`, `eevdf-7.2+lag-credit`, `credit`, ...

use super::HostScheduler;
use super::fair::Fair;
use super::fair::rules::{Debooster, Options, Version};
use crate::topology::Topology;
use thiserror::Error;

/// The kernel's default frequency of the tick (kernel/Kconfig.hz), which Debian and Ubuntu keep.
const TICK_HZ: u64 = 250;

/// What an option does, for messages.
const OPTIONS: &str =
    "+balance, +debooster=paper, +debooster=ancestor, +lag-credit, +hz=N (100 to 1000)";

/// A name that no scheduler has, or that asks for what it cannot do.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NameError {
    /// No scheduler of that name.
    #[error("there is no host scheduler \"{name}\"; known are {}, each but credit and gang with {OPTIONS}", known_names().join(", "))]
    Scheduler {
        /// What was asked for.
        name: String,
    },
    /// No option of that name.
    #[error("there is no option \"+{option}\" of host schedulers; known are {OPTIONS}")]
    Option {
        /// What was asked for.
        option: String,
    },
    /// The option makes no sense there.
    #[error("\"+{option}\" does not work with {scheduler}: {reason}")]
    Mismatch {
        /// The scheduler.
        scheduler: String,
        /// The option.
        option: String,
        /// Why not.
        reason: &'static str,
    },
}

/// The names of schedulers, without options.
pub fn known_names() -> Vec<&'static str> {
    Version::ALL
        .iter()
        .map(|(name, _)| *name)
        .chain(["credit", "gang"])
        .collect()
}

/// The scheduler of that name, with its options behind plus signs: "cfs-4.13+debooster=paper". `seed`: for schedulers
/// that draw lots; none does so far.
///
/// # Errors
/// An unknown name or option, or an option that the scheduler cannot have: a message that lists what there is.
pub fn from_name(
    name: &str,
    topology: Topology,
    _seed: u64,
) -> Result<Box<dyn HostScheduler>, NameError> {
    let mut parts = name.split('+');
    let scheduler = parts.next().unwrap_or_default();
    let version = Version::ALL
        .iter()
        .find(|(known, _)| *known == scheduler)
        .map(|(_, version)| *version);
    let Some(version) = version else {
        return Err(NameError::Scheduler {
            name: scheduler.to_owned(),
        });
    };
    let mut options = Options::default();
    let mut tick_hz = TICK_HZ;
    for option in parts {
        match option {
            "balance" => options.balance = true,
            "debooster=paper" => options.debooster = Debooster::Paper,
            "debooster=ancestor" => options.debooster = Debooster::Ancestor,
            "lag-credit" if version.is_eevdf() => options.lag_credit = true,
            "lag-credit" => {
                return Err(mismatch(
                    scheduler,
                    option,
                    "only EEVDF keeps lag; use eevdf-6.6 or later",
                ));
            }
            _ => {
                tick_hz = hertz(option).ok_or_else(|| NameError::Option {
                    option: option.to_owned(),
                })?
            }
        }
    }
    if options.lag_credit && !version.picks_next_buddy() {
        return Err(mismatch(
            scheduler,
            "lag-credit",
            "its pick ignores the next buddy that is credited; use eevdf-6.19 or later",
        ));
    }
    Ok(Box::new(Fair::new(
        version,
        options,
        topology,
        1_000_000_000 / tick_hz,
    )))
}

fn mismatch(scheduler: &str, option: &str, reason: &'static str) -> NameError {
    NameError::Mismatch {
        scheduler: scheduler.to_owned(),
        option: option.to_owned(),
        reason,
    }
}

fn hertz(option: &str) -> Option<u64> {
    let hertz = option.strip_prefix("hz=")?.parse().ok()?;
    (100..=1000).contains(&hertz).then_some(hertz)
}
