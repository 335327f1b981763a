// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cargo xtask papers`: the pages of docs/papers that follow from the claims, and the checks of the claims themselves.

use std::{fs, path::Path};

use anyhow::{Context, bail, ensure};
use unspin_papers::{
    Papers,
    check::{self, Findings},
    page::{COUNTS_PAGE, Counts, PAGE, page, with_counts},
};

/// Writes the pages, or (`check_only`) fails when one is not what would be written or a claim breaks a rule.
///
/// # Errors
/// Claims that cannot be read, a broken rule, an old page.
pub fn write(root: &Path, check_only: bool) -> anyhow::Result<()> {
    let papers = Papers::load(root)?;
    let readme = read(root, COUNTS_PAGE)?;
    let counts = Counts::of(&papers.judged(|_| true)?);
    let with_counts = with_counts(&readme, &counts)
        .with_context(|| format!("{COUNTS_PAGE} lacks the two lines around its counts"))?;
    let pages = [(PAGE, page(&papers)?), (COUNTS_PAGE, with_counts)];
    if !check_only {
        for (name, text) in pages {
            fs::write(root.join(name), text).with_context(|| format!("cannot write {name}"))?;
        }
        return Ok(());
    }
    let Findings { wrong, notes } = check::check(&papers)?;
    for note in notes {
        println!("papers: {note}");
    }
    for line in &wrong {
        eprintln!("{line}");
    }
    if !wrong.is_empty() {
        bail!("{} rules of claims are broken", wrong.len());
    }
    for (name, text) in pages {
        ensure!(
            read(root, name).unwrap_or_default() == text,
            "{name} is not what papers/ and benchmarks/ say: run make docs"
        );
    }
    Ok(())
}

fn read(root: &Path, name: &str) -> anyhow::Result<String> {
    fs::read_to_string(root.join(name)).with_context(|| format!("cannot read {name}"))
}
