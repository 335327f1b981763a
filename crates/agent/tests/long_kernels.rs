// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every program against the files of every kernel of `tests/kernels.tsv`, which `setup/kernels` fetches (some 230 MB):
//! each fits, or lacks just what that table says.

use std::{collections::BTreeMap, fs, path::Path};

#[path = "kernels/compat.rs"]
#[allow(dead_code, reason = "each test uses a part")]
mod compat;

/// Rows of the table that name a folder: kernel, object, what it lacks ("-": nothing; `a, b`).
fn table() -> Vec<(String, String, String)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/kernels.tsv");
    let text = fs::read_to_string(file).expect("the table");
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    let rows = rows.map(|line| {
        let columns: Vec<&str> = line.split('\t').collect();
        let [kernel, object, lacks] = columns[..] else {
            panic!("three columns: {line}");
        };
        (kernel.to_owned(), object.to_owned(), lacks.to_owned())
    });
    rows.collect()
}

#[test]
fn every_kernel_is_as_the_table_says() {
    let folder = compat::cache().join("kernels");
    let mut said: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for (kernel, object, lacks) in table() {
        said.entry(kernel).or_default().insert(object, lacks);
    }
    let mut wrong = Vec::new();
    for (kernel, said) in &said {
        let fits = compat::check(&folder.join(kernel), "kvm_amd");
        compat::print(kernel, "kvm_amd", &fits);
        for object in ["observe", "steer", "steer_dry", "thread_run_states"] {
            let missing = compat::missing_of(&fits, object).join(", ");
            let found = if missing.is_empty() { "-" } else { &missing };
            let expected = said.get(object).map_or("no row", String::as_str);
            if found != expected {
                wrong.push(format!("{kernel}\t{object}\t{found}"));
            }
        }
        // Intel's module lacks nothing that AMD's has: all that is AMD's alone is asked for first.
        let intel = compat::check(&folder.join(kernel), "kvm_intel");
        compat::print(kernel, "kvm_intel", &intel);
        for (one, other) in fits.iter().zip(&intel) {
            assert_eq!(one.missing, other.missing, "{kernel}: {}", one.program);
        }
    }
    assert!(
        wrong.is_empty(),
        "not as in tests/kernels.tsv:\n{}",
        wrong.join("\n")
    );
    assert!(said.len() >= 5, "{said:?}");
}
