// SPDX-License-Identifier: MIT OR Apache-2.0
//! A TOML document as serde reads it. toml's own deserialiser turns every refusal into a sentence at once; this one keeps
//! what serde says of it (an unknown key and the known ones, a value and what is expected), so that the value, or the key,
//! that it is about can add its name and place, and what is near.

use std::{
    fmt::{self, Display},
    ops::Range,
};

use serde::{
    Deserializer,
    de::{
        self, Expected, IntoDeserializer, Unexpected, Visitor,
        value::{MapDeserializer, SeqDeserializer, StrDeserializer},
    },
};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::Vocabulary;

/// Why a document is refused. It gains its place on the way out of the value in which it arose.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// At a place.
    Placed(Fault),
    /// A value, as written or as it was understood, is not what is expected.
    Wrong(Option<String>, String),
    /// A key is none of these.
    UnknownKey(String, &'static [&'static str]),
    /// A word is none of these.
    UnknownWord(String, &'static [&'static str]),
    /// A table lacks this key.
    Missing(&'static str),
    /// What is wrong; what is allowed on a second line.
    Said(String),
}

/// What is wrong at a place of a document.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Bytes of the document.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What is allowed; empty: nothing to say.
    pub allowed: String,
    /// The key that the table at this place lacks, if that is what is wrong.
    pub missing: Option<&'static str>,
}

impl Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{self:?}")
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: Display>(message: T) -> Self {
        Refusal::Said(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Refusal::Wrong(None, expected.to_string())
    }

    fn invalid_value(value: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match value {
            Unexpected::Other(value) => {
                Refusal::Wrong(Some(value.to_owned()), expected.to_string())
            }
            _ => Refusal::Wrong(None, expected.to_string()),
        }
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Refusal::Wrong(Some(format!("an array of {length}")), expected.to_string())
    }

    fn unknown_variant(word: &str, words: &'static [&'static str]) -> Self {
        Refusal::UnknownWord(word.to_owned(), words)
    }

    fn unknown_field(key: &str, keys: &'static [&'static str]) -> Self {
        Refusal::UnknownKey(key.to_owned(), keys)
    }

    fn missing_field(key: &'static str) -> Self {
        Refusal::Missing(key)
    }
}

/// A value of the document.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a, 'i> {
    value: &'a DeValue<'i>,
    start: usize,
    end: usize,
    /// The key that it belongs to, empty for the document.
    key: &'a str,
    /// 0: the document; 1: what a key of it says; more: below.
    depth: u32,
    /// Whether it is an element of an array.
    element: bool,
    vocabulary: &'a Vocabulary,
}

impl<'a, 'i> Node<'a, 'i> {
    /// The whole document.
    pub fn document(value: &'a DeValue<'i>, vocabulary: &'a Vocabulary) -> Self {
        Node {
            value,
            start: 0,
            end: 0,
            key: "",
            depth: 0,
            element: false,
            vocabulary,
        }
    }

    /// The value at `path`, such as `vm.0.vcpus`; where the path ends early, the last there is.
    pub fn find(self, path: &str) -> Self {
        path.split('.').fold(self, |node, part| {
            let inner = match node.value {
                DeValue::Table(table) => table
                    .get_key_value(part)
                    .map(|(key, value)| node.of_key(key.get_ref(), value)),
                DeValue::Array(array) => part
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| array.get(index))
                    .map(|value| node.element(value)),
                _ => None,
            };
            inner.unwrap_or(node)
        })
    }

    /// Its bytes in the document.
    pub fn span(self) -> Range<usize> {
        self.start..self.end
    }

    fn of_key(self, key: &'a str, value: &'a Spanned<DeValue<'i>>) -> Self {
        Node {
            value: value.get_ref(),
            start: value.span().start,
            end: value.span().end,
            key,
            depth: self.depth + 1,
            element: false,
            vocabulary: self.vocabulary,
        }
    }

    fn element(self, value: &'a Spanned<DeValue<'i>>) -> Self {
        Node {
            element: true,
            depth: self.depth,
            ..self.of_key(self.key, value)
        }
    }

    /// What messages call it if it is a table.
    fn table_name(self) -> String {
        match (self.depth, self.element) {
            (0, _) => String::new(),
            (1, false) => format!("[{}]", self.key),
            (1, true) => format!("[[{}]]", self.key),
            _ => format!("`{}`", self.key),
        }
    }

    /// " in [host]", or nothing for the document.
    fn place_name(self) -> String {
        match self.depth {
            0 => String::new(),
            _ => format!(" in {}", self.table_name()),
        }
    }

    /// The refusal with this value's name and place, if it has none yet.
    fn placed(self, refusal: Refusal) -> Refusal {
        let key = self.key;
        let lacks = match refusal {
            Refusal::Missing(missing) => Some(missing),
            _ => None,
        };
        let (message, allowed) = match refusal {
            Refusal::Placed(..) | Refusal::UnknownKey(..) => return refusal,
            Refusal::Wrong(value, expected) => {
                let value = value.unwrap_or_else(|| describe(self.value));
                (
                    format!("`{key}` cannot be {value}"),
                    format!("expected {expected}"),
                )
            }
            Refusal::UnknownWord(word, words) => {
                (format!("there is no {key} `{word}`"), one_of(&word, words))
            }
            Refusal::Missing(missing) => (
                format!("`{missing}` is missing{}", self.place_name()),
                format!("expected {}", (self.vocabulary.words_of)(key, missing)),
            ),
            Refusal::Said(text) => {
                let (message, allowed) = text.split_once('\n').unwrap_or((&text, ""));
                (format!("`{key}`: {message}"), allowed.to_owned())
            }
        };
        Refusal::Placed(Fault {
            span: self.span(),
            message,
            allowed,
            missing: lacks,
        })
    }

    fn wrong(self, expected: impl Into<String>) -> Refusal {
        self.placed(Refusal::Wrong(None, expected.into()))
    }
}

impl<'de> Deserializer<'de> for Node<'_, '_> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let not_expected =
            |visitor: &V| <Refusal as de::Error>::invalid_type(Unexpected::Unit, visitor);
        let read = match self.value {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            // No key takes a negative number, a fraction or a date.
            DeValue::Integer(number) => {
                match u64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(value) => visitor.visit_u64(value),
                    Err(_) => Err(not_expected(&visitor)),
                }
            }
            DeValue::Float(_) | DeValue::Datetime(_) => Err(not_expected(&visitor)),
            DeValue::Array(array) => {
                let elements = array.iter().map(|value| self.element(value));
                visitor.visit_seq(SeqDeserializer::new(elements))
            }
            DeValue::Table(table) => {
                let mut entries: Vec<_> = table.iter().collect();
                // In order of the file, so that its first fault is the one that is reported.
                entries.sort_by_key(|(key, _)| key.span().start);
                visitor.visit_map(MapDeserializer::new(entries.into_iter().map(
                    |(key, value)| {
                        let name = key.get_ref().as_ref();
                        let span = key.span();
                        (
                            Key {
                                of: self,
                                name,
                                span,
                            },
                            self.of_key(name, value),
                        )
                    },
                )))
            }
        };
        read.map_err(|refusal| self.placed(refusal))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value {
            DeValue::Boolean(_) => self.deserialize_any(visitor),
            _ => Err(self.wrong("true or false")),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match self.value {
            DeValue::Table(_) => self.deserialize_any(visitor),
            _ => Err(self.wrong(format!("a table: {}", self.table_name()))),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match self.value {
            DeValue::String(text) => visitor
                .visit_enum(StrDeserializer::<Refusal>::new(text))
                .map_err(|refusal| self.placed(refusal)),
            _ => Err(self.wrong(format!("one of {}", list(words)))),
        }
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Refusal> for Node<'_, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// A key of the document.
struct Key<'a, 'i> {
    of: Node<'a, 'i>,
    name: &'a str,
    span: Range<usize>,
}

impl Key<'_, '_> {
    fn placed(self, refusal: Refusal) -> Refusal {
        let (message, allowed) = match refusal {
            Refusal::UnknownKey(key, keys) => {
                let instead = (self.of.vocabulary.instead_of)(&self.of.table_name(), &key);
                (
                    format!("unknown key `{key}`{}", self.of.place_name()),
                    instead.map_or_else(|| one_of(&key, keys), str::to_owned),
                )
            }
            Refusal::Said(text) => {
                let (message, allowed) = text.split_once('\n').unwrap_or((&text, ""));
                (message.to_owned(), allowed.to_owned())
            }
            other => return self.of.placed(other),
        };
        Refusal::Placed(Fault {
            span: self.span,
            message,
            allowed,
            missing: None,
        })
    }
}

impl<'de> Deserializer<'de> for Key<'_, '_> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor
            .visit_str(self.name)
            .map_err(|refusal| self.placed(refusal))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> IntoDeserializer<'de, Refusal> for Key<'_, '_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// A value as the file has it, for messages.
fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Datetime(value) => format!("the date {value}"),
        DeValue::Array(_) => "an array".into(),
        DeValue::Table(_) => "a table".into(),
    }
}

/// "`a`, `b`".
fn list(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

/// "did you mean `a`? There are `a`, `b`".
fn one_of(given: &str, names: &[&str]) -> String {
    let near = names
        .iter()
        .map(|name| (strsim::osa_distance(given, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 2 && *distance < name.len());
    match near {
        Some((_, name)) => format!("did you mean `{name}`? There are {}", list(names)),
        None => format!("there are {}", list(names)),
    }
}

/// The document of `text`.
pub(crate) fn parse(text: &str) -> Result<DeValue<'_>, Refusal> {
    match DeTable::parse(text) {
        Ok(table) => Ok(DeValue::Table(table.into_inner())),
        Err(error) => Err(Refusal::Placed(Fault {
            span: error.span().unwrap_or(0..0),
            message: format!("this is not TOML: {}", error.message()),
            allowed: String::new(),
            missing: None,
        })),
    }
}
