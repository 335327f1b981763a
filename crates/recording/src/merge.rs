// SPDX-License-Identifier: MIT OR Apache-2.0
//! Merges segments into one larger file, so that a long recording is not thousands of small ones.
//!
//! The encoded columns are copied as they are, row group by row group. The merged file gets its name, which says what it
//! replaces, before its parts are removed: a reader that finds both takes the merged one.

use std::{fs, fs::File, path::Path};

use parquet::{
    column::writer::ColumnCloseResult,
    errors::ParquetError,
    file::{
        reader::{FileReader, SerializedFileReader},
        writer::SerializedFileWriter,
    },
};

use crate::{
    Error,
    hashes::{HashedFile, Hashes},
    names::SegmentName,
    segment_read, segment_write,
};

/// Replaces the single segments of `range` by one file.
///
/// # Errors
/// When a part cannot be read or the merged file cannot be written: then all parts stay.
pub(crate) fn merge(folder: &Path, hashes: &mut Hashes, range: SegmentName) -> Result<(), Error> {
    let merged = folder.join(range.file());
    let names: Vec<_> = (range.first..=range.last)
        .map(|number| SegmentName::single(number).file())
        .collect();
    let parts: Vec<_> = names.iter().map(|name| folder.join(name)).collect();
    for (part, name) in parts.iter().zip(&names) {
        // Damage must not get a new hash.
        segment_read::inspect(part, hashes.of(name))?;
    }
    segment_write::write_file(&merged, hashes, |writer| {
        parts.iter().try_for_each(|part| append(writer, part))
    })?;
    for part in &parts {
        fs::remove_file(part).map_err(Error::io(part, "removing a merged segment"))?;
    }
    hashes.keep(|file| !names.iter().any(|name| name == file))
}

fn append(writer: &mut SerializedFileWriter<HashedFile>, part: &Path) -> Result<(), ParquetError> {
    let file = File::open(part)?;
    let reader = SerializedFileReader::new(file.try_clone()?)?;
    for group in reader.metadata().row_groups() {
        let mut rows = writer.next_row_group()?;
        for column in group.columns() {
            let close = ColumnCloseResult {
                bytes_written: u64::try_from(column.compressed_size()).unwrap_or(0),
                rows_written: u64::try_from(group.num_rows()).unwrap_or(0),
                metadata: column.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            rows.append_column(&file, close)?;
        }
        rows.close()?;
    }
    Ok(())
}
