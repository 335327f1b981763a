// SPDX-License-Identifier: MIT OR Apache-2.0
//! A table of whole numbers and words as a Parquet file: whole or not there, with its checksum in its metadata.

use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

use anyhow::{Context, anyhow, bail};
use parquet::{
    basic::{Compression, LogicalType, Repetition, Type as Physical},
    column::reader::ColumnReader,
    data_type::{ByteArray, ByteArrayType, Int64Type},
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
        reader::{FileReader, SerializedFileReader},
        writer::SerializedFileWriter,
    },
    schema::types::Type,
};
use unspin_recording::checksum::{self, Checked};

/// What a file is called until it is whole.
pub const PARTIAL: &str = ".partial";
/// Key of the checksum.
const KEY_CHECKSUM: &str = "unspin.checksum";

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// Letters, digits and underscores.
    pub name: String,
    /// One for each row.
    pub values: Values,
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Whole numbers.
    Integers(Vec<i64>),
    /// Words.
    Words(Vec<String>),
}

impl Values {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Values::Integers(values) => values.len(),
            Values::Words(values) => values.len(),
        }
    }

    /// Puts another one's behind these.
    ///
    /// # Errors
    /// When they are of another kind.
    pub fn append(&mut self, other: Values) -> anyhow::Result<()> {
        match (self, other) {
            (Values::Integers(all), Values::Integers(more)) => all.extend(more),
            (Values::Words(all), Values::Words(more)) => all.extend(more),
            _ => bail!("columns of two kinds"),
        }
        Ok(())
    }
}

/// Pairs of the file's metadata.
pub type Metadata = Vec<(String, String)>;

/// A file that is being written, row group by row group.
pub struct TableWriter {
    writer: SerializedFileWriter<Checked>,
}

impl TableWriter {
    /// Adds a row group. The columns are those of the file, all of one length.
    ///
    /// # Errors
    /// What the library says.
    pub fn rows(&mut self, columns: &[TableColumn]) -> anyhow::Result<()> {
        let mut group = self.writer.next_row_group()?;
        for column in columns {
            let mut writer = group.next_column()?.context("the file has fewer columns")?;
            match &column.values {
                Values::Integers(values) => {
                    writer
                        .typed::<Int64Type>()
                        .write_batch(values, None, None)?;
                }
                Values::Words(words) => {
                    let words: Vec<ByteArray> =
                        words.iter().map(|word| word.as_str().into()).collect();
                    writer
                        .typed::<ByteArrayType>()
                        .write_batch(&words, None, None)?;
                }
            }
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }
}

/// Creates a file whose columns are like those (their values are not looked at): `fill` writes its row groups; then
/// footer, checksum, disk, name.
///
/// # Errors
/// When the system or `fill` refuses, with nothing left behind.
pub fn write(
    path: &Path,
    metadata: &Metadata,
    like: &[TableColumn],
    fill: impl FnOnce(&mut TableWriter) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(PARTIAL);
    let partial = Path::new(&name);
    let written = create(partial, metadata, like, fill)
        .and_then(|()| Ok(fs::rename(partial, path)?))
        .with_context(|| format!("writing {}", path.display()));
    if written.is_err() {
        // It is told why; the next one that resumes removes a rest.
        let _ = fs::remove_file(partial);
    }
    written
}

fn create(
    partial: &Path,
    metadata: &Metadata,
    like: &[TableColumn],
    fill: impl FnOnce(&mut TableWriter) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(partial)?;
    // The checksum stands last: it is looked for near the end of the file.
    let pairs = metadata
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let checksum = KeyValue::new(KEY_CHECKSUM.to_owned(), checksum::placeholder());
    let properties = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_created_by("unspin".to_owned())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .set_key_value_metadata(Some(pairs.chain([checksum]).collect()))
        .build();
    let writer =
        SerializedFileWriter::new(Checked::new(file), schema(like)?, Arc::new(properties))?;
    let mut table = TableWriter { writer };
    fill(&mut table)?;
    table.writer.into_inner()?.seal()?;
    Ok(())
}

fn schema(like: &[TableColumn]) -> anyhow::Result<Arc<Type>> {
    let field = |column: &TableColumn| -> anyhow::Result<Arc<Type>> {
        let (physical, logical) = match column.values {
            Values::Integers(_) => (Physical::INT64, None),
            Values::Words(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical);
        Ok(Arc::new(field.build()?))
    };
    let fields = like.iter().map(field).collect::<anyhow::Result<Vec<_>>>()?;
    let table = Type::group_type_builder("sweep").with_fields(fields);
    Ok(Arc::new(table.build()?))
}

/// A whole file; it is hashed before the library sees it.
///
/// # Errors
/// A file that is cut off, changed, or no table of this kind.
pub fn open(path: &Path) -> anyhow::Result<SerializedFileReader<File>> {
    let mut file = File::open(path)?;
    if !checksum::is_whole(&mut file)? {
        bail!("its checksum does not match");
    }
    Ok(SerializedFileReader::new(file)?)
}

/// The value of a key of its metadata.
pub fn value(reader: &SerializedFileReader<File>, key: &str) -> Option<String> {
    let metadata = reader.metadata().file_metadata().key_value_metadata()?;
    let pair = metadata.iter().find(|pair| pair.key == key)?;
    pair.value.clone()
}

/// All rows.
///
/// # Errors
/// As [`open`].
pub fn read(reader: &SerializedFileReader<File>) -> anyhow::Result<Vec<TableColumn>> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns: Vec<TableColumn> = schema
        .columns()
        .iter()
        .map(|column| TableColumn {
            name: column.name().to_owned(),
            values: match column.physical_type() {
                Physical::INT64 => Values::Integers(Vec::new()),
                _ => Values::Words(Vec::new()),
            },
        })
        .collect();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let rows = usize::try_from(group.metadata().num_rows())?;
        for (place, column) in columns.iter_mut().enumerate() {
            match (group.get_column_reader(place)?, &mut column.values) {
                (ColumnReader::Int64ColumnReader(mut from), Values::Integers(all)) => {
                    from.read_records(rows, None, None, all)?;
                }
                (ColumnReader::ByteArrayColumnReader(mut from), Values::Words(all)) => {
                    let mut words: Vec<ByteArray> = Vec::new();
                    from.read_records(rows, None, None, &mut words)?;
                    for word in words {
                        all.push(word.as_utf8()?.to_owned());
                    }
                }
                _ => return Err(anyhow!("a column of a kind that is never written")),
            }
        }
    }
    let rows = columns.first().map_or(0, |column| column.values.len());
    if columns.iter().any(|column| column.values.len() != rows) {
        bail!("columns of different lengths");
    }
    Ok(columns)
}

#[cfg(test)]
mod tests;
