// SPDX-License-Identifier: MIT OR Apache-2.0
//! The event log: a file of events that is the same, byte for byte, for the same events.
//!
//! Little endian throughout: magic (8 bytes), version (4), length of the metadata (4), number of events (8), metadata
//! (JSON, zero-padded to a multiple of 8), then 48 bytes an event, laid out as `struct unspin_event`.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use unspin_abi as abi;

use crate::{DecodeError, Event};

const MAGIC: [u8; 8] = *b"UNSPINEV";
const HEADER_BYTES: usize = 24;
/// Bytes of an event in the file.
pub const RECORD_BYTES: usize = size_of::<abi::unspin_event>();
/// Longest metadata that a reader accepts, bytes.
const METADATA_BYTES_MAX: u32 = 1 << 20;

/// What a log is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Commit of the program that wrote it.
    pub commit: String,
    /// SHA-256 of the scenario, in hex.
    pub scenario_hash: String,
    /// Seed of the run.
    pub seed: u64,
    /// Machine that it ran on.
    pub machine: String,
    /// Events that were lost on the way.
    pub lost_events: u64,
}

/// A log in memory: its events are in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLog {
    metadata: Metadata,
    events: Vec<Event>,
}

/// What a reader found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadLog {
    /// All that could be read.
    pub log: EventLog,
    /// What is missing at the end; `None`: the file is whole.
    pub truncated: Option<Truncated>,
}

/// A log that ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the log is truncated: {found_events} of {expected_events} events are there, then {left_over_bytes} bytes of a broken one"
)]
pub struct Truncated {
    /// How many its header promises.
    pub expected_events: u64,
    /// How many are whole.
    pub found_events: u64,
    /// Bytes after the last whole one.
    pub left_over_bytes: u64,
}

/// Why bytes are not a log.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Reading or writing failed.
    #[error("event log: {0}")]
    Io(#[from] io::Error),
    /// The first bytes are not those of a log.
    #[error("this is no event log: it does not begin with {:?}", String::from_utf8_lossy(&MAGIC))]
    Magic,
    /// Another version.
    #[error(
        "the event log has version {found}; this program reads version {}",
        abi::UNSPIN_EVENTS_VERSION
    )]
    Version {
        /// Its version.
        found: u32,
    },
    /// The header is cut off, or its metadata is too long or no metadata.
    #[error("the header of the event log is broken: {0}")]
    Header(String),
    /// A whole record that is not an event.
    #[error("event {index} of the log: {source}")]
    Event {
        /// Its number, from 0.
        index: u64,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// There are more bytes than the header promises.
    #[error("the event log goes on for {0} bytes after its last event")]
    TooLong(u64),
}

impl EventLog {
    /// A log of those events, sorted by time, thread, and the order in which they come.
    pub fn new(metadata: Metadata, mut events: Vec<Event>) -> EventLog {
        events.sort_by_key(|event| (event.time_ns, event.thread)); // stable: equal keys keep their order
        EventLog { metadata, events }
    }

    /// What the log is about.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Its events, in order.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Writes the log. The same log gives the same bytes.
    ///
    /// # Errors
    /// What `output` says.
    pub fn write(&self, output: &mut dyn Write) -> Result<(), LogError> {
        let mut metadata = serde_json::to_vec(&self.metadata)
            .map_err(|error| LogError::Header(error.to_string()))?;
        let length = u32::try_from(metadata.len())
            .ok()
            .filter(|&length| length <= METADATA_BYTES_MAX)
            .ok_or_else(|| LogError::Header("metadata is longer than 1 MiB".to_owned()))?;
        metadata.resize(padded(length), 0);
        output.write_all(&MAGIC)?;
        output.write_all(&abi::UNSPIN_EVENTS_VERSION.to_le_bytes())?;
        output.write_all(&length.to_le_bytes())?;
        output.write_all(&(self.events.len() as u64).to_le_bytes())?;
        output.write_all(&metadata)?;
        for event in &self.events {
            output.write_all(&record(&event.encode()))?;
        }
        Ok(())
    }

    /// Reads a log. A file that ends too early gives what is whole, and says how much that is.
    ///
    /// # Errors
    /// Bytes that are no log, another version, a record that is not an event.
    pub fn read(input: &mut dyn Read) -> Result<ReadLog, LogError> {
        let (metadata, expected_events) = read_header(input)?;
        let mut events = Vec::new();
        let mut buffer = [0; RECORD_BYTES];
        while (events.len() as u64) < expected_events {
            let got = read_up_to(input, &mut buffer)?;
            if got < RECORD_BYTES {
                let truncated = Truncated {
                    expected_events,
                    found_events: events.len() as u64,
                    left_over_bytes: got as u64,
                };
                let log = EventLog { metadata, events };
                return Ok(ReadLog {
                    log,
                    truncated: Some(truncated),
                });
            }
            let index = events.len() as u64;
            let event =
                Event::decode(&raw(&buffer)).map_err(|source| LogError::Event { index, source })?;
            events.push(event);
        }
        let beyond = io::copy(input, &mut io::sink())?;
        if beyond > 0 {
            return Err(LogError::TooLong(beyond));
        }
        let log = EventLog { metadata, events };
        Ok(ReadLog {
            log,
            truncated: None,
        })
    }
}

fn padded(length: u32) -> usize {
    (length as usize).next_multiple_of(8)
}

fn read_header(input: &mut dyn Read) -> Result<(Metadata, u64), LogError> {
    let mut header = [0; HEADER_BYTES];
    let got = read_up_to(input, &mut header)?;
    if got < MAGIC.len() || header[..8] != MAGIC {
        return Err(LogError::Magic);
    }
    if got < HEADER_BYTES {
        return Err(LogError::Header(format!("it ends after {got} bytes")));
    }
    let version = u32_at(&header, 8);
    if version != abi::UNSPIN_EVENTS_VERSION {
        return Err(LogError::Version { found: version });
    }
    let length = u32_at(&header, 12);
    if length > METADATA_BYTES_MAX {
        return Err(LogError::Header(format!(
            "metadata of {length} bytes, allowed are {METADATA_BYTES_MAX}"
        )));
    }
    let mut metadata = vec![0; padded(length)];
    if read_up_to(input, &mut metadata)? < metadata.len() {
        return Err(LogError::Header("it ends within the metadata".to_owned()));
    }
    let metadata = serde_json::from_slice(&metadata[..length as usize])
        .map_err(|error| LogError::Header(format!("metadata: {error}")))?;
    Ok((metadata, u64_at(&header, 16)))
}

/// Fills as much of the buffer as there is to read.
fn read_up_to(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn record(event: &abi::unspin_event) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[0..8].copy_from_slice(&event.time_ns.to_le_bytes());
    bytes[8..12].copy_from_slice(&event.kind.to_le_bytes());
    bytes[12..16].copy_from_slice(&event.vm.to_le_bytes());
    bytes[16..20].copy_from_slice(&event.thread.to_le_bytes());
    bytes[20..22].copy_from_slice(&event.vcpu.to_le_bytes());
    bytes[22..24].copy_from_slice(&event.cpu.to_le_bytes());
    bytes[24..32].copy_from_slice(&event.argument0.to_le_bytes());
    bytes[32..40].copy_from_slice(&event.argument1.to_le_bytes());
    bytes[40..48].copy_from_slice(&event.argument2.to_le_bytes());
    bytes
}

fn raw(bytes: &[u8; RECORD_BYTES]) -> abi::unspin_event {
    abi::unspin_event {
        time_ns: u64_at(bytes, 0),
        kind: u32_at(bytes, 8),
        vm: u32_at(bytes, 12),
        thread: u32_at(bytes, 16),
        vcpu: u16::from_le_bytes([bytes[20], bytes[21]]),
        cpu: u16::from_le_bytes([bytes[22], bytes[23]]),
        argument0: u64_at(bytes, 24),
        argument1: u64_at(bytes, 32),
        argument2: u64_at(bytes, 40),
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut value = [0; 4];
    value.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(value)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut value = [0; 8];
    value.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(value)
}
