// SPDX-License-Identifier: MIT OR Apache-2.0
//! No floating point in engine or model: rounding depends on compilers and libraries, and a run would then too.
#![allow(missing_docs)]

use std::{fs, path::Path};

/// The code of a Rust or C source: no comments, strings, or what follows `#[cfg(test)]` with a body.
fn code(source: &str) -> String {
    let source = match source.find("#[cfg(test)]\nmod tests {") {
        Some(end) => &source[..end],
        None => source,
    };
    let (mut code, mut rest) = (String::new(), source);
    while let Some(next) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n')
        } else if rest.starts_with("/*") {
            rest.find("*/").map(|end| end + 2)
        } else if next == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|letter| {
                let ends = letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                ends
            });
            end.map(|end| end + 2)
        } else {
            code.push(next);
            rest = &rest[next.len_utf8()..];
            continue;
        };
        rest = skipped.map_or("", |end| &rest[end..]);
        code.push(' ');
    }
    code
}

/// The first type or number of the code that is a float.
fn float(source: &str) -> Option<String> {
    let code = code(source);
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut types = code.split(|letter| !is_word(letter));
    if let Some(found) = types.find(|word| ["f32", "f64", "float", "double"].contains(word)) {
        return Some(found.to_owned());
    }
    let letters: Vec<char> = code.chars().collect();
    let starts = (1..letters.len()).filter(|at| {
        // Not within an identifier, and not a field of a tuple.
        letters[*at].is_ascii_digit() && !is_word(letters[at - 1]) && letters[at - 1] != '.'
    });
    starts.map(|start| &letters[start..]).find_map(number)
}

/// The number at the beginning of that text, if it is a float.
fn number(text: &[char]) -> Option<String> {
    let digits = text
        .iter()
        .take_while(|letter| letter.is_ascii_digit() || **letter == '_')
        .count();
    let at = |place: usize| text.get(digits + place).copied().unwrap_or(' ');
    let found = match at(0) {
        // 1.5 and "1. ", but no range and no method call.
        '.' => at(1) != '.' && !at(1).is_alphabetic(),
        'e' | 'E' => at(1).is_ascii_digit() || at(1) == '-',
        'f' => matches!((at(1), at(2)), ('3', '2') | ('6', '4')),
        _ => false,
    };
    found.then(|| text.iter().take(digits + 4).collect())
}

/// Folders that are neither engine nor model: tests, and the reader of a host's recording, which runs before a scenario
/// exists.
const BESIDE: [&str; 2] = ["tests", "from_recording"];

fn files(folder: &Path, all: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && !BESIDE.iter().any(|beside| name == *beside) {
            files(&path, all);
        } else if path.is_file() {
            all.push(path);
        }
    }
}

#[test]
fn engine_and_model_have_no_floating_point() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in ["src", "c"] {
        files(&own.join(folder), &mut all);
    }
    assert!(all.len() > 40, "{} files", all.len());
    for path in all {
        let source = fs::read_to_string(&path).expect("text");
        let found = float(&source);
        assert_eq!(found, None, "{}", path.display());
    }
}

#[test]
fn floats_are_found() {
    for bad in [
        "fn f(x: f64) {}",
        "let y = x as f32;",
        "let y = 1.5;",
        "let y = 2f64;",
        "let y = 1e9 as u64;",
        "double x;",
        "use std::f64;",
        "x.max(0.5)",
    ] {
        assert!(float(bad).is_some(), "{bad}");
    }
    for good in [
        "// 1.5 f64\nlet x = 0..8;",
        "pair.0.1",
        "x / 64..end.div_ceil(64)",
        "\"5.6 f64 \\\" 1.0\"",
        "1.max(2)",
        "let x = 0x9e37_79b9;",
        "0..=7",
        "#[cfg(test)]\nmod tests { 1.5 }",
    ] {
        assert_eq!(float(good), None, "{good}");
    }
}
