// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a text cites, in prose or in a comment: rulings, claims, places of the tree.

use std::sync::LazyLock;

use regex::Regex;

/// The top folders of the tree: a word that begins with one of them and a slash names a place.
const TOP: &str = "abi|bpf|crates|docs|guest|guest-linux|kmod|locks|policy|scenarios|setup|testbed|tests|benchmarks";

static RULINGS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)\brulings?[ \u{a0}]([0-9]+(?:(?:, | and | to |, and )[0-9]+)*)").unwrap()
});
static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new("[0-9]+").unwrap());
static CLAIM: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\bclaims? ([A-Z][0-9]{2})(?: to ([A-Z][0-9]{2}))?\b").unwrap());
static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?:^|[\s(`"'\[])((?:{TOP})/[A-Za-z0-9_./-]*)(?:#([a-z0-9-]+)|([*{{<$%]))?"#
    ))
    .unwrap()
});

/// One citation.
#[derive(Debug, PartialEq, Eq)]
pub enum Citation {
    /// "ruling 22"
    Ruling(u32),
    /// "claim O05"
    Claim(String),
    /// A file or folder of the tree.
    Place(String),
    /// An anchor of a document.
    Anchor(String, String),
}

/// Every citation of `text`, with its line (from 1).
pub fn find(text: &str) -> Vec<(usize, Citation)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        found.extend(of_line(line).into_iter().map(|cited| (index + 1, cited)));
    }
    found
}

fn of_line(line: &str) -> Vec<Citation> {
    let mut found = Vec::new();
    for rulings in RULINGS.captures_iter(line) {
        let numbers = NUMBER.find_iter(&rulings[1]);
        found.extend(
            numbers.filter_map(|number| Some(Citation::Ruling(number.as_str().parse().ok()?))),
        );
    }
    for claims in CLAIM.captures_iter(line) {
        let both = [claims.get(1), claims.get(2)];
        found.extend(
            both.into_iter()
                .flatten()
                .map(|claim| Citation::Claim(claim.as_str().to_owned())),
        );
    }
    for place in PLACE.captures_iter(line) {
        // What goes on with a pattern or a variable names a folder only.
        let name = match place.get(3) {
            None => &place[1],
            Some(_) => place[1].rsplit_once('/').map_or("", |(folder, _)| folder),
        };
        let name = without_placeholder(name.trim_end_matches(['.', '/', '-']));
        found.push(match place.get(2) {
            Some(anchor) => Citation::Anchor(name.to_owned(), anchor.as_str().to_owned()),
            None => Citation::Place(name.to_owned()),
        });
    }
    found
}

/// `name` up to its first part in capitals, which stands for any name: `locks` of `locks/NAME.h`.
fn without_placeholder(name: &str) -> &str {
    let capitals = |part: &&str| {
        let stem = part.split('.').next().unwrap_or(part);
        stem.len() > 2
            && *part != "README.md"
            && stem.chars().all(|letter| letter.is_ascii_uppercase())
    };
    match name.split('/').find(capitals) {
        Some(part) => name[..name.find(part).unwrap_or(0)].trim_end_matches('/'),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_rulings_are_one_citation_each() {
        let cited = find("Ruling 9.\nrulings 8, 13 and 30 to 32");
        let numbers: Vec<_> = [(1, 9), (2, 8), (2, 13), (2, 30), (2, 32)]
            .map(|(line, number)| (line, Citation::Ruling(number)))
            .into();
        assert_eq!(cited, numbers);
    }

    #[test]
    fn ranges_of_claims_name_both_ends() {
        let claims = ["O12", "O19"].map(|claim| (1, Citation::Claim(claim.into())));
        assert_eq!(find("(claims O12 to O19)"), claims);
    }

    #[test]
    fn an_anchor_belongs_to_its_document() {
        let anchor = Citation::Anchor("docs/facts.md".into(), "yield-to".into());
        assert_eq!(find("(docs/facts.md#yield-to)."), [(1, anchor)]);
    }

    #[test]
    fn patterns_name_their_folder_and_a_full_stop_ends_a_sentence() {
        let places = ["locks/ticket.h", "tests/bugs", "setup", "locks"]
            .map(|name| (1, Citation::Place(name.into())));
        assert_eq!(
            find("`locks/ticket.h`. tests/bugs/*.toml setup/$NAME locks/NAME.h src/guest/a.h"),
            places
        );
    }
}
