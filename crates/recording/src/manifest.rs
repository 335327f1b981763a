// SPDX-License-Identifier: MIT OR Apache-2.0
//! `recording.json`: what a recording says of itself beside its events.

use std::{
    fs::{self, File},
    io::{Read, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};
use unspin_abi as abi;
use unspin_events::facts::Facts;

use crate::{
    Error,
    cut::{KeptFacts, RingFacts},
    names,
    schema::SCHEMA_VERSION,
};

/// Longest description that is read, bytes: 65,536 tasks take some 10 MB.
const BYTES_MAX: u64 = 64 << 20;

/// How a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It goes on; or it never ended in order (killed, or the machine stopped), and up to a second is missing.
    #[default]
    Running,
    /// Its time was over, or the command that it watched has ended.
    Finished,
    /// By Ctrl-C.
    Interrupted,
    /// There was no room for more.
    DiskFull,
    /// By another error.
    Failed,
}

/// The content of `recording.json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of this file and of the columns.
    pub schema_version: u32,
    /// Version of `abi/bpf/events.h`, which says what the arguments mean.
    pub events_version: u32,
    /// How it ended.
    pub ended: Ended,
    /// The error that ended it.
    pub ended_because: Option<String>,
    /// Events in the segments.
    pub events: u64,
    /// Events that were there and could not be written.
    pub unwritten_events: u64,
    /// Of a flight recorder, or of what it kept: what is not there any more. `None`: a recording from its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<RingFacts>,
    /// Of what a flight recorder kept: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptFacts>,
    /// Everything else.
    #[serde(flatten)]
    pub facts: Facts,
}

impl Manifest {
    pub(crate) fn new(facts: Facts) -> Manifest {
        Manifest {
            schema_version: SCHEMA_VERSION,
            events_version: abi::UNSPIN_EVENTS_VERSION,
            facts,
            ..Manifest::default()
        }
    }

    /// Replaces the file in one step: a reader finds the old one or this one.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        let path = folder.join(names::MANIFEST);
        let partial = names::partial(&path);
        let mut text =
            serde_json::to_vec_pretty(self).map_err(|error| Error::broken(&path, error))?;
        text.push(b'\n');
        let written = File::create(&partial)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_data()))
            .and_then(|()| fs::rename(&partial, &path));
        written.map_err(|source| {
            // What stays is the earlier one; a rest that cannot be removed is never read.
            let _ = fs::remove_file(&partial);
            Error::io(&path, "writing")(source)
        })
    }

    /// `Ok(None)`: there is none.
    ///
    /// # Errors
    /// [`Error::Version`] for another version's; [`Error::Broken`] for one that is damaged.
    pub(crate) fn read(folder: &Path) -> Result<Option<Manifest>, Error> {
        let path = folder.join(names::MANIFEST);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io(&path, "opening")(error)),
        };
        let mut text = Vec::new();
        file.take(BYTES_MAX + 1)
            .read_to_end(&mut text)
            .map_err(Error::io(&path, "reading"))?;
        if text.len() as u64 > BYTES_MAX {
            return Err(Error::broken(&path, "longer than 64 MiB"));
        }
        let versions: Versions =
            serde_json::from_slice(&text).map_err(|error| Error::broken(&path, error))?;
        for (what, found, reads) in [
            ("schema", versions.schema_version, SCHEMA_VERSION),
            ("event", versions.events_version, abi::UNSPIN_EVENTS_VERSION),
        ] {
            if found != reads {
                return Err(Error::Version {
                    path,
                    what,
                    found: found.to_string(),
                    reads,
                });
            }
        }
        serde_json::from_slice(&text)
            .map(Some)
            .map_err(|error| Error::broken(&path, error))
    }
}

/// What is looked at before anything else is believed.
#[derive(Deserialize)]
struct Versions {
    schema_version: u32,
    events_version: u32,
}
