// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sends the files below a directory through the channel.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::boot::channel::{Stream, Writer};

const CHUNK_BYTES: usize = 1 << 20;

/// Sends every regular file below `root`, in the order of their names so that the same files give the same frames.
///
/// Anything that is neither a directory nor a regular file is named in a note and left out.
pub fn tree(root: &Path, channel: &mut Writer) -> Result<(), String> {
    let mut paths = Vec::new();
    collect(root, &mut paths, channel)?;
    paths.sort();
    for path in paths {
        let failed = |error: std::io::Error| format!("sending {}: {error}", path.display());
        let name = path
            .strip_prefix(root)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let mut file = File::open(&path).map_err(failed)?;
        append(channel, Stream::FileBegin, name.as_os_str().as_bytes())?;
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let bytes = file.read(&mut chunk).map_err(failed)?;
            if bytes == 0 {
                break;
            }
            append(channel, Stream::FileData, &chunk[..bytes])?;
            channel.beat();
        }
        append(channel, Stream::FileEnd, b"")?;
    }
    Ok(())
}

fn append(channel: &mut Writer, stream: Stream, bytes: &[u8]) -> Result<(), String> {
    channel
        .append(stream, bytes)
        .map_err(|error| error.to_string())
}

fn collect(
    folder: &Path,
    paths: &mut Vec<std::path::PathBuf>,
    channel: &mut Writer,
) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("reading {}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            collect(&entry.path(), paths, channel)?;
        } else if kind.is_file() {
            paths.push(entry.path());
        } else {
            let note = format!(
                "{} is no regular file and stays in the testbed",
                entry.path().display()
            );
            append(channel, Stream::Note, note.as_bytes())?;
        }
    }
    Ok(())
}
