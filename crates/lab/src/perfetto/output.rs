// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes packets, encoded one after the other into a buffer of a megabyte.

use std::io::{self, Write};

use prost::Message;

use crate::perfetto::messages::{
    DebugAnnotation, EventType, FtraceEvent, FtraceEventBundle, TracePacket, TrackDescriptor,
    TrackEvent,
};

/// `Trace.packet` (trace.proto): field 1, a length and a message.
const PACKET_KEY: u8 = 1 << 3 | 2;
const BUFFER_BYTES: usize = 1 << 20;
/// The sequence of track events and descriptors; each pCPU's scheduler events are a sequence of their own with a higher
/// number.
pub const TRACKS_SEQUENCE: u32 = 1;

/// The destination of packets. The first error is kept, and nothing is written after it.
pub struct Output<W> {
    sink: W,
    buffer: Vec<u8>,
    packets: u64,
    bytes: u64,
    error: Option<io::Error>,
    flows: u64,
}

/// The beginning of a slice or an instant.
#[derive(Default)]
pub struct Label<'a> {
    /// Its category, by which the viewer filters.
    pub category: &'static str,
    /// Its name.
    pub name: &'a str,
    /// Arguments that are shown when it is selected.
    pub notes: Vec<DebugAnnotation>,
    /// Arrows that begin here.
    pub flows: Vec<u64>,
    /// Arrows that end here.
    pub flows_end: Vec<u64>,
}

impl<W: Write> Output<W> {
    pub fn new(sink: W) -> Output<W> {
        Output {
            sink,
            buffer: Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 8),
            packets: 0,
            bytes: 0,
            error: None,
            flows: 0,
        }
    }

    /// A number for a new arrow.
    pub fn new_flow(&mut self) -> u64 {
        self.flows += 1;
        self.flows
    }

    pub fn packet(&mut self, packet: &TracePacket) {
        if self.error.is_some() {
            return;
        }
        self.buffer.push(PACKET_KEY);
        if let Err(error) = packet.encode_length_delimited(&mut self.buffer) {
            // Writing to a Vec does not fail; the error is kept all the same.
            self.error = Some(io::Error::other(error));
        }
        self.packets += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush();
        }
    }

    /// Scheduler events of one pCPU, with ascending times.
    pub fn bundle(&mut self, cpu: u32, event: Vec<FtraceEvent>) {
        self.packet(&TracePacket {
            ftrace_events: Some(FtraceEventBundle {
                cpu: Some(cpu),
                event,
            }),
            trusted_packet_sequence_id: Some(TRACKS_SEQUENCE + 1 + cpu),
            ..TracePacket::default()
        });
    }

    pub fn descriptor(&mut self, descriptor: TrackDescriptor) {
        let packet = TracePacket {
            track_descriptor: Some(descriptor),
            ..self.on_tracks()
        };
        self.packet(&packet);
    }

    pub fn slice_begin(&mut self, now_ns: u64, track: u64, label: Label) {
        self.event(now_ns, track, EventType::SliceBegin, label);
    }

    pub fn slice_end(&mut self, now_ns: u64, track: u64) {
        self.event(now_ns, track, EventType::SliceEnd, Label::default());
    }

    /// An end with arrows.
    pub fn slice_end_with(&mut self, now_ns: u64, track: u64, label: Label) {
        self.event(now_ns, track, EventType::SliceEnd, label);
    }

    pub fn instant(&mut self, now_ns: u64, track: u64, label: Label) {
        self.event(now_ns, track, EventType::Instant, label);
    }

    pub fn counter(&mut self, now_ns: u64, track: u64, value: i64) {
        let event = TrackEvent {
            r#type: Some(EventType::Counter.into()),
            track_uuid: Some(track),
            counter_value: Some(value),
            ..TrackEvent::default()
        };
        self.track_event(now_ns, event);
    }

    fn event(&mut self, now_ns: u64, track: u64, kind: EventType, label: Label) {
        let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let event = TrackEvent {
            r#type: Some(kind.into()),
            track_uuid: Some(track),
            categories: text(label.category).into_iter().collect(),
            name: text(label.name),
            debug_annotations: label.notes,
            flow_ids: label.flows,
            terminating_flow_ids: label.flows_end,
            ..TrackEvent::default()
        };
        self.track_event(now_ns, event);
    }

    fn track_event(&mut self, now_ns: u64, event: TrackEvent) {
        let packet = TracePacket {
            timestamp: Some(now_ns),
            track_event: Some(event),
            ..self.on_tracks()
        };
        self.packet(&packet);
    }

    /// An empty packet of the sequence of tracks.
    fn on_tracks(&self) -> TracePacket {
        TracePacket {
            trusted_packet_sequence_id: Some(TRACKS_SEQUENCE),
            ..TracePacket::default()
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.sink.write_all(&self.buffer).err();
            self.bytes += self.buffer.len() as u64;
        }
        self.buffer.clear();
    }

    /// Writes the rest; returns the sink, the packets and the bytes.
    ///
    /// # Errors
    /// The sink's first error.
    pub fn finish(mut self) -> io::Result<(W, u64, u64)> {
        self.flush();
        match self.error.or(self.sink.flush().err()) {
            Some(error) => Err(error),
            None => Ok((self.sink, self.packets, self.bytes)),
        }
    }
}

/// A numeric argument.
pub fn note(name: &str, value: i64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        int_value: Some(value),
        string_value: None,
    }
}

/// A text argument.
pub fn note_text(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        int_value: None,
        string_value: Some(value.to_owned()),
    }
}
