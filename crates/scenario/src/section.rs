// SPDX-License-Identifier: MIT OR Apache-2.0
//! One table of a scenario, read key by key; every refusal says where and what is allowed.

use std::{fmt::Display, ops::Range};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{error::ScenarioError, quantity::Fault};

/// The file being read.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub file: &'a str,
    pub text: &'a str,
}

impl Source<'_> {
    /// An error at `span` of this file.
    pub fn error(
        self,
        span: Range<usize>,
        message: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError::at(self.file, self.text, span, message, allowed)
    }
}

/// A value with its place.
pub(crate) struct Found<'a, 'i> {
    pub source: Source<'a>,
    pub key: &'static str,
    pub value: &'a DeValue<'i>,
    pub span: Range<usize>,
}

/// One table, of which all keys are known.
pub(crate) struct Section<'a, 'i> {
    source: Source<'a>,
    /// For messages: `[host]`, `[[vm]]`; empty at the top.
    name: &'static str,
    span: Range<usize>,
    table: &'a DeTable<'i>,
    keys: &'static [&'static str],
}

impl<'a, 'i> Section<'a, 'i> {
    /// Refuses the first key (in order of the file) that is not one of `keys`.
    pub fn open(
        source: Source<'a>,
        name: &'static str,
        span: Range<usize>,
        table: &'a DeTable<'i>,
        keys: &'static [&'static str],
    ) -> Result<Self, ScenarioError> {
        let unknown = table
            .keys()
            .filter(|key| !keys.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        if let Some(key) = unknown {
            let message = format!("unknown key `{}`{}", key.get_ref(), place(name));
            let help = match crate::renamed::instead_of(name, key.get_ref()) {
                Some(instead) => instead.to_owned(),
                None => one_of(key.get_ref(), keys.iter().copied()),
            };
            return Err(source.error(key.span(), message, help));
        }
        Ok(Section {
            source,
            name,
            span,
            table,
            keys,
        })
    }

    /// The value of `key`, if it is there.
    pub fn find(&self, key: &'static str) -> Option<Found<'a, 'i>> {
        debug_assert!(
            self.keys.contains(&key),
            "`{key}` is not in the section's list"
        );
        let value = self.table.get(key)?;
        Some(Found {
            source: self.source,
            key,
            value: value.get_ref(),
            span: value.span(),
        })
    }

    /// The value of `key`, or an error at the table that lacks it.
    pub fn require(
        &self,
        key: &'static str,
        allowed: impl Display,
    ) -> Result<Found<'a, 'i>, ScenarioError> {
        self.find(key)
            .ok_or_else(|| self.error(format!("`{key}` is missing"), format!("expected {allowed}")))
    }

    /// An error about the table as a whole.
    pub fn error(&self, message: impl Display, allowed: impl Into<String>) -> ScenarioError {
        self.source.error(
            self.span.clone(),
            format!("{message}{}", place(self.name)),
            allowed,
        )
    }

    /// A whole number between `low` and `high`, `default` when absent.
    pub fn number(
        &self,
        key: &'static str,
        low: u32,
        high: u32,
        default: u32,
    ) -> Result<u32, ScenarioError> {
        Ok(self.number_if(key, low, high)?.unwrap_or(default))
    }

    /// A whole number between `low` and `high`, if it is there.
    pub fn number_if(
        &self,
        key: &'static str,
        low: u32,
        high: u32,
    ) -> Result<Option<u32>, ScenarioError> {
        self.find(key)
            .map(|found| found.integer(u64::from(low), u64::from(high)))
            .transpose()
            .map(|value| value.map(|value| u32::try_from(value).unwrap_or(high)))
    }

    /// true or false, `default` when absent.
    pub fn boolean(&self, key: &'static str, default: bool) -> Result<bool, ScenarioError> {
        let Some(found) = self.find(key) else {
            return Ok(default);
        };
        match found.value {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(found.wrong("true or false")),
        }
    }

    /// One of a few words, `default` when absent.
    pub fn word<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
        default: T,
    ) -> Result<T, ScenarioError> {
        self.find(key)
            .map_or(Ok(default), |found| found.word(words))
    }
}

impl<'a, 'i> Found<'a, 'i> {
    /// "this value is not what is expected here".
    pub fn wrong(&self, expected: impl Display) -> ScenarioError {
        let message = format!("`{}` cannot be {}", self.key, describe(self.value));
        self.refuse(message, format!("expected {expected}"))
    }

    /// An error at this value.
    pub fn refuse(&self, message: impl Into<String>, allowed: impl Into<String>) -> ScenarioError {
        self.source.error(self.span.clone(), message, allowed)
    }

    /// A whole number between `low` and `high`.
    pub fn integer(&self, low: u64, high: u64) -> Result<u64, ScenarioError> {
        let expected = || self.wrong(format!("a whole number from {low} to {high}"));
        let DeValue::Integer(number) = self.value else {
            return Err(expected());
        };
        let value =
            i128::from_str_radix(number.as_str(), number.radix()).map_err(|_| expected())?;
        match u64::try_from(value) {
            Ok(value) if (low..=high).contains(&value) => Ok(value),
            _ => Err(expected()),
        }
    }

    /// Text.
    pub fn text(&self, expected: impl Display) -> Result<&'a str, ScenarioError> {
        self.value.as_str().ok_or_else(|| self.wrong(expected))
    }

    /// One of a few words.
    pub fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, ScenarioError> {
        let names = || words.iter().map(|(name, _)| *name);
        let text = self.text(one_of("", names()))?;
        words
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                self.refuse(
                    format!("there is no {} `{text}`", self.key),
                    one_of(text, names()),
                )
            })
    }

    /// Text in the grammar of `read`; its faults get their place here.
    pub fn quantity<T>(
        &self,
        expected: &str,
        read: impl Fn(&str) -> Result<T, Fault>,
    ) -> Result<T, ScenarioError> {
        let text = self.text(expected)?;
        read(text).map_err(|fault| {
            self.refuse(
                format!("`{}`: {}", self.key, fault.0),
                format!("expected {expected}"),
            )
        })
    }

    /// The same key's value inside another one, such as an element of an array.
    pub fn inner(&self, value: &'a Spanned<DeValue<'i>>) -> Found<'a, 'i> {
        Found {
            source: self.source,
            key: self.key,
            value: value.get_ref(),
            span: value.span(),
        }
    }
}

/// " in [host]", or nothing at the top.
fn place(name: &str) -> String {
    if name.is_empty() {
        String::new()
    } else {
        format!(" in {name}")
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

/// "did you mean `a`? There are `a`, `b`".
fn one_of<'n>(given: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    let list = names
        .clone()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    let near = names
        .map(|name| (strsim::osa_distance(given, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 2 && *distance < name.len());
    match near {
        Some((_, name)) if !given.is_empty() => format!("did you mean `{name}`? There are {list}"),
        _ => format!("there are {list}"),
    }
}
