// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way out of a machine that shares no memory with the host: its printer. The guest writes frames to the parallel port, and
//! the emulator appends each byte to a file, which the host reads from front to back.
//!
//! ```text
//! offset  0  magic     u32   MARK
//!         4  kind      u32   number of a `Stream`, BEAT or REFUSED
//!         8  length    u64   bytes of the payload
//!        16  checksum  u32   CRC-32 (IEEE 802.3) of bytes 4 to 16 and the payload
//!        20  payload
//! ```
//! All little endian. The checksum is for what else may print: firmware, a kernel's driver.

use std::{fs::File, os::unix::fs::FileExt};

use super::{CAPACITY_BYTES, ChannelError, Frame, Sink, Source, Stream};

/// What a frame begins with.
const MARK: u32 = u32::from_le_bytes(*b"unsp");
/// A frame that says that PID 1 gets to run, and nothing else.
const BEAT: u32 = 0;
/// The guest's last frame, after it wrote as much as may come. Payload: bytes of the frame that no longer fitted, u64.
const REFUSED: u32 = u32::MAX;
const HEADER_BYTES: u64 = 20;

/// What takes bytes in their order and loses none.
pub trait Port {
    /// Writes them.
    fn write(&mut self, bytes: &[u8]);
}

/// The guest's end.
pub struct PrinterWriter<P> {
    port: P,
    capacity: u64,
    written: u64,
    refused_bytes: Option<u64>,
}

impl<P: Port> PrinterWriter<P> {
    /// Will write to `port`, [`CAPACITY_BYTES`] at most.
    pub fn new(port: P) -> Self {
        Self {
            port,
            capacity: CAPACITY_BYTES,
            written: 0,
            refused_bytes: None,
        }
    }

    fn frame(&mut self, kind: u32, payload: &[u8]) {
        let mut header = [0; HEADER_BYTES as usize];
        header[..4].copy_from_slice(&MARK.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        let sum = checksum(&header[4..16], payload);
        header[16..].copy_from_slice(&sum.to_le_bytes());
        self.port.write(&header);
        self.port.write(payload);
    }
}

impl<P: Port> Sink for PrinterWriter<P> {
    fn append(&mut self, stream: Stream, payload: &[u8]) -> Result<(), ChannelError> {
        if let Some(refused_bytes) = self.refused_bytes {
            return Err(ChannelError::Full { refused_bytes });
        }
        let needed = HEADER_BYTES + payload.len() as u64;
        if needed > self.capacity - self.written {
            self.refused_bytes = Some(needed);
            self.frame(REFUSED, &needed.to_le_bytes());
            return Err(ChannelError::Full {
                refused_bytes: needed,
            });
        }
        self.written += needed;
        self.frame(stream as u32, payload);
        Ok(())
    }

    fn beat(&mut self) {
        self.frame(BEAT, &[]);
    }
}

/// The host's end. It believes nothing.
pub struct PrinterReader {
    file: File,
    position: u64,
    beats: u64,
}

impl PrinterReader {
    /// Reads `file` from its first byte, while the emulator appends to it.
    pub fn new(file: File) -> Self {
        Self {
            file,
            position: 0,
            beats: 0,
        }
    }

    /// The next whole frame's kind and payload; `None` while it is not whole.
    fn whole_frame(&mut self) -> Result<Option<(u32, Vec<u8>)>, ChannelError> {
        let available = self.file.metadata()?.len().saturating_sub(self.position);
        if available < HEADER_BYTES {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES as usize];
        self.file.read_exact_at(&mut header, self.position)?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four"));
        let length = u64::from_le_bytes(header[8..16].try_into().expect("eight bytes"));
        if word(0) != MARK {
            return Err(self.corrupt(format!("no frame begins with {:#010x}", word(0))));
        }
        if length > CAPACITY_BYTES {
            return Err(self.corrupt(format!("a frame of {length} bytes")));
        }
        if length > available - HEADER_BYTES {
            return Ok(None);
        }
        let mut payload = vec![0; length as usize];
        self.file
            .read_exact_at(&mut payload, self.position + HEADER_BYTES)?;
        let sum = checksum(&header[4..16], &payload);
        if sum != word(16) {
            let what = format!("checksum {:#010x}, not {sum:#010x}", word(16));
            return Err(self.corrupt(what));
        }
        self.position += HEADER_BYTES + length;
        Ok(Some((word(4), payload)))
    }

    fn corrupt(&self, what: String) -> ChannelError {
        ChannelError::Corrupt {
            offset: self.position,
            what,
        }
    }
}

impl Source for PrinterReader {
    fn next_frame(&mut self) -> Result<Option<Frame>, ChannelError> {
        while let Some((kind, bytes)) = self.whole_frame()? {
            if kind == BEAT {
                self.beats += 1;
                continue;
            }
            if kind == REFUSED {
                let refused_bytes = bytes
                    .try_into()
                    .map(u64::from_le_bytes)
                    .map_err(|_| self.corrupt("a refusal without a number".into()))?;
                return Err(ChannelError::Full { refused_bytes });
            }
            let stream = Stream::from_number(kind)
                .ok_or_else(|| self.corrupt(format!("unknown stream {kind}")))?;
            return Ok(Some(Frame { stream, bytes }));
        }
        Ok(None)
    }

    fn heartbeat(&self) -> Result<u64, ChannelError> {
        Ok(self.beats)
    }
}

fn checksum(header: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(header);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    impl Port for Vec<u8> {
        fn write(&mut self, bytes: &[u8]) {
            self.extend_from_slice(bytes);
        }
    }

    fn printed(write: impl FnOnce(&mut PrinterWriter<Vec<u8>>)) -> Vec<u8> {
        let mut writer = PrinterWriter::new(Vec::new());
        write(&mut writer);
        writer.port
    }

    fn reader(bytes: &[u8]) -> PrinterReader {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("room");
        PrinterReader::new(file)
    }

    #[test]
    fn frames_come_as_they_were_sent_and_beats_between_them() {
        let bytes = printed(|writer| {
            writer.beat();
            writer.append(Stream::Stdout, b"hello").expect("room");
            writer.beat();
            writer.append(Stream::FileEnd, b"").expect("room");
        });
        let mut reader = reader(&bytes);
        let frame = reader.next_frame().expect("whole").expect("there");
        assert_eq!(
            (frame.stream, &frame.bytes[..]),
            (Stream::Stdout, &b"hello"[..])
        );
        assert_eq!(reader.heartbeat().expect("read"), 1);
        let frame = reader.next_frame().expect("whole").expect("there");
        assert_eq!((frame.stream, frame.bytes.len()), (Stream::FileEnd, 0));
        assert_eq!(reader.heartbeat().expect("read"), 2);
        assert_eq!(reader.next_frame().expect("nothing"), None);
    }

    #[test]
    fn half_a_frame_is_none_yet() {
        let bytes = printed(|writer| writer.append(Stream::Stdout, b"hello").expect("room"));
        for end in 0..bytes.len() {
            assert_eq!(reader(&bytes[..end]).next_frame().expect("no error"), None);
        }
        let mut growing = reader(&bytes[..10]);
        assert_eq!(growing.next_frame().expect("no error"), None);
        growing.file.write_all_at(&bytes, 0).expect("room");
        assert!(growing.next_frame().expect("whole").is_some());
    }

    #[test]
    fn any_flipped_bit_is_noticed_or_leaves_the_frame_unfinished() {
        let bytes = printed(|writer| writer.append(Stream::Note, b"a note").expect("room"));
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let read = reader(&changed).next_frame();
            assert!(matches!(read, Err(_) | Ok(None)), "bit {bit}: {read:?}");
        }
    }

    #[test]
    fn a_stream_that_nobody_knows_is_corrupt() {
        let bytes = printed(|writer| writer.frame(77, b""));
        let error = reader(&bytes)
            .next_frame()
            .expect_err("unknown")
            .to_string();
        assert!(error.contains("unknown stream 77"), "{error}");
    }

    #[test]
    fn what_does_not_fit_is_refused_whole_and_the_host_told() {
        let mut writer = PrinterWriter::new(Vec::new());
        writer.capacity = 2 * HEADER_BYTES + 5;
        writer.append(Stream::Stdout, b"hello").expect("room");
        for _ in 0..2 {
            let refused = writer.append(Stream::Stdout, b"x");
            assert!(matches!(
                refused,
                Err(ChannelError::Full { refused_bytes: 21 })
            ));
        }
        let mut reader = reader(&writer.port);
        assert!(reader.next_frame().expect("whole").is_some());
        let full = reader.next_frame();
        assert!(matches!(
            full,
            Err(ChannelError::Full { refused_bytes: 21 })
        ));
    }
}
