// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a ring finds in its folder: nothing, or an earlier ring, whose last minutes may be why it is begun again.

use std::{
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::Path,
};

use crate::{
    Error, Manifest,
    cut::{KeptFacts, Trigger},
    hashes::HASHES,
    names::{MANIFEST, PARTIAL, SegmentName},
    ring::{
        options::RingOptions,
        span::{self, KEPT},
    },
};

/// The files of an earlier ring, kept spans left out.
///
/// # Errors
/// [`Error::NotEmpty`] when anything else is there.
pub(crate) fn may_begin(folder: &Path) -> Result<Vec<String>, Error> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::io(folder, "reading the folder")(error)),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(Error::io(folder, "reading the folder"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != KEPT {
            files.push(name);
        }
    }
    files.sort();
    let foreign = files.iter().find(|name| !is_of_a_ring(name));
    let found = match foreign {
        Some(found) => Some(found),
        // A recording that is none of a ring is nobody's to put away; a start that was killed leaves less than one.
        None if files.iter().all(|name| name.ends_with(PARTIAL)) || is_a_ring(folder)? => None,
        None => files.first(),
    };
    match found {
        None => Ok(files),
        Some(found) => Err(Error::NotEmpty {
            folder: folder.to_owned(),
            found: found.clone(),
        }),
    }
}

/// Makes the folder this process's until what is returned is dropped, however the process ends.
///
/// # Errors
/// [`Error::Busy`], or what the system says.
pub(crate) fn lock(folder: &Path) -> Result<File, Error> {
    let opened = File::open(folder).map_err(Error::io(folder, "opening the folder"))?;
    // SAFETY: a descriptor that is open until the call returns, and constants.
    let locked = unsafe { libc::flock(opened.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    match locked {
        0 => Ok(opened),
        _ => Err(match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Error::Busy {
                folder: folder.to_owned(),
            },
            error => Error::io(folder, "locking the folder")(error),
        }),
    }
}

fn is_of_a_ring(name: &str) -> bool {
    let whole = name.strip_suffix(PARTIAL).unwrap_or(name);
    whole == MANIFEST || whole == HASHES || SegmentName::parse(whole).is_some()
}

/// What a description says. One that is damaged or of another version says nothing: then it is no ring that this program may touch.
fn is_a_ring(folder: &Path) -> Result<bool, Error> {
    let manifest = Manifest::read(folder)?;
    Ok(manifest.is_some_and(|manifest| manifest.ring.is_some()))
}

/// Makes an earlier ring a kept span, or removes it where there are as many as there may be (`true`). One without a segment is
/// removed.
///
/// # Errors
/// As [`may_begin`], and what the system says.
pub(crate) fn put_away(folder: &Path, options: &RingOptions, at: Trigger) -> Result<bool, Error> {
    let files = may_begin(folder)?;
    let has_segments = files.iter().any(|name| SegmentName::parse(name).is_some());
    let has_room = span::count(folder)? < options.spans_max;
    if !has_segments || !has_room {
        for name in &files {
            let path = folder.join(name);
            fs::remove_file(&path).map_err(Error::io(&path, "removing an earlier ring"))?;
        }
        return Ok(has_segments);
    }
    let to = span::folder_for(folder, &at)?;
    // The description stays until everything else has gone: a start that is killed here is made up for by the next one.
    if let Some(manifest) = Manifest::read(folder)? {
        let kept = KeptFacts {
            triggers: vec![at],
            before_ns: options.keep_ns,
            ..KeptFacts::default()
        };
        let manifest = Manifest {
            kept: Some(kept),
            ..manifest
        };
        manifest.write(&to)?;
    }
    for name in files.iter().filter(|name| *name != MANIFEST) {
        let path = folder.join(name);
        fs::rename(&path, to.join(name)).map_err(Error::io(&path, "keeping an earlier ring"))?;
    }
    let path = folder.join(MANIFEST);
    fs::remove_file(&path).map_err(Error::io(&path, "removing an earlier ring"))?;
    Ok(false)
}
