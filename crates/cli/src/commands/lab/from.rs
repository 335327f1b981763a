// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab from`: a recording as a scenario.

use std::io::Write;

use unspin_lab::from_recording::scenario_text;
use unspin_recording::Recorded;

use crate::{commands::lab::args::LabFromArguments, terminal::failure::Failure};

/// Reads the recording and prints the scenario.
pub fn run(arguments: &LabFromArguments) -> Result<(), Failure> {
    let recorded = Recorded::open_readable(&arguments.folder)?;
    let text = scenario_text(&recorded).map_err(anyhow::Error::from)?;
    match &arguments.out {
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(path) => {
            let mut file = std::fs::File::options()
                .write(true)
                .create_new(true)
                .open(path)
                .map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))?;
            file.write_all(text.as_bytes())?;
        }
    }
    Ok(())
}
