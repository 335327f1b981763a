// SPDX-License-Identifier: MIT OR Apache-2.0
//! The file that keeps what the kernel says of a failure: its dump when it takes its own scheduler back, its verifier's log when
//! it refuses programs. Never written over one that is there.

use std::{
    env,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
    time::{Duration, SystemTime},
};

/// Where services and daemons leave logs (Filesystem Hierarchy Standard 3.0, 5.10).
const FOLDER: &str = "/var/log/unspin";
/// The folders that systemd has made for a service's logs (`LogsDirectory=`, systemd.exec(5)), colons between.
const LOGS_DIRECTORY: &str = "LOGS_DIRECTORY";
/// Of a text that could not be kept.
const HEAD_LINES: usize = 40;

/// Where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureFile {
    /// This file.
    At(PathBuf),
    /// A new one in this folder, which is made when there is something to keep.
    In(PathBuf),
}

/// A file that a dump cannot be written to.
#[derive(Debug, thiserror::Error)]
#[error("--dump {}: {says}", .file.display())]
pub struct NoNewFile {
    file: PathBuf,
    says: &'static str,
}

/// A text that could not be kept.
#[derive(Debug)]
pub struct NotKept {
    path: PathBuf,
    source: io::Error,
}

impl FailureFile {
    /// As the user says, or in the folder for logs.
    ///
    /// # Errors
    /// When that file is there already, or its folder is not: said before anything is steered.
    pub fn of(chosen: Option<&Path>) -> Result<FailureFile, NoNewFile> {
        let Some(chosen) = chosen else {
            let of_service = env::var_os(LOGS_DIRECTORY);
            let of_service = of_service.and_then(|folders| env::split_paths(&folders).next());
            let folder = of_service.filter(|folder| folder.is_absolute());
            return Ok(FailureFile::In(folder.unwrap_or_else(|| FOLDER.into())));
        };
        let wrong = |says| NoNewFile {
            file: chosen.to_owned(),
            says,
        };
        if chosen.symlink_metadata().is_ok() {
            return Err(wrong(
                "it is there already, and a dump is written over nothing",
            ));
        }
        let folder = match chosen.parent() {
            Some(folder) if folder == Path::new("") => Path::new("."),
            Some(folder) => folder,
            None => return Err(wrong("that is no file")),
        };
        if !folder.is_dir() {
            return Err(wrong("its folder is not there"));
        }
        Ok(FailureFile::At(chosen.to_owned()))
    }

    /// Keeps the text, on disk, for root alone: it has addresses of the kernel and names of processes. The file's path.
    ///
    /// # Errors
    /// When it cannot be written as a whole; then there is none.
    pub fn keep(&self, text: &str) -> Result<PathBuf, NotKept> {
        match self {
            FailureFile::At(file) => create(file, text).map(|()| file.clone()),
            FailureFile::In(folder) => {
                let named = SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .unwrap_or_default();
                in_folder(folder, &stamp(named), text)
            }
        }
    }
}

impl NotKept {
    /// What to print instead of the file's path.
    pub fn says(&self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let head = lines[..lines.len().min(HEAD_LINES)].join("\n  ");
        let left = lines.len().saturating_sub(HEAD_LINES);
        let (path, source) = (self.path.display(), &self.source);
        format!(
            "it could not be kept in {path}: {source}; it begins\n  {head}\n  ({left} more lines are lost)"
        )
    }
}

/// As `steer-20261125T153001Z-PROCESS.txt`, with a number at the end where there is one.
fn in_folder(folder: &Path, stamp: &str, text: &str) -> Result<PathBuf, NotKept> {
    let not_kept = |source| NotKept {
        path: folder.to_owned(),
        source,
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(not_kept)?;
    let name = format!("steer-{stamp}-{}", process::id());
    let mut path = folder.join(format!("{name}.txt"));
    for again in 2.. {
        match create(&path, text) {
            Err(there) if there.source.kind() == io::ErrorKind::AlreadyExists && again < 100 => {
                path = folder.join(format!("{name}-{again}.txt"));
            }
            done => return done.map(|()| path),
        }
    }
    unreachable!("the loop has no end")
}

fn create(path: &Path, text: &str) -> Result<(), NotKept> {
    let not_kept = |source| NotKept {
        path: path.to_owned(),
        source,
    };
    let opened = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    let file = opened.map_err(not_kept)?;
    written(&file, text).map_err(|source| {
        // Half of it would pass for all of it.
        let _ = std::fs::remove_file(path);
        not_kept(source)
    })
}

/// Whoever reads it later may do so after a reset.
fn written(mut file: &File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// A time since 1970 as `20261125T153001Z`: the Gregorian calendar, whose leap years repeat every 400 years.
pub(super) fn stamp(since_1970: Duration) -> String {
    const DAY_S: u64 = 86_400;
    let leap = |year: u64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut days, seconds) = (since_1970.as_secs() / DAY_S, since_1970.as_secs() % DAY_S);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!(
        "{year}{month:02}{:02}T{hour:02}{minute:02}{second:02}Z",
        days + 1
    )
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        // As `date -u -d @N +%Y%m%dT%H%M%SZ` has them.
        for (seconds, says) in [
            (0, "19700101T000000Z"),
            (951_782_399, "20000228T235959Z"),
            (951_782_400, "20000229T000000Z"),
            (1_230_768_000, "20090101T000000Z"),
            (1_764_084_601, "20251125T153001Z"),
            (4_107_542_400, "21000301T000000Z"),
        ] {
            assert_eq!(stamp(Duration::from_secs(seconds)), says, "{seconds}");
        }
    }

    #[test]
    fn nothing_is_written_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = folder.path().join("var/log");
        let kept = |text| in_folder(&logs, "then", text).expect("there is room");
        let (first, second) = (kept("first"), kept("second"));
        assert_ne!(first, second);
        let text = |path: &Path| fs::read_to_string(path).expect("it is kept");
        assert_eq!((&*text(&first), &*text(&second)), ("first", "second"));
        let mode = |path: &Path| {
            fs::metadata(path)
                .expect("it is there")
                .permissions()
                .mode()
        };
        assert_eq!(mode(&first) & 0o777, 0o600);
        assert_eq!(mode(&logs) & 0o777, 0o700);
        let there = FailureFile::At(first.clone()).keep("third");
        let there = there.expect_err("it is there").says("third\nline");
        assert!(
            there.contains("File exists") && there.contains("third\n  line"),
            "{there}"
        );
        assert_eq!(text(&first), "first");
    }

    #[test]
    fn a_full_disk_leaves_no_half_and_shows_the_head() {
        let lines: Vec<String> = (1..=50).map(|line| format!("line {line}")).collect();
        let text = lines.join("\n");
        // As a file: it takes nothing.
        let full = File::options()
            .write(true)
            .open("/dev/full")
            .expect("it is there");
        let full = written(&full, &text).expect_err("no room");
        assert_eq!(full.raw_os_error(), Some(28));
        let not_kept = NotKept {
            path: "/there".into(),
            source: full,
        };
        let says = not_kept.says(&text);
        for piece in [
            "/there: No space left",
            "line 40\n",
            "(10 more lines are lost)",
        ] {
            assert!(says.contains(piece), "{says}");
        }
        assert!(!says.contains("line 41"), "{says}");
        let no_folder = FailureFile::In("/dev/null/logs".into()).keep(&text);
        assert!(
            no_folder
                .expect_err("a file is no folder")
                .says("")
                .contains("/dev/null/logs")
        );
    }

    #[test]
    fn what_cannot_be_a_new_file_is_refused_before_anything_is_steered() {
        let folder = tempfile::tempdir().expect("a folder");
        let there = folder.path().join("there");
        fs::write(&there, "").expect("written");
        for (file, says) in [
            (there.as_path(), "is there already"),
            (Path::new("/none/such"), "its folder is not there"),
            (Path::new("/"), "is there already"),
        ] {
            let said = FailureFile::of(Some(file))
                .expect_err("refused")
                .to_string();
            assert!(said.starts_with(&format!("--dump {}: ", file.display())));
            assert!(said.contains(says), "{said}");
        }
        let new = folder.path().join("new");
        let taken = FailureFile::of(Some(&new)).expect("it can be made");
        assert_eq!(taken, FailureFile::At(new.clone()));
        assert!(!new.exists(), "only when there is something to keep");
        assert!(FailureFile::of(Some(Path::new("new"))).is_ok());
    }
}
