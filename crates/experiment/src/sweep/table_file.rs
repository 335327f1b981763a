// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table as a Parquet file, whole or not there: record batches of whole numbers and words, in Arrow's types, and the file's
//! hash in the list beside it (`unspin_recording::hashes`).

use std::{
    fs::{self, File},
    path::Path,
};

use anyhow::{Context, bail};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use parquet::{
    arrow::{
        ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder,
        arrow_writer::ArrowWriterOptions,
    },
    basic::Compression,
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
    },
};
use unspin_recording::hashes::{self, HashedFile, Hashes};

/// What a file is called until it is whole.
pub const PARTIAL: &str = ".partial";

/// Pairs of the file's metadata.
pub type Metadata = Vec<(String, String)>;

/// Creates a file of these columns in `folder`: `fill` gives its row groups, one after another; then footer, disk, hash, name.
///
/// # Errors
/// When the system or `fill` refuses, with no file left behind.
pub fn write(
    folder: &Path,
    name: &str,
    hashes: &mut Hashes,
    metadata: &Metadata,
    schema: &SchemaRef,
    fill: impl Iterator<Item = anyhow::Result<RecordBatch>>,
) -> anyhow::Result<()> {
    let (path, partial) = (folder.join(name), folder.join(format!("{name}{PARTIAL}")));
    let written = create(&partial, metadata, schema, fill)
        .and_then(|hash| {
            hashes.add(name, hash)?;
            Ok(fs::rename(&partial, &path)?)
        })
        .with_context(|| format!("writing {}", path.display()));
    if written.is_err() {
        // It is told why; the next one that resumes removes a rest.
        let _ = fs::remove_file(&partial);
    }
    written
}

fn create(
    partial: &Path,
    metadata: &Metadata,
    schema: &SchemaRef,
    fill: impl Iterator<Item = anyhow::Result<RecordBatch>>,
) -> anyhow::Result<u64> {
    let file = File::create_new(partial)?;
    let pairs = metadata
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by("unspin".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(pairs.collect()))
        .build();
    let options = ArrowWriterOptions::new()
        .with_properties(properties)
        .with_skip_arrow_metadata(true);
    let file = HashedFile::new(file);
    let mut writer = ArrowWriter::try_new_with_options(file, SchemaRef::clone(schema), options)?;
    for group in fill {
        writer.write(&group?)?;
        writer.flush()?;
    }
    Ok(writer.into_inner()?.finish()?)
}

/// A file that is as it was written, or of which nobody knows.
#[derive(Debug)]
pub struct TableFile(ParquetRecordBatchReaderBuilder<File>);

impl TableFile {
    /// Opens it. With its hash it is read once before the library sees it.
    ///
    /// # Errors
    /// A file that is cut off, changed, or no table.
    pub fn open(path: &Path, hash: Option<u64>) -> anyhow::Result<TableFile> {
        let mut file = File::open(path)?;
        if hash.is_some() && hash != Some(hashes::hash_of(&mut file)?) {
            bail!("its hash does not match");
        }
        Ok(TableFile(ParquetRecordBatchReaderBuilder::try_new(file)?))
    }

    /// The value of a key of its metadata.
    pub fn value(&self, key: &str) -> Option<String> {
        let metadata = self.0.metadata().file_metadata().key_value_metadata()?;
        let pair = metadata.iter().find(|pair| pair.key == key)?;
        pair.value.clone()
    }

    /// All rows.
    ///
    /// # Errors
    /// As [`TableFile::open`].
    pub fn read(self) -> anyhow::Result<RecordBatch> {
        let schema = SchemaRef::clone(self.0.schema());
        let batches = self.0.build()?.collect::<Result<Vec<_>, _>>()?;
        Ok(concat_batches(&schema, &batches)?)
    }
}

#[cfg(test)]
mod tests;
