// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a file, where, and what is allowed there.

use std::sync::Arc;

use miette::{Diagnostic, NamedSource, SourceSpan};

use crate::{document::Fault, key_path};

/// A file that was refused. As a `miette::Diagnostic` it shows the line; [`Error::plain`] is one line.
#[derive(Clone, Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct Error {
    message: String,
    #[help]
    allowed: Option<String>,
    #[source_code]
    text: Arc<NamedSource<String>>,
    #[label("here")]
    span: Option<SourceSpan>,
    line: usize,
    column: usize,
    key: String,
}

impl Error {
    /// An error in `text`; a span that leaves the text is clipped.
    pub(crate) fn at(file: &str, text: &str, fault: Fault) -> Self {
        let Fault {
            span,
            message,
            allowed,
            missing,
        } = fault;
        let table = key_path::at(text, &span);
        let path = [table.as_str(), missing.unwrap_or_default()];
        let path: Vec<&str> = path.into_iter().filter(|part| !part.is_empty()).collect();
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end).max(start);
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        Error {
            message,
            allowed: (!allowed.is_empty()).then_some(allowed),
            text: Arc::new(NamedSource::new(file, text.to_owned())),
            span: Some((start, end - start).into()),
            line,
            column,
            key: path.join("."),
        }
    }

    /// An error about the file as a whole, such as one that cannot be read.
    pub fn whole_file(file: &str, message: impl Into<String>, allowed: impl Into<String>) -> Self {
        Error {
            message: message.into(),
            allowed: Some(allowed.into()),
            text: Arc::new(NamedSource::new(file, String::new())),
            span: None,
            line: 0,
            column: 0,
            key: String::new(),
        }
    }

    /// Line (from 1) of the fault; 0: the file as a whole.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Column (from 1, in characters) of the fault; 0: the file as a whole.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The key that it is about, as in `vm.0.vcpus`: groups and elements of arrays by their numbers. Empty where it is about the
    /// file, or the text is no TOML.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// What is wrong, without place and without what is allowed.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What is allowed there, when there is something to say.
    pub fn allowed(&self) -> Option<&str> {
        self.allowed.as_deref()
    }

    /// `file:line:column: what is wrong; what is allowed`, on one line.
    pub fn plain(&self) -> String {
        let mut line = self.text.name().to_owned();
        if self.span.is_some() {
            line += &format!(":{}:{}", self.line, self.column);
        }
        line += &format!(": {}", self.message);
        if let Some(allowed) = &self.allowed {
            line += &format!("; {allowed}");
        }
        line.replace('\n', " ")
    }
}

/// The largest character boundary of `text` that is not above `index`.
fn floor_boundary(text: &str, index: usize) -> usize {
    let mut index = index.min(text.len());
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn at(file: &str, text: &str, span: Range<usize>, allowed: &str) -> Error {
        let fault = Fault {
            span,
            message: "bad".into(),
            allowed: allowed.into(),
            missing: None,
        };
        Error::at(file, text, fault)
    }

    #[test]
    fn counts_lines_and_columns_in_characters() {
        let error = at("f.toml", "a = 1\nµ = \"x\"\n", 11..14, "good");
        assert_eq!((error.line(), error.column()), (2, 5));
        assert_eq!(error.plain(), "f.toml:2:5: bad; good");
    }

    #[test]
    fn clips_spans_that_leave_the_text() {
        let error = at("f", "µ", 1..99, "");
        assert_eq!((error.line(), error.column()), (1, 1));
        assert_eq!(error.plain(), "f:1:1: bad");
    }
}
