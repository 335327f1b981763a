// SPDX-License-Identifier: MIT OR Apache-2.0
//! That the kernel has taken its own scheduler back: as a row, as lines for people, and all that it says of it in a file.

use unspin_report::row;

use super::failure_file::FailureFile;
use crate::{ChosenPolicies, SteerEnd};

row! {
    "steer_end", ["steer"];
    /// Why the kernel took its own scheduler back; the exit status is 3 then.
    pub struct EndRow {
        /// Who ended it: user-space, itself (our scheduler), kernel, sysrq, error, its-error, stall or other.
        pub kind: &'static str = ("kind", Text),
        /// The kernel's word for it.
        pub reason: String = ("reason", Text),
        /// More about it, by the kernel or by our scheduler; may be empty.
        pub message: String = ("message", Text),
        /// What to do about it.
        pub advice: &'static str,
        /// The file that keeps all this and the kernel's dump; null: it could not be written.
        pub dump_file: Option<String> = ("kept in", Text),
        /// Length of the kernel's dump; 0: it makes none of such an end. Bytes.
        pub dump_bytes: usize = ("dump, bytes", Count),
        /// Whether there was more to it than the kernel was given room for.
        pub dump_is_cut: bool,
    }
}

/// Keeps what the kernel says of the end, below `head`, which says who was steering where. What to say of it, a line each.
pub fn keep_end(
    file: &FailureFile,
    head: &str,
    chosen: &ChosenPolicies,
    end: &SteerEnd,
) -> (EndRow, Vec<String>) {
    let dump = match end.dump.as_str() {
        "" => "(the kernel makes no dump of such an end)\n",
        dump => dump,
    };
    let advice = end.advice();
    let text = format!(
        "{head}policy {chosen}\n{}: {end}\n{advice}\n\n{dump}",
        end.kind.name()
    );
    let kept = file.keep(&text);
    let mut lines = vec![
        format!("the kernel took its own scheduler back: {end}"),
        advice.to_owned(),
        match &kept {
            Ok(path) => format!("what it says of that is in {}", path.display()),
            Err(not_kept) => format!("what it says of that: {}", not_kept.says(&text)),
        },
    ];
    if end.dump_is_cut() {
        lines.push(format!(
            "there was more to its dump than the {} KiB that it is given room for",
            end.dump.len() >> 10
        ));
    }
    let row = EndRow {
        kind: end.kind.name(),
        reason: end.reason.clone(),
        message: end.message.clone(),
        advice,
        dump_file: kept.ok().map(|path| path.display().to_string()),
        dump_bytes: end.dump.len(),
        dump_is_cut: end.dump_is_cut(),
    };
    (row, lines)
}
