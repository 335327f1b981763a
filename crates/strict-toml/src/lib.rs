// SPDX-License-Identifier: MIT OR Apache-2.0
//! TOML that is read strictly, into any type that serde can read ([`read`]): what cannot be is refused with file, line and
//! column, with what is allowed there, and with the name that was probably meant. Scenarios and the configuration file are
//! read so.
//!
//! A type says what its values may be by the errors of its `Deserialize`: `invalid_value(Unexpected::Other(value), &"what is
//! expected")` is reported as "`key` cannot be value; expected what is expected", and `custom("what is wrong\nwhat is
//! allowed")` as it stands. Numbers are whole and not negative: no file of ours has others.

mod document;
mod error;
mod key_path;

use std::{fs, io::Read, path::Path};

use serde::de::DeserializeOwned;

use document::{Fault, Node, Refusal};

pub use error::Error;
pub use key_path::lines;

/// What messages know of a file's keys.
#[derive(Clone, Copy)]
pub struct Vocabulary {
    /// What the value of a table's key may be, in words; the table is "" for the top of the file.
    pub words_of: fn(table: &str, key: &str) -> String,
    /// What to write in place of a key that there is not (any more), by the section as the file writes it (`[[vm]]`, "" for the
    /// top); `None`: nothing is known of it.
    pub instead_of: fn(section: &str, key: &str) -> Option<&'static str>,
}

/// A rule between keys that a file breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The key whose value breaks it, as in `vm.0.vcpus`; empty: the file as a whole.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What is allowed.
    pub allowed: String,
}

/// Reads `text`, which messages call `file`, as a `T`, of which `check` makes what is wanted.
///
/// # Errors
/// Text that is no TOML, a key that `T` does not have, a value that it does not take, a rule that `check` says is broken: the
/// first of them in the order of the file.
pub fn read<T: DeserializeOwned, R>(
    text: &str,
    file: &str,
    vocabulary: Vocabulary,
    check: impl FnOnce(T) -> Result<R, Breach>,
) -> Result<R, Error> {
    unplaced_read(text, vocabulary, check).map_err(|refusal| {
        let fault = match refusal {
            Refusal::Placed(fault) => fault,
            // The document itself places what nothing in it has placed.
            other => Fault {
                span: 0..0,
                message: other.to_string(),
                allowed: String::new(),
                missing: None,
            },
        };
        Error::at(file, text, fault)
    })
}

fn unplaced_read<T: DeserializeOwned, R>(
    text: &str,
    vocabulary: Vocabulary,
    check: impl FnOnce(T) -> Result<R, Breach>,
) -> Result<R, Refusal> {
    let document = document::parse(text)?;
    let document = Node::document(&document, &vocabulary);
    check(T::deserialize(document)?).map_err(|breach| {
        Refusal::Placed(Fault {
            span: document.find(&breach.path).span(),
            message: breach.message,
            allowed: breach.allowed,
            missing: None,
        })
    })
}

/// The text of a file.
///
/// # Errors
/// In words: a file that cannot be read, has more than `max_bytes`, or is not UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("it is longer than {max_bytes} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| format!("it is not UTF-8 text ({error})"))
}
