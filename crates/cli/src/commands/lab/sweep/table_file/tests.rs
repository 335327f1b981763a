// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use proptest::prelude::*;

/// More columns than a sweep has, so that the footer behind the checksum is longer than any.
fn table() -> Vec<TableColumn> {
    let column = |number: i64| TableColumn {
        name: format!("column_{number}"),
        values: match number % 3 {
            0 => Values::Words(vec![format!("word {number}"), String::new(), "µ".into()]),
            _ => Values::Integers(vec![number, i64::MIN, i64::MAX]),
        },
    };
    (0..100).map(column).collect()
}

fn written() -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.parquet");
    let metadata = vec![("key".to_owned(), "value".to_owned())];
    write(&path, &metadata, &table(), |file| {
        file.rows(&table())?;
        file.rows(&table())
    })
    .expect("room");
    let reader = open(&path).expect("whole");
    assert_eq!(value(&reader, "key").as_deref(), Some("value"));
    let mut twice = table();
    for (all, more) in twice.iter_mut().zip(table()) {
        all.values.append(more.values).expect("the same kinds");
    }
    assert_eq!(read(&reader).expect("readable"), twice);
    let names = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(names, 1);
    fs::read(&path).expect("the file")
}

#[test]
fn what_fails_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.parquet");
    let failed = write(&path, &Vec::new(), &table(), |_| bail!("no"));
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
        static WHOLE: std::sync::LazyLock<Vec<u8>> = std::sync::LazyLock::new(written);
        let mut bytes = WHOLE.clone();
        for (place, bits) in edits {
            let place = place.index(bytes.len());
            bytes[place] ^= bits;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        // Two edits of one place may undo each other.
        prop_assume!(bytes != *WHOLE);
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.parquet");
        fs::write(&path, &bytes).expect("room");
        prop_assert!(open(&path).is_err());
    }
}
