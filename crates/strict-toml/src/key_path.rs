// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which key a place of a document belongs to, `vm.0.vcpus` as `--set` writes it, and which line a key stands in.

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

/// The path of the key, or of the value, that stands at just these bytes; empty: the document, or text that is no TOML.
pub(crate) fn at(text: &str, span: &Range<usize>) -> String {
    let Ok(document) = DeTable::parse(text) else {
        return String::new();
    };
    in_table(document.get_ref(), span).unwrap_or_default()
}

fn in_table(table: &DeTable<'_>, span: &Range<usize>) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let here = key.span() == *span;
        below(key.get_ref(), value, span).or_else(|| here.then(|| key.get_ref().to_string()))
    })
}

/// Every key of `text` that is no table, by its path (`vm.0.vcpus`), with the line that it stands in, from 1; empty for text that
/// is no TOML.
pub fn lines(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    if let Ok(document) = DeTable::parse(text) {
        lines_of(document.get_ref(), "", text, &mut found);
    }
    found
}

fn lines_of(table: &DeTable<'_>, above: &str, text: &str, found: &mut Vec<(String, usize)>) {
    for (key, value) in table {
        let path = match above {
            "" => key.get_ref().to_string(),
            above => format!("{above}.{}", key.get_ref()),
        };
        match value.get_ref() {
            DeValue::Table(table) => lines_of(table, &path, text, found),
            _ => {
                let before = &text.as_bytes()[..key.span().start.min(text.len())];
                let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
                found.push((path, line));
            }
        }
    }
}

/// The path if the place is this value or in it.
fn below(name: &str, value: &Spanned<DeValue<'_>>, span: &Range<usize>) -> Option<String> {
    let inner = match value.get_ref() {
        DeValue::Table(table) => in_table(table, span),
        DeValue::Array(array) => {
            let elements = array.iter().enumerate();
            elements
                .map(|(index, value)| below(&index.to_string(), value, span))
                .find_map(|path| path)
        }
        _ => None,
    };
    match inner {
        Some(path) => Some(format!("{name}.{path}")),
        None => (value.span() == *span).then(|| name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 1\n[host]\ncpus = 2\n[[vm]]\nvcpus = 3\n[[vm]]\nhold = { uniform = [\"a\", \"b\"] }\n";

    /// The path of the first place of these words.
    fn path(words: &str) -> String {
        let start = TEXT.find(words).expect("it is there");
        at(TEXT, &(start..start + words.len()))
    }

    #[test]
    fn keys_and_values_have_the_same_path() {
        assert_eq!((path("seed"), path("1")), ("seed".into(), "seed".into()));
        assert_eq!(path("cpus"), "host.cpus");
        assert_eq!(
            (path("vcpus"), path("3")),
            ("vm.0.vcpus".into(), "vm.0.vcpus".into())
        );
        assert_eq!(path("uniform"), "vm.1.hold.uniform");
        assert_eq!(path("\"b\""), "vm.1.hold.uniform.1");
    }

    #[test]
    fn keys_have_lines() {
        let text = "top = 1\n[serve]\n# a comment\nlisten = \"x\"\nvm = [\n 'a',\n]\n[steer]\npolicy = 'y'\n";
        let mut found = lines(text);
        found.sort();
        let wanted = [
            ("serve.listen", 4),
            ("serve.vm", 5),
            ("steer.policy", 9),
            ("top", 1),
        ];
        assert_eq!(found, wanted.map(|(path, line)| (path.to_owned(), line)));
        assert_eq!(lines("a = "), []);
        assert_eq!(lines(""), []);
    }

    #[test]
    fn what_is_nowhere_has_none() {
        assert_eq!(at(TEXT, &(0..0)), "");
        assert_eq!(at(TEXT, &(1..3)), "");
        assert_eq!(at("a = ", &(0..1)), "");
    }
}
