// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way out of the testbed: frames that the guest appends ([`Sink`]) and the host reads ([`Source`]), here in one area of
//! memory that both share; for a machine without such memory see [`printer`].
//!
//! The area is the BAR 2 of QEMU's `ivshmem-plain` device (qemu/docs/specs/ivshmem-spec.rst, QEMU 10.0) and a file in memory
//! on the host. It is written once from front to back: no wrap, no acknowledgement, no interrupt, so that a host
//! that reads it cannot disturb the guest, and the deterministic mode stays deterministic.
//!
//! ```text
//! offset  0  magic       u64   host, before the boot
//!         8  capacity    u64   host, before the boot: bytes of the whole area
//!        16  written     u64   guest: bytes of frames that may be read, beginning at FRAMES
//!        24  heartbeat   u64   guest: goes up as long as its PID 1 gets to run
//!        32  refused     u64   guest: bytes of the first frame that no longer fitted; 0 while there was room
//!        64  frames
//! ```
//! A frame is `stream: u32, reserved: u32 (0), length: u64`, then `length` bytes, padded to 8. All little endian.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

pub mod printer;

/// Says that the area is ours and which version of the layout it has.
pub const MAGIC: u64 = u64::from_le_bytes(*b"unspin\x00\x01");
/// Bytes of the area. Sparse: only what is written takes memory.
pub const CAPACITY_BYTES: u64 = 256 << 20;
const CAPACITY: usize = 8;
const WRITTEN: usize = 16;
const HEARTBEAT: usize = 24;
const REFUSED: usize = 32;
const HEADER_BYTES: usize = 40;
const FRAMES: u64 = 64;
const FRAME_HEADER_BYTES: u64 = 16;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stream {
    /// Bytes the command wrote to its standard output.
    Stdout = 1,
    /// Bytes the command wrote to its standard error.
    Stderr = 2,
    /// One line of text from the testbed's own init that does not end the run.
    Note = 3,
    /// PID 1 runs. Payload: nanoseconds since the kernel started, u64.
    InitStarted = 4,
    /// The command is about to run. Payload as in `InitStarted`.
    CommandStarted = 5,
    /// A file begins that is to be brought back. Payload: its path relative to `/out`.
    FileBegin = 6,
    /// Bytes of the file last begun.
    FileData = 7,
    /// The file last begun is whole. No payload.
    FileEnd = 8,
    /// The command ended and everything was sent. Payload: exit status, u64 (a signal n gives 128 + n).
    Exit = 9,
    /// The testbed itself failed. Payload: one line of text.
    InitFailed = 10,
}

impl Stream {
    const ALL: [Self; 10] = [
        Self::Stdout,
        Self::Stderr,
        Self::Note,
        Self::InitStarted,
        Self::CommandStarted,
        Self::FileBegin,
        Self::FileData,
        Self::FileEnd,
        Self::Exit,
        Self::InitFailed,
    ];

    pub(crate) fn from_number(number: u32) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|stream| *stream as u32 == number)
    }
}

/// One frame as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What `bytes` is.
    pub stream: Stream,
    /// The payload.
    pub bytes: Vec<u8>,
}

/// The guest's end of a channel.
pub trait Sink {
    /// Appends one frame. A frame that does not fit is refused whole, and so is every later one.
    ///
    /// # Errors
    /// [`ChannelError::Full`]; the host sees it as well.
    fn append(&mut self, stream: Stream, payload: &[u8]) -> Result<(), ChannelError>;

    /// Tells the host that PID 1 still gets to run.
    fn beat(&mut self);
}

/// The host's end of a channel.
pub trait Source {
    /// The next whole frame, or `None` when there is none yet.
    ///
    /// # Errors
    /// [`ChannelError::Full`] once every frame that fitted was read, [`ChannelError::Corrupt`], [`ChannelError::Io`].
    fn next_frame(&mut self) -> Result<Option<Frame>, ChannelError>;

    /// The guest's heartbeat: any change since the last call is a sign of life.
    ///
    /// # Errors
    /// [`ChannelError::Io`].
    fn heartbeat(&self) -> Result<u64, ChannelError>;
}

/// Why the area cannot be read or written on.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// What the guest wrote does not follow the layout: memory was overwritten, or the two sides differ.
    #[error("the testbed's output area is corrupt at byte {offset}: {what}")]
    Corrupt {
        /// Offset from the start of the area.
        offset: u64,
        /// What was found there.
        what: String,
    },
    /// The guest wrote more than the area holds.
    #[error(
        "the command wrote more than the testbed's output area holds ({} MiB; the next {refused_bytes} bytes did not \
         fit): write less, or fewer events",
        CAPACITY_BYTES >> 20
    )]
    Full {
        /// Bytes of the frame that found no room.
        refused_bytes: u64,
    },
    /// The file behind the area could not be read.
    #[error("reading the testbed's output area: {0}")]
    Io(#[from] std::io::Error),
}

/// The first bytes of a new area of `capacity_bytes`, which the host writes before the boot.
pub fn new_header(capacity_bytes: u64) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC.to_le_bytes());
    header[CAPACITY..CAPACITY + 8].copy_from_slice(&capacity_bytes.to_le_bytes());
    header
}

/// The guest's end.
pub struct Writer {
    base: *mut u8,
    capacity: u64,
    written: u64,
}

impl Writer {
    /// Takes over the area at `base`, `bytes` long; `None` when its header is not ours or claims another size.
    ///
    /// # Safety
    /// `base` is aligned to 8, valid for reads and writes of `bytes` for as long as the writer lives, and no other
    /// code of this process writes there.
    pub unsafe fn new(base: *mut u8, bytes: u64) -> Option<Self> {
        if bytes < FRAMES {
            return None;
        }
        let writer = Self {
            base,
            capacity: bytes,
            written: 0,
        };
        let ours = writer.word(0).load(Ordering::Acquire) == MAGIC.to_le();
        let same_size = writer.word(CAPACITY).load(Ordering::Acquire) == bytes.to_le();
        (ours && same_size).then_some(writer)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= HEADER_BYTES && offset % 8 == 0);
        // SAFETY: offset + 8 <= HEADER_BYTES < FRAMES <= the bytes promised to `new`; base and offset are multiples of 8.
        unsafe { AtomicU64::from_ptr(self.base.add(offset).cast()) }
    }
}

impl Sink for Writer {
    fn append(&mut self, stream: Stream, payload: &[u8]) -> Result<(), ChannelError> {
        let needed = FRAME_HEADER_BYTES + (payload.len() as u64).next_multiple_of(8);
        let refused_bytes = u64::from_le(self.word(REFUSED).load(Ordering::Relaxed));
        if refused_bytes > 0 {
            return Err(ChannelError::Full { refused_bytes });
        }
        if needed > self.capacity - FRAMES - self.written {
            self.word(REFUSED).store(needed.to_le(), Ordering::Release);
            return Err(ChannelError::Full {
                refused_bytes: needed,
            });
        }
        let mut header = [0; FRAME_HEADER_BYTES as usize];
        header[..4].copy_from_slice(&(stream as u32).to_le_bytes());
        header[8..].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        // SAFETY: FRAMES + written + needed <= capacity (checked above), and the host reads nothing beyond `written`.
        unsafe {
            let at = self.base.add((FRAMES + self.written) as usize);
            at.copy_from_nonoverlapping(header.as_ptr(), header.len());
            at.add(header.len())
                .copy_from_nonoverlapping(payload.as_ptr(), payload.len());
        }
        self.written += needed;
        self.word(WRITTEN)
            .store(self.written.to_le(), Ordering::Release);
        Ok(())
    }

    fn beat(&mut self) {
        self.word(HEARTBEAT).fetch_add(1, Ordering::Relaxed);
    }
}

/// Where the host reads from: the file behind the area.
pub trait ReadAt {
    /// Fills `buffer` from `offset` or fails.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()>;
}

impl ReadAt for File {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }
}

/// The host's end. It believes nothing: every length is checked against what was published.
pub struct Reader<R> {
    source: R,
    capacity: u64,
    position: u64,
    published: u64,
}

impl<R: ReadAt> Reader<R> {
    /// Reads an area of `capacity` bytes from its first frame.
    pub fn new(source: R, capacity: u64) -> Self {
        Self {
            source,
            capacity,
            position: 0,
            published: 0,
        }
    }

    fn word(&self, offset: usize) -> Result<u64, ChannelError> {
        let mut bytes = [0; 8];
        self.source.read_exact_at(&mut bytes, offset as u64)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn published_now(&self) -> Result<u64, ChannelError> {
        let written = self.word(WRITTEN)?;
        if written < self.position || written > self.capacity - FRAMES || written % 8 != 0 {
            return Err(self.corrupt(format!("the guest says it wrote {written} bytes")));
        }
        Ok(written)
    }

    fn corrupt(&self, what: String) -> ChannelError {
        ChannelError::Corrupt {
            offset: FRAMES + self.position,
            what,
        }
    }
}

impl<R: ReadAt> Source for Reader<R> {
    fn heartbeat(&self) -> Result<u64, ChannelError> {
        self.word(HEARTBEAT)
    }

    fn next_frame(&mut self) -> Result<Option<Frame>, ChannelError> {
        if self.position == self.published {
            self.published = self.published_now()?;
        }
        let available = self.published - self.position;
        if available == 0 {
            return match self.word(REFUSED)? {
                0 => Ok(None),
                refused_bytes => Err(ChannelError::Full { refused_bytes }),
            };
        }
        if available < FRAME_HEADER_BYTES {
            return Err(self.corrupt(format!(
                "{available} bytes left for a frame header of {FRAME_HEADER_BYTES}"
            )));
        }
        let mut header = [0; FRAME_HEADER_BYTES as usize];
        self.source
            .read_exact_at(&mut header, FRAMES + self.position)?;
        let number = u32::from_le_bytes(header[..4].try_into().expect("four bytes"));
        let length = u64::from_le_bytes(header[8..].try_into().expect("eight bytes"));
        let stream = Stream::from_number(number)
            .ok_or_else(|| self.corrupt(format!("unknown stream {number}")))?;
        // Compared before it is rounded up: a length near 2^64 must not overflow, nor be allocated.
        if length > available - FRAME_HEADER_BYTES
            || length.next_multiple_of(8) > available - FRAME_HEADER_BYTES
        {
            return Err(self.corrupt(format!(
                "a frame of {length} bytes where {available} were written"
            )));
        }
        let mut bytes = vec![0; length as usize];
        self.source
            .read_exact_at(&mut bytes, FRAMES + self.position + FRAME_HEADER_BYTES)?;
        self.position += FRAME_HEADER_BYTES + length.next_multiple_of(8);
        Ok(Some(Frame { stream, bytes }))
    }
}

#[cfg(test)]
mod tests;
