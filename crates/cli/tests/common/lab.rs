// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of the lab's commands share.

use serde_json::Value;

use super::Ended;

/// A few iterations at a lock that four vCPUs share on two pCPUs, drawn.
pub const LAB_SCENARIO: &str = "seed = 3\nduration = \"20ms\"\nwarm_up = \"5ms\"\n\n[host]\ncpus = 2\nple_gap = 65535\n\n\
    [[vm]]\nvcpus = 4\nlock = \"ticket\"\nhold = { exponential = \"500ns\" }\nuser_work = { exponential = \"3us\" }\n";

/// The rows of that table; fails unless the command did its work.
#[track_caller]
pub fn rows(ended: &Ended, table: &str) -> Vec<Value> {
    assert_eq!(ended.status, 0, "{ended:#?}");
    let object: Value = serde_json::from_str(&ended.out).expect("one JSON object");
    let rows = object["rows"].as_array().expect("rows");
    let ours = rows.iter().filter(|row| row["table"] == table);
    ours.cloned().collect()
}

/// A number of a row.
#[track_caller]
pub fn number(row: &Value, key: &str) -> u64 {
    row[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {row}"))
}
