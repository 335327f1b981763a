// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin testbed boots`: how many boots there were, and how many of them hung or panicked and were tried again.

use std::time::{Duration, UNIX_EPOCH};

use anyhow::anyhow;
use unspin_report::{Table, row};

use crate::{
    commands::testbed::args::BootsArguments,
    terminal::{failure::Failure, output},
};

row! {
    "boots", ["testbed boots"];
    /// Boots of the testbed.
    struct BootsRow {
        /// How many there were.
        boots: u64 = ("boots", Count),
        /// How many of them hung or panicked and were tried again.
        failures: u64 = ("hung or panicked", Count),
    }
}

/// Prints the counts; fails when too many boots did.
pub fn run(arguments: &BootsArguments) -> Result<(), Failure> {
    let cache = unspin_testbed::cache_from_environment().map_err(anyhow::Error::from)?;
    let since = UNIX_EPOCH + Duration::from_secs(arguments.since);
    let record = unspin_testbed::boot_record(&cache, since).map_err(anyhow::Error::from)?;
    let row = BootsRow {
        boots: record.boots,
        failures: record.failures,
    };
    let mut document = output::document("testbed boots");
    document.table(Table::of("", [row]));
    output::print(&document, arguments.output)?;
    if record.too_many() {
        return Err(anyhow!(
            "more than 1 boot in 20 hung or panicked: see the consoles (unspin testbed run --console FILE)"
        )
        .into());
    }
    Ok(())
}
