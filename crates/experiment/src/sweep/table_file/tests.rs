// SPDX-License-Identifier: MIT OR Apache-2.0
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, StringArray};
use proptest::prelude::*;

use super::*;

const NAME: &str = "t.parquet";

fn table() -> RecordBatch {
    let column = |number: i64| -> (String, ArrayRef) {
        let values: ArrayRef = match number % 3 {
            0 => Arc::new(StringArray::from(vec![&*format!("word {number}"), "", "µ"])),
            _ => Arc::new(Int64Array::from(vec![number, i64::MIN, i64::MAX])),
        };
        (format!("column_{number}"), values)
    };
    RecordBatch::try_from_iter((0..100).map(column)).expect("columns of one length")
}

/// The file's bytes, and its hash.
fn written() -> (Vec<u8>, u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let metadata = vec![("key".to_owned(), "value".to_owned())];
    let mut hashes = Hashes::read(folder.path()).expect("none");
    let groups = [table(), table()].map(Ok).into_iter();
    let (path, schema) = (folder.path().join(NAME), table().schema());
    write(folder.path(), NAME, &mut hashes, &metadata, &schema, groups).expect("room");
    let hash = hashes.of(NAME).expect("listed");
    let file = TableFile::open(&path, Some(hash)).expect("whole");
    assert_eq!(file.value("key").as_deref(), Some("value"));
    assert_eq!(file.value("ARROW:schema"), None);
    let twice = concat_batches(&schema, &[table(), table()]).expect("the same columns");
    let read = file.read().expect("readable");
    assert_eq!(read.columns(), twice.columns());
    let names = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(names, 2, "the file and the list");
    (fs::read(&path).expect("the file"), hash)
}

#[test]
fn what_fails_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut hashes = Hashes::read(folder.path()).expect("none");
    let groups = [Ok(table()), Err(anyhow::anyhow!("no"))].into_iter();
    let (metadata, schema) = (Vec::new(), table().schema());
    let failed = write(folder.path(), NAME, &mut hashes, &metadata, &schema, groups);
    assert!(failed.is_err());
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_changed_or_cut_file_is_no_table(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        static WHOLE: std::sync::LazyLock<(Vec<u8>, u64)> = std::sync::LazyLock::new(written);
        let mut bytes = WHOLE.0.clone();
        for (place, bits) in edits {
            let place = place.index(bytes.len());
            bytes[place] ^= bits;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        // Two edits of one place may undo each other.
        prop_assume!(bytes != WHOLE.0);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join(NAME);
        fs::write(&path, &bytes).expect("room");
        prop_assert!(TableFile::open(&path, Some(WHOLE.1)).is_err());
    }
}
