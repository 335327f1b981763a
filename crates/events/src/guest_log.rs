// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guests' own logs of a run as a file: the ground truth, kept apart from what the host saw.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};

use crate::{ClockSample, GuestWait};

/// Version of the file.
const VERSION: u32 = 1;

/// What the micro guests of one run logged, with the clock that puts it on the host's time line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestLog {
    version: u32,
    /// Both clocks at the beginning and at the end of the run.
    pub clock: [ClockSample; 2],
    /// One per VM that the host observed.
    pub vms: Vec<GuestLogVm>,
}

/// One VM's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestLogVm {
    /// Its number in the host's events.
    pub vm: u32,
    /// Its name.
    pub name: String,
    /// Its lock, by the scenario's word.
    pub lock: String,
    /// How many vCPUs it has.
    pub vcpus: u16,
    /// Whether every acquisition stands in it: nothing left out as too short, nothing dropped.
    pub complete: bool,
    /// Records that were not believed.
    pub refused: u64,
    /// Times as the host's TSC read.
    pub waits: Vec<GuestWait>,
}

/// Why bytes are not a guest log.
#[derive(Debug, thiserror::Error)]
pub enum GuestLogError {
    /// Reading or writing failed.
    #[error("guest log: {0}")]
    Io(#[from] io::Error),
    /// Not JSON, or not of this shape.
    #[error("this is no guest log: {0}")]
    Json(#[from] serde_json::Error),
    /// Another version.
    #[error("the guest log has version {0}; this program reads version {VERSION}")]
    Version(u32),
}

impl GuestLog {
    /// A log of those VMs.
    pub fn new(clock: [ClockSample; 2], vms: Vec<GuestLogVm>) -> GuestLog {
        GuestLog {
            version: VERSION,
            clock,
            vms,
        }
    }

    /// Writes it as JSON. The same log gives the same bytes.
    ///
    /// # Errors
    /// What `output` says.
    pub fn write(&self, output: &mut dyn Write) -> Result<(), GuestLogError> {
        Ok(serde_json::to_writer(output, self)?)
    }

    /// Reads it.
    ///
    /// # Errors
    /// Bytes that are no log, or of another version.
    pub fn read(input: &mut dyn Read) -> Result<GuestLog, GuestLogError> {
        let log: GuestLog = serde_json::from_reader(input)?;
        match log.version {
            VERSION => Ok(log),
            other => Err(GuestLogError::Version(other)),
        }
    }
}
