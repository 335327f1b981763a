// SPDX-License-Identifier: MIT OR Apache-2.0
//! The columns of a segment, named for people who open it with DuckDB or pandas.
//!
//! The first ten are the event itself, with the word of its kind beside the number. The others say the same again for
//! queries: who else took part, in which mode the guest was, whether a vCPU that left its CPU could have gone on.

use std::sync::{Arc, LazyLock};

use parquet::{
    basic::Compression,
    file::{
        metadata::KeyValue,
        properties::{EnabledStatistics, WriterProperties, WriterVersion},
    },
    schema::{
        parser::parse_message_type,
        types::{ColumnPath, TypePtr},
    },
};
use unspin_abi as abi;

/// Version of the columns and of `recording.json`. A reader refuses any other.
pub const SCHEMA_VERSION: u32 = 2;
/// Most rows of a row group, and so of a segment as it is written: 131,072 events are 8 MiB in memory.
pub const SEGMENT_ROWS_MAX: usize = 131_072;

/// Keys in a segment's metadata.
pub(crate) const KEY_SCHEMA: &str = "unspin.schema_version";
pub(crate) const KEY_EVENTS: &str = "unspin.events_version";

/// Column numbers of what the reader needs: numbers only, because the library's decoder of texts does not bear any bytes.
pub(crate) const TIME_NS: usize = 0;
pub(crate) const VM: usize = 2;
pub(crate) const VCPU: usize = 3;
pub(crate) const THREAD: usize = 4;
pub(crate) const CPU: usize = 5;
pub(crate) const ARGUMENT0: usize = 6;
pub(crate) const KIND_NUMBER: usize = 9;
/// All of them.
pub(crate) const READ: [usize; 9] = [
    TIME_NS,
    VM,
    VCPU,
    THREAD,
    CPU,
    ARGUMENT0,
    ARGUMENT0 + 1,
    ARGUMENT0 + 2,
    KIND_NUMBER,
];

const MESSAGE: &str = "
message events {
  required int64 time_ns (INTEGER(64, false));
  required binary kind (UTF8);
  optional int32 vm (INTEGER(32, false));
  optional int32 vcpu (INTEGER(16, false));
  required int32 thread (INTEGER(32, false));
  required int32 cpu (INTEGER(16, false));
  optional int64 argument0 (INTEGER(64, false));
  optional int64 argument1 (INTEGER(64, false));
  optional int64 argument2 (INTEGER(64, false));
  required int32 kind_number (INTEGER(32, false));
  optional int32 other_thread (INTEGER(32, false));
  optional int32 other_vm (INTEGER(32, false));
  optional int32 other_vcpu (INTEGER(16, false));
  optional binary guest_mode (UTF8);
  optional boolean runnable;
}";

/// The schema as the library knows it.
pub(crate) fn schema() -> TypePtr {
    static SCHEMA: LazyLock<TypePtr> = LazyLock::new(|| {
        Arc::new(parse_message_type(MESSAGE).expect("a constant, parsed by every test"))
    });
    Arc::clone(&SCHEMA)
}

/// How segments are written: Snappy everywhere; dictionaries for everything but times, given up by the library where
/// they do not pay. Only plain values and dictionaries, because they are what the reader lets pass (pages.rs).
pub(crate) fn properties() -> Arc<WriterProperties> {
    let pair = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let time = ColumnPath::from("time_ns");
    Arc::new(
        WriterProperties::builder()
            .set_writer_version(WriterVersion::PARQUET_1_0)
            .set_created_by("unspin".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_column_statistics_enabled(time.clone(), EnabledStatistics::Chunk)
            .set_column_dictionary_enabled(time, false)
            .set_dictionary_page_size_limit(64 << 10)
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(None)
            .set_key_value_metadata(Some(vec![
                pair(KEY_SCHEMA, SCHEMA_VERSION.to_string()),
                pair(KEY_EVENTS, abi::UNSPIN_EVENTS_VERSION.to_string()),
            ]))
            .build(),
    )
}
