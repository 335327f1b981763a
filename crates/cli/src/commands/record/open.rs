// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens a recording for the commands that read one.

use std::path::Path;

use anyhow::anyhow;
use unspin_recording::Recorded;

use crate::terminal::failure::Failure;

/// The recording in `folder`.
///
/// # Errors
/// When there is none, or when damage leaves no event of it: empty tables would look like an answer. A recording that is
/// whole and holds no event is none of that.
pub fn open(folder: &Path) -> Result<Recorded, Failure> {
    let recorded = Recorded::open(folder).map_err(anyhow::Error::from)?;
    if recorded.rows() == 0 && !recorded.problems().is_empty() {
        let problems = recorded.problems().join("; ");
        return Err(anyhow!(
            "{}: no event of it can be read: {problems}",
            folder.display()
        )
        .into());
    }
    Ok(recorded)
}
