// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes one segment: a Parquet file of one row group, whole or not there.

use std::{
    fs::{self, File},
    path::Path,
};

use parquet::{
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::writer::{SerializedFileWriter, SerializedRowGroupWriter},
};
use unspin_abi as abi;
use unspin_events::{Event, GuestMode, KIND_NAMES, What};

use crate::{
    Error,
    hashes::{HashedFile, Hashes},
    names, schema,
};

/// Writes `events`, in their order, to `path`: under another name first, so that a file of that name is whole and its hash in
/// the list.
///
/// # Errors
/// When the system refuses, with nothing left behind.
///
/// # Panics
/// With no events, or with more than [`schema::SEGMENT_ROWS_MAX`]: that is a mistake of the caller.
pub(crate) fn write(path: &Path, hashes: &mut Hashes, events: &[Event]) -> Result<(), Error> {
    assert!((1..=schema::SEGMENT_ROWS_MAX).contains(&events.len()));
    write_file(path, hashes, |writer| {
        let mut rows = writer.next_row_group()?;
        write_rows(&mut rows, events)?;
        rows.close()?;
        Ok(())
    })
}

/// Creates a segment file: `fill` writes its row groups; then footer, disk, hash, name.
///
/// # Errors
/// When the system refuses, with nothing left behind.
pub(crate) fn write_file(
    path: &Path,
    hashes: &mut Hashes,
    fill: impl FnOnce(&mut SerializedFileWriter<HashedFile>) -> Result<(), ParquetError>,
) -> Result<(), Error> {
    let partial = names::partial(path);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let done = create(&partial, fill).and_then(|hash| {
        hashes.add(&name, hash)?;
        fs::rename(&partial, path).map_err(Error::io(path, "giving a finished segment its name"))
    });
    if done.is_err() {
        // It is told why; a rest that cannot be removed either is skipped by every reader.
        let _ = fs::remove_file(&partial);
    }
    done
}

fn create(
    partial: &Path,
    fill: impl FnOnce(&mut SerializedFileWriter<HashedFile>) -> Result<(), ParquetError>,
) -> Result<u64, Error> {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(partial)
        .map_err(Error::io(partial, "creating a segment"))?;
    let file = HashedFile::new(file);
    let mut writer = SerializedFileWriter::new(file, schema::schema(), schema::properties())
        .map_err(Error::writing(partial))?;
    fill(&mut writer).map_err(Error::writing(partial))?;
    let file = writer.into_inner().map_err(Error::writing(partial))?;
    file.finish().map_err(Error::io(partial, "writing"))
}

/// A column's values, and which rows have one.
struct Column<T> {
    values: Vec<T>,
    levels: Vec<i16>,
}

impl<T> Column<T> {
    fn new(rows: impl Iterator<Item = Option<T>>) -> Column<T> {
        let capacity = rows.size_hint().0;
        let mut column = Column {
            values: Vec::with_capacity(capacity),
            levels: Vec::with_capacity(capacity),
        };
        for value in rows {
            column.levels.push(i16::from(value.is_some()));
            column.values.extend(value);
        }
        column
    }
}

/// In the order of the schema. One column at a time: at most 24 bytes a row beside the events themselves.
fn write_rows(
    rows: &mut SerializedRowGroupWriter<'_, HashedFile>,
    events: &[Event],
) -> Result<(), ParquetError> {
    let raw: Vec<abi::unspin_event> = events.iter().map(Event::encode).collect();
    let known = |value: u64| (value != abi::UNSPIN_UNKNOWN as u64).then_some(value as i64);
    let detail = |event: &Event| Details::of(&event.what);
    let kinds = KIND_NAMES.map(ByteArray::from);
    required::<Int64Type>(rows, raw.iter().map(|event| event.time_ns as i64))?;
    required::<ByteArrayType>(
        rows,
        raw.iter().map(|event| kinds[event.kind as usize].clone()),
    )?;
    optional::<Int32Type>(
        rows,
        events.iter().map(|event| event.vm.map(|vm| vm as i32)),
    )?;
    optional::<Int32Type>(rows, events.iter().map(|event| event.vcpu.map(i32::from)))?;
    required::<Int32Type>(rows, raw.iter().map(|event| event.thread as i32))?;
    required::<Int32Type>(rows, raw.iter().map(|event| i32::from(event.cpu)))?;
    optional::<Int64Type>(rows, raw.iter().map(|event| known(event.argument0)))?;
    optional::<Int64Type>(rows, raw.iter().map(|event| known(event.argument1)))?;
    optional::<Int64Type>(rows, raw.iter().map(|event| known(event.argument2)))?;
    required::<Int32Type>(rows, raw.iter().map(|event| event.kind as i32))?;
    let other_thread = |event| detail(event).other_thread.map(|thread| thread as i32);
    optional::<Int32Type>(rows, events.iter().map(other_thread))?;
    let other_vm = |event| detail(event).other_vm.map(|vm| vm as i32);
    optional::<Int32Type>(rows, events.iter().map(other_vm))?;
    let other_vcpu = |event| detail(event).other_vcpu.map(i32::from);
    optional::<Int32Type>(rows, events.iter().map(other_vcpu))?;
    let words = ["user", "kernel"].map(|word| (word, ByteArray::from(word)));
    let mode = |event| {
        let mode = detail(event).guest_mode?;
        let found = words.iter().find(|(word, _)| *word == mode);
        found.map(|(_, bytes)| bytes.clone())
    };
    optional::<ByteArrayType>(rows, events.iter().map(mode))?;
    optional::<BoolType>(rows, events.iter().map(|event| detail(event).runnable))
}

fn required<T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, HashedFile>,
    values: impl Iterator<Item = T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = values.collect();
    put::<T>(rows, &values, None)
}

fn optional<T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, HashedFile>,
    values: impl Iterator<Item = Option<T::T>>,
) -> Result<(), ParquetError> {
    let column = Column::new(values);
    put::<T>(rows, &column.values, Some(&column.levels))
}

fn put<T: DataType>(
    rows: &mut SerializedRowGroupWriter<'_, HashedFile>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let missing = || ParquetError::General("the schema has fewer columns".to_owned());
    let mut column = rows.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// What the arguments of an event say, under names that all kinds share. Fields that its kind does not have are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details {
    /// Thread that left or follows, that woke, or that was to be yielded to.
    pub other_thread: Option<u32>,
    /// VM of that thread.
    pub other_vm: Option<u32>,
    /// vCPU that was to be yielded to, or that receives an interrupt.
    pub other_vcpu: Option<u16>,
    /// Where the guest was.
    pub guest_mode: Option<&'static str>,
    /// Whether the thread that left its pCPU could have gone on.
    pub runnable: Option<bool>,
}

impl Details {
    pub fn of(what: &What) -> Details {
        let none = Details::default();
        match *what {
            What::SwitchIn {
                previous_thread,
                previous_vm,
            } => Details {
                other_thread: Some(previous_thread),
                other_vm: previous_vm,
                ..none
            },
            What::SwitchOut {
                next_thread,
                next_vm,
                runnable,
                mode,
                ..
            } => Details {
                other_thread: Some(next_thread),
                other_vm: next_vm,
                guest_mode: mode.map(word),
                runnable: Some(runnable),
                ..none
            },
            What::SchedWakeup { waker_thread } => Details {
                other_thread: Some(waker_thread),
                ..none
            },
            What::PauseExit { mode, .. } => Details {
                guest_mode: mode.map(word),
                ..none
            },
            What::YieldTo {
                target_vcpu,
                target_thread,
                ..
            } => Details {
                other_thread: Some(target_thread),
                other_vcpu: target_vcpu,
                ..none
            },
            What::Ipi { receiver_vcpu, .. } => Details {
                other_vcpu: Some(receiver_vcpu),
                ..none
            },
            _ => none,
        }
    }
}

fn word(mode: GuestMode) -> &'static str {
    match mode {
        GuestMode::User => "user",
        GuestMode::Kernel => "kernel",
    }
}
