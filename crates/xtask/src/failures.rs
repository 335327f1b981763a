// SPDX-License-Identifier: MIT OR Apache-2.0
//! What failed and why in a few lines, for the end of a long output: from a JUnit file of cargo-nextest.

/// Lines of each test that are kept.
const LINES_MAX: usize = 12;
/// Characters of each line that are kept.
const CHARACTERS_MAX: usize = 240;

/// For each failed test of a JUnit file a line with its name, and below it those of its output that say why.
///
/// # Errors
/// No XML.
pub fn of_junit(junit: &str) -> anyhow::Result<Vec<String>> {
    let document = roxmltree::Document::parse(junit)?;
    let mut lines = Vec::new();
    for case in document.descendants() {
        let failed =
            |of: &roxmltree::Node<'_, '_>| of.has_tag_name("failure") || of.has_tag_name("error");
        if !case.has_tag_name("testcase") || !case.children().any(|of| failed(&of)) {
            continue;
        }
        let name = |attribute| case.attribute(attribute).unwrap_or_default();
        lines.push(format!("{}: {}", name("classname"), name("name")));
        let said: Vec<&str> = case
            .children()
            .filter(|of| {
                failed(of) || of.has_tag_name("system-out") || of.has_tag_name("system-err")
            })
            .filter_map(|of| of.text())
            .collect();
        lines.extend(reasons(&said.join("\n")));
    }
    Ok(lines)
}

/// The lines of a test's output that name a failed check, and panics with their first line.
fn reasons(output: &str) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    let mut panicked = false;
    for line in output
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
    {
        let panics = line.contains(" panicked at ");
        if panicked || panics || line.starts_with("FAILED: ") || line.starts_with("exit status ") {
            let line = format!(
                "    {}",
                line.chars().take(CHARACTERS_MAX).collect::<String>()
            );
            if !reasons.contains(&line) {
                reasons.push(line);
            }
        }
        panicked = panics;
    }
    reasons.truncate(LINES_MAX);
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_in_a_few_lines() {
        let long = "x".repeat(CHARACTERS_MAX + 1);
        let text = format!(
            r#"<testsuites><testsuite name="a">
            <testcase name="good" classname="a"/>
            <testcase name="boot" classname="a::b"><failure message="exit code 101">exit status 1; the checks said:
              FAILED: one (standard error says why)
            passed: two
            thread 'main' (5) panicked at a.rs:1:2:
            [1, 2] is {long}
            note: run with</failure><system-out>thread 'main' (5) panicked at a.rs:1:2:
            FAILED: one (standard error says why)</system-out></testcase>
            <testcase name="slow" classname="a"><error type="test timeout"/></testcase>
            </testsuite></testsuites>"#
        );
        let lines = of_junit(&text).unwrap();
        let of_boot = [
            "a::b: boot",
            "    exit status 1; the checks said:",
            "    FAILED: one (standard error says why)",
            "    thread 'main' (5) panicked at a.rs:1:2:",
        ];
        assert_eq!(lines[..4], of_boot);
        assert!(lines[4].starts_with("    [1, 2] is x") && lines[4].len() == 4 + CHARACTERS_MAX);
        assert_eq!(lines[5..], ["a: slow"]);
        assert!(of_junit("").is_err());
    }
}
