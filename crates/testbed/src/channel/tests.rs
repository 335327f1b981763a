// SPDX-License-Identifier: MIT OR Apache-2.0
//! The channel between two ends in one process, and areas that a hostile or broken guest left behind.

use super::*;

/// An area in memory, aligned to 8, that a writer and a reader can both use.
struct Area(Vec<u64>);

impl Area {
    fn new(bytes: usize) -> Self {
        let mut words = vec![0; bytes / 8];
        for (word, bytes) in words.iter_mut().zip(new_header(bytes as u64).chunks(8)) {
            *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        }
        Self(words)
    }

    fn writer(&mut self) -> Writer {
        let bytes = self.0.len() as u64 * 8;
        // SAFETY: the vector is valid for its own bytes, aligned to 8, and outlives the writer in every test.
        unsafe { Writer::new(self.0.as_mut_ptr().cast(), bytes) }.expect("an area of ours")
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn reader(&self) -> Reader<Vec<u8>> {
        Reader::new(self.bytes(), self.0.len() as u64 * 8)
    }
}

impl ReadAt for Vec<u8> {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        let source = self
            .get(offset as usize..offset as usize + buffer.len())
            .ok_or(std::io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(source);
        Ok(())
    }
}

fn all<R: ReadAt>(reader: &mut Reader<R>) -> Result<Vec<Frame>, ChannelError> {
    std::iter::from_fn(|| reader.next_frame().transpose()).collect()
}

/// An area whose only frame claims stream `stream` and `length` bytes, of which the guest published `written`.
fn forged(stream: u32, length: u64, written: u64) -> Reader<Vec<u8>> {
    let mut bytes = Area::new(256).bytes();
    bytes[WRITTEN..WRITTEN + 8].copy_from_slice(&written.to_le_bytes());
    bytes[64..68].copy_from_slice(&stream.to_le_bytes());
    bytes[72..80].copy_from_slice(&length.to_le_bytes());
    Reader::new(bytes, 256)
}

#[test]
fn frames_arrive_in_order_and_to_the_byte() {
    let mut area = Area::new(1024);
    let mut writer = area.writer();
    let payloads: [&[u8]; 5] = [b"", b"1", b"1234567", b"12345678", &[0, 255, 10, 13, 0]];
    for (payload, stream) in payloads.iter().zip(Stream::ALL) {
        writer.append(stream, payload).expect("room");
    }
    let frames = all(&mut area.reader()).expect("whole frames");
    assert_eq!(frames.len(), payloads.len());
    for ((frame, payload), stream) in frames.iter().zip(payloads).zip(Stream::ALL) {
        assert_eq!((frame.stream, frame.bytes.as_slice()), (stream, payload));
    }
}

#[test]
fn the_layout_is_fixed() {
    let mut area = Area::new(128);
    area.writer().append(Stream::Stderr, b"abc").expect("room");
    let bytes = area.bytes();
    assert_eq!(&bytes[..16], b"unspin\0\x01\x80\0\0\0\0\0\0\0");
    assert_eq!(&bytes[16..24], &24_u64.to_le_bytes());
    assert_eq!(
        &bytes[64..88],
        b"\x02\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0abc\0\0\0\0\0"
    );
}

#[test]
fn a_frame_that_does_not_fit_is_refused_and_reported_after_those_before_it() {
    let mut area = Area::new(128);
    let mut writer = area.writer();
    writer
        .append(Stream::Stdout, &[7; 32])
        .expect("48 of 64 bytes");
    assert!(matches!(
        writer.append(Stream::Stdout, &[8; 8]),
        Err(ChannelError::Full { refused_bytes: 24 })
    ));
    assert!(
        writer.append(Stream::Exit, b"").is_err(),
        "nothing follows a gap, even where it would fit"
    );
    let mut reader = area.reader();
    assert_eq!(
        reader.next_frame().expect("whole").expect("there").bytes,
        [7; 32]
    );
    assert!(matches!(
        reader.next_frame(),
        Err(ChannelError::Full { refused_bytes: 24 })
    ));
}

#[test]
fn the_area_can_be_filled_to_its_last_byte() {
    let mut area = Area::new(128);
    area.writer()
        .append(Stream::Stdout, &[9; 48])
        .expect("64 of 64 bytes");
    assert_eq!(all(&mut area.reader()).expect("whole frames").len(), 1);
}

#[test]
fn an_area_that_is_not_ours_is_refused() {
    for (word, value) in [(0, 0), (1, 64)] {
        let mut area = Area::new(128);
        area.0[word] = value;
        // SAFETY: as in `Area::writer`.
        assert!(unsafe { Writer::new(area.0.as_mut_ptr().cast(), 128) }.is_none());
    }
}

#[test]
fn hostile_lengths_are_refused() {
    for (length, written) in [
        (9, 24),             // one byte more than was published
        (1, 16),             // published header only
        (u64::MAX, 24),      // overflows when rounded up
        (u64::MAX - 15, 24), // overflows when the header is added
        (1 << 40, 24),       // must not be allocated
    ] {
        let result = forged(1, length, written).next_frame();
        assert!(
            matches!(result, Err(ChannelError::Corrupt { offset: 64, .. })),
            "{length} {written}: {result:?}"
        );
    }
}

#[test]
fn hostile_totals_and_streams_are_refused() {
    for written in [8, 12, 200, u64::MAX, u64::MAX - 7] {
        let result = forged(1, 0, written).next_frame();
        assert!(
            matches!(result, Err(ChannelError::Corrupt { .. })),
            "{written}: {result:?}"
        );
    }
    for stream in [0, 11, u32::MAX] {
        assert!(matches!(
            forged(stream, 0, 16).next_frame(),
            Err(ChannelError::Corrupt { .. })
        ));
    }
}

#[test]
fn a_total_that_goes_back_is_refused() {
    let mut reader = forged(1, 0, 16);
    reader.next_frame().expect("whole").expect("there");
    reader.source[WRITTEN..WRITTEN + 8].copy_from_slice(&0_u64.to_le_bytes());
    assert!(matches!(
        reader.next_frame(),
        Err(ChannelError::Corrupt { .. })
    ));
}

#[test]
fn a_truncated_file_is_an_error_and_not_a_hang() {
    let mut reader = Reader::new(Area::new(256).bytes()[..70].to_vec(), 256);
    reader.source[WRITTEN] = 16;
    assert!(matches!(reader.next_frame(), Err(ChannelError::Io(_))));
}

#[test]
fn the_heartbeat_moves() {
    let mut area = Area::new(128);
    area.writer().beat();
    assert_eq!(area.reader().heartbeat().expect("readable"), 1);
}
