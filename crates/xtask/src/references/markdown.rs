// SPDX-License-Identifier: MIT OR Apache-2.0
//! Links and anchors of a document in Markdown.

use std::{collections::BTreeSet, sync::LazyLock};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

static ANCHOR: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("<a (?:id|name)=\"([^\"]+)\"").unwrap());

/// Where its links and pictures lead, with the line of each (from 1).
pub fn links(text: &str) -> Vec<(usize, String)> {
    let events = Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter();
    events
        .filter_map(|(event, range)| match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                let line = text[..range.start].matches('\n').count() + 1;
                Some((line, dest_url.into_string()))
            }
            _ => None,
        })
        .collect()
}

/// What a link to it may name after `#`: its headings as GitHub and mdbook spell them, and `<a id="...">`.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors: BTreeSet<String> = ANCHOR
        .captures_iter(text)
        .map(|anchor| anchor[1].to_owned())
        .collect();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                anchors.extend(heading.take().map(|words| slug(&words)))
            }
            _ => {}
        }
    }
    anchors
}

/// Lower case, spaces as dashes, no punctuation.
fn slug(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter => letter.is_alphanumeric().then_some(letter),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_written_anchors_are_anchors() {
        let text = "<a id=\"x-1\"></a>\n# `steer`, and *its* words\n```\n# no heading\n```\n";
        let expected = ["steer-and-its-words", "x-1"].map(str::to_owned);
        assert_eq!(anchors(text), BTreeSet::from(expected));
    }

    #[test]
    fn links_have_their_lines_and_code_has_none() {
        let text = "a\n[b](c.md#d) ![e](f.svg)\n`[g](h)`\n";
        assert_eq!(
            links(text),
            [(2, "c.md#d".to_owned()), (2, "f.svg".to_owned())]
        );
    }
}
