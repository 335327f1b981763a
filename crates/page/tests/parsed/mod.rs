// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page read as a browser reads it.

use base64::{Engine, engine::general_purpose::STANDARD};
use html5gum::{Token, Tokenizer, emitters::default::DefaultEmitter};
use sha2::{Digest, Sha256};

/// A script or style as a Content-Security-Policy names it.
pub fn hash(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// The page's elements.
#[derive(Default)]
pub struct Parsed {
    elements: Vec<Element>,
}

#[derive(Default)]
struct Element {
    tag: String,
    attributes: Vec<(String, String)>,
    text: String,
}

impl Parsed {
    pub fn tags(&self) -> impl Iterator<Item = &str> {
        self.elements.iter().map(|element| element.tag.as_str())
    }

    pub fn all_attributes(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.elements.iter().flat_map(|element| {
            let attributes = element.attributes.iter();
            attributes.map(|(key, value)| (element.tag.as_str(), key.as_str(), value.as_str()))
        })
    }

    pub fn attributes(&self, tag: &str, key: &str) -> impl Iterator<Item = &str> {
        let all = self
            .all_attributes()
            .filter(move |(of, named, _)| *of == tag && *named == key);
        all.map(|(_, _, value)| value)
    }

    /// What stands directly behind each start of such an element, up to the next tag.
    pub fn texts(&self, tag: &str) -> Vec<String> {
        let elements = self.elements.iter().filter(|element| element.tag == tag);
        elements.map(|element| element.text.clone()).collect()
    }
}

/// Reads the page by the rules of the HTML standard's tokenizer.
pub fn parse(page: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut open = false;
    // What stands in a script or a style is text.
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(page, emitter) {
        match token.expect("a text is always read") {
            Token::StartTag(tag) => {
                open = true;
                parsed.elements.push(Element {
                    tag: text(&tag.name),
                    attributes: tag
                        .attributes
                        .iter()
                        .map(|(key, value)| (text(key), text(value)))
                        .collect(),
                    text: String::new(),
                });
            }
            Token::String(bytes) if open => {
                if let Some(last) = parsed.elements.last_mut() {
                    last.text += &text(&bytes);
                }
            }
            Token::EndTag(_) => open = false,
            Token::Error(error) => panic!("{error:?}"),
            _ => {}
        }
    }
    parsed
}
