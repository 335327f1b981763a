// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is wrong with a scenario, where, and what is allowed there.

use std::{ops::Range, sync::Arc};

use miette::{Diagnostic, NamedSource, SourceSpan};

/// A scenario that was refused. As a `miette::Diagnostic` it shows the line; [`ScenarioError::plain`] is one line.
#[derive(Clone, Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct ScenarioError {
    message: String,
    #[help]
    allowed: Option<String>,
    #[source_code]
    text: Arc<NamedSource<String>>,
    #[label("here")]
    span: Option<SourceSpan>,
    line: usize,
    column: usize,
}

impl ScenarioError {
    /// An error at `span` (bytes of `text`); a span that leaves the text is clipped.
    pub(crate) fn at(
        file: &str,
        text: &str,
        span: Range<usize>,
        message: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        let start = floor_boundary(text, span.start);
        let end = floor_boundary(text, span.end).max(start);
        let before = &text[..start];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        let allowed = allowed.into();
        ScenarioError {
            message: message.into(),
            allowed: (!allowed.is_empty()).then_some(allowed),
            text: Arc::new(NamedSource::new(file, text.to_owned())),
            span: Some((start, end - start).into()),
            line,
            column,
        }
    }

    /// An error about the file as a whole, such as one that cannot be read.
    pub(crate) fn whole_file(
        file: &str,
        message: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        ScenarioError {
            message: message.into(),
            allowed: Some(allowed.into()),
            text: Arc::new(NamedSource::new(file, String::new())),
            span: None,
            line: 0,
            column: 0,
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
    use super::*;

    #[test]
    fn counts_lines_and_columns_in_characters() {
        let error = ScenarioError::at("f.toml", "a = 1\nµ = \"x\"\n", 11..14, "bad", "good");
        assert_eq!((error.line(), error.column()), (2, 5));
        assert_eq!(error.plain(), "f.toml:2:5: bad; good");
    }

    #[test]
    fn clips_spans_that_leave_the_text() {
        let error = ScenarioError::at("f", "µ", 1..99, "bad", "");
        assert_eq!((error.line(), error.column()), (1, 1));
        assert_eq!(error.plain(), "f:1:1: bad");
    }
}
