// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads a segment, believing nothing: hash, versions, schema, sizes and bounds are checked before the library sees
//! a page, and what comes out is checked again.

use std::{
    fs::File,
    path::{Path, PathBuf},
};

use parquet::{
    basic::Compression,
    data_type::{DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::{ColumnChunkMetaData, FileMetaData, RowGroupMetaData},
        reader::{FileReader, RowGroupReader, SerializedFileReader},
        statistics::Statistics,
    },
};
use unspin_abi as abi;
use unspin_events::Event;

use crate::{Error, hashes, pages, schema};

/// Most row groups of a file: what a merge makes, and some more.
const GROUPS_MAX: usize = 4096;

/// One row group: sorted events, at most [`schema::SEGMENT_ROWS_MAX`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub path: PathBuf,
    pub group: usize,
    pub rows: u64,
    pub first_ns: u64,
    pub last_ns: u64,
}

/// Events of a chunk, and how many of its rows this version cannot decode.
#[derive(Debug, Default)]
pub(crate) struct ChunkEvents {
    pub events: Vec<Event>,
    pub undecodable: u64,
}

/// Opens a segment and says what is in it. Where its hash is known the whole file is read once.
///
/// # Errors
/// A file that is cut off, changed, of another version, or not a segment at all.
pub(crate) fn inspect(path: &Path, hash: Option<u64>) -> Result<Vec<Chunk>, Error> {
    let mut file = File::open(path).map_err(Error::io(path, "opening"))?;
    if let Some(hash) = hash {
        let found = hashes::hash_of(&mut file).map_err(|error| Error::broken(path, error))?;
        if found != hash {
            return Err(Error::broken(path, "damaged: its hash does not match"));
        }
    }
    let reader = SerializedFileReader::new(file).map_err(|error| Error::broken(path, error))?;
    let metadata = reader.metadata();
    check_version(path, metadata.file_metadata())?;
    if *metadata.file_metadata().schema() != *schema::schema() {
        return Err(Error::broken(path, "its columns are not those of events"));
    }
    if metadata.num_row_groups() > GROUPS_MAX {
        return Err(Error::broken(path, "too many row groups"));
    }
    let chunk = |(group, rows): (usize, &RowGroupMetaData)| {
        let (first_ns, last_ns) =
            times(rows).ok_or_else(|| Error::broken(path, "a row group without times"))?;
        let rows = row_count(rows)
            .ok_or_else(|| Error::broken(path, "a row group of a size that is never written"))?;
        Ok(Chunk {
            path: path.to_owned(),
            group,
            rows,
            first_ns,
            last_ns,
        })
    };
    metadata
        .row_groups()
        .iter()
        .enumerate()
        .map(chunk)
        .collect()
}

fn check_version(path: &Path, metadata: &FileMetaData) -> Result<(), Error> {
    let value = |key: &str| {
        let pairs = metadata.key_value_metadata()?;
        let pair = pairs.iter().find(|pair| pair.key == key)?;
        pair.value.clone()
    };
    for (key, what, reads) in [
        (schema::KEY_SCHEMA, "schema", schema::SCHEMA_VERSION),
        (schema::KEY_EVENTS, "event", abi::UNSPIN_EVENTS_VERSION),
    ] {
        let found = value(key).unwrap_or_else(|| "none".to_owned());
        if found != reads.to_string() {
            return Err(Error::Version {
                path: path.to_owned(),
                what,
                found,
                reads,
            });
        }
    }
    Ok(())
}

fn row_count(group: &RowGroupMetaData) -> Option<u64> {
    let rows = u64::try_from(group.num_rows()).ok()?;
    (1..=schema::SEGMENT_ROWS_MAX as u64)
        .contains(&rows)
        .then_some(rows)
}

fn times(group: &RowGroupMetaData) -> Option<(u64, u64)> {
    match group.columns().get(schema::TIME_NS)?.statistics()? {
        Statistics::Int64(times) => {
            let (first, last) = (*times.min_opt()? as u64, *times.max_opt()? as u64);
            (first <= last).then_some((first, last))
        }
        _ => None,
    }
}

/// Reads a chunk's events.
///
/// # Errors
/// When it is not what [`inspect`] saw, or holds what is never written.
pub(crate) fn read(chunk: &Chunk) -> Result<ChunkEvents, Error> {
    let path = &chunk.path;
    let broken = |error: ParquetError| Error::broken(path, error);
    let file = File::open(path).map_err(Error::io(path, "opening"))?;
    let pages = file.try_clone().map_err(Error::io(path, "opening"))?;
    let reader = SerializedFileReader::new(file).map_err(broken)?;
    if chunk.group >= reader.num_row_groups() {
        return Err(Error::broken(path, "changed while it was being read"));
    }
    let group = reader.get_row_group(chunk.group).map_err(broken)?;
    if row_count(group.metadata()) != Some(chunk.rows) {
        return Err(Error::broken(path, "changed while it was being read"));
    }
    for column in schema::READ {
        let column = group.metadata().column(column);
        check_column(&pages, column, chunk.rows)
            .map_err(|why| Error::broken(path, format!("{}: {why}", column.column_path())))?;
    }
    let rows = Rows {
        group: group.as_ref(),
        rows: chunk.rows as usize,
    };
    let found = rows.events().map_err(broken)?;
    check_times(chunk, &found.events).map_err(|why| Error::broken(path, why))?;
    Ok(found)
}

/// Compression, and places and sizes within the file, of what the library will believe.
fn check_column(file: &File, column: &ColumnChunkMetaData, rows: u64) -> Result<(), String> {
    if column.compression() != Compression::SNAPPY || column.num_values() != rows as i64 {
        return Err("another codec or number of values than is ever written".to_owned());
    }
    let place = |offset: i64| u64::try_from(offset).map_err(|_| "a negative place".to_owned());
    let data = place(column.data_page_offset())?;
    let begin = match column.dictionary_page_offset() {
        Some(offset) => place(offset)?,
        None => data,
    };
    let length = place(column.compressed_size())?;
    let end = begin.checked_add(length).ok_or("a place beyond the file")?;
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    if end > size || !(begin..end).contains(&data) {
        return Err("a place beyond the file".to_owned());
    }
    pages::check(file, begin, length, rows).map_err(|error| error.to_string())
}

fn check_times(chunk: &Chunk, events: &[Event]) -> Result<(), &'static str> {
    let inside = |event: &Event| (chunk.first_ns..=chunk.last_ns).contains(&event.time_ns);
    if !events.iter().all(inside) {
        return Err("times beyond those that the segment states");
    }
    if !events.is_sorted_by_key(|event| event.time_ns) {
        return Err("its events are not in order");
    }
    Ok(())
}

struct Rows<'group> {
    group: &'group (dyn RowGroupReader + 'group),
    rows: usize,
}

impl Rows<'_> {
    fn events(&self) -> Result<ChunkEvents, ParquetError> {
        let times = self.required::<Int64Type>(schema::TIME_NS)?;
        let kinds = self.required::<Int32Type>(schema::KIND_NUMBER)?;
        let vms = self.optional::<Int32Type>(schema::VM)?;
        let vcpus = self.optional::<Int32Type>(schema::VCPU)?;
        let threads = self.required::<Int32Type>(schema::THREAD)?;
        let cpus = self.required::<Int32Type>(schema::CPU)?;
        let mut arguments = Vec::new();
        for index in 0..3 {
            arguments.push(self.optional::<Int64Type>(schema::ARGUMENT0 + index)?);
        }
        let argument = |index: usize, row: usize| {
            arguments[index][row].map_or(abi::UNSPIN_UNKNOWN as u64, |value| value as u64)
        };
        let mut found = ChunkEvents::default();
        for row in 0..self.rows {
            let raw = (|| {
                Some(abi::unspin_event {
                    time_ns: times[row] as u64,
                    kind: kinds[row] as u32,
                    vm: vms[row].map_or(abi::UNSPIN_NO_VM, |vm| vm as u32),
                    thread: threads[row] as u32,
                    vcpu: vcpus[row].map_or(Some(abi::UNSPIN_NO_VCPU as u16), narrow)?,
                    cpu: narrow(cpus[row])?,
                    argument0: argument(0, row),
                    argument1: argument(1, row),
                    argument2: argument(2, row),
                })
            })();
            match raw.and_then(|raw| Event::decode(&raw).ok()) {
                Some(event) => found.events.push(event),
                None => found.undecodable += 1,
            }
        }
        Ok(found)
    }

    fn required<T: DataType>(&self, column: usize) -> Result<Vec<T::T>, ParquetError>
    where
        T::T: Clone,
    {
        let values: Option<Vec<T::T>> = self.optional::<T>(column)?.into_iter().collect();
        values.ok_or_else(|| ParquetError::General("a value is missing".to_owned()))
    }

    /// Exactly one entry for each row.
    fn optional<T: DataType>(&self, column: usize) -> Result<Vec<Option<T::T>>, ParquetError>
    where
        T::T: Clone,
    {
        let wrong = || ParquetError::General("a column with another number of rows".to_owned());
        let reader = self.group.get_column_reader(column)?;
        let descriptor = self.group.metadata().column(column).column_descr();
        let may_be_missing = descriptor.max_def_level() > 0;
        let mut reader = parquet::column::reader::get_typed_column_reader::<T>(reader);
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let mut rows = 0;
        while rows < self.rows {
            let left = self.rows - rows;
            let (got, _, _) = reader.read_records(left, Some(&mut levels), None, &mut values)?;
            if got == 0 {
                return Err(wrong());
            }
            rows += got;
        }
        if !may_be_missing {
            levels = vec![0; values.len()];
        }
        if levels.len() != self.rows {
            return Err(wrong());
        }
        let present = if may_be_missing { 1 } else { 0 };
        let mut values = values.into_iter();
        let entries = levels.into_iter().map(|level| match level == present {
            true => values.next().map(Some),
            false => Some(None),
        });
        let entries: Option<Vec<_>> = entries.collect();
        entries
            .filter(|_| values.next().is_none())
            .ok_or_else(wrong)
    }
}

fn narrow(value: i32) -> Option<u16> {
    u16::try_from(value).ok()
}
