// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latch of `unspin steer --service`: a file that is there while it steers, stays when that ends other than in order, and keeps
//! the service from steering again, on this boot and on later ones, until somebody takes it away.
//!
//! That it is written before anything is attached, and not when something has gone wrong, makes it hold where nobody could write any
//! more: a process that was killed, a host that hung and was reset. A service that came back by itself would hang it again at each
//! boot.

use std::{
    env,
    fs::{self, DirBuilder, File},
    io::{self, ErrorKind, Write},
    os::{fd::AsRawFd, unix::fs::DirBuilderExt},
    path::{Path, PathBuf},
    process,
    time::SystemTime,
};

use serde::{Deserialize, Serialize};

use super::failure_file;

/// Where programs keep what must survive a reboot (Filesystem Hierarchy Standard 3.0, 5.8).
const FOLDER: &str = "/var/lib/unspin";
/// The folders that systemd has made for a service's state (`StateDirectory=`, systemd.exec(5)), colons between.
const STATE_DIRECTORY: &str = "STATE_DIRECTORY";
const NAME: &str = "steer-latch.toml";
const CLEAR: &str = "unspin steer --clear-latch";

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    /// It steers, or has ended without a word.
    Steering,
    /// The kernel has taken its own scheduler back.
    TakenBack,
    /// It has ended by a fault of its own while it steered.
    Fault,
}

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    state: State,
    /// When this was so; UTC.
    since: String,
    /// Which process.
    process: u32,
    /// `/proc/sys/kernel/random/boot_id`.
    boot: String,
    /// The kernel's release.
    kernel: String,
    /// Version of unspin.
    version: String,
    policy: String,
    /// As the kernel, or the fault, says; empty while it steers.
    why: String,
    /// What to do; empty as above.
    advice: String,
    /// The file that keeps the kernel's dump, if any does.
    kept: Option<PathBuf>,
}

/// Why it may not steer as a service, or its latch cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum LatchError {
    /// It is latched: what happened, and what to do.
    #[error("{0}")]
    Latched(String),
    /// Another process has the right.
    #[error("another `unspin steer --service` runs")]
    Held,
    /// Its file or folder.
    #[error("{what}")]
    Io {
        /// Which, and what could not be done.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// What it is to say.
    #[error(transparent)]
    Text(#[from] toml::ser::Error),
}

fn io_error(what: String) -> impl FnOnce(io::Error) -> LatchError {
    |source| LatchError::Io { what, source }
}

/// The right to steer as a service: held by one process at a time, and only while nothing is latched.
pub struct Latch {
    folder: PathBuf,
    /// Locked as long as this is.
    _lock: File,
}

impl Latch {
    /// Takes the right.
    ///
    /// # Errors
    /// [`LatchError::Latched`] when something is latched; when another process steers as a service, or the folder cannot be written.
    pub fn claim() -> Result<Latch, LatchError> {
        Latch::claim_in(&folder())
    }

    fn claim_in(folder: &Path) -> Result<Latch, LatchError> {
        let latch = Latch::locked(folder)?;
        match latch.read()? {
            None => Ok(latch),
            Some(record) => Err(LatchError::Latched(latch.says(record.as_ref(), &boot()))),
        }
    }

    fn locked(folder: &Path) -> Result<Latch, LatchError> {
        let made = DirBuilder::new().recursive(true).mode(0o755).create(folder);
        let opened = made.and_then(|()| File::open(folder));
        let no_latch = io_error(format!("{}: no latch can be kept", folder.display()));
        let lock = opened.map_err(no_latch)?;
        // SAFETY: no pointers; a descriptor that is open.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = io::Error::last_os_error();
            return Err(match error.kind() {
                ErrorKind::WouldBlock => LatchError::Held,
                _ => io_error(format!("{}: cannot be locked", folder.display()))(error),
            });
        }
        Ok(Latch {
            folder: folder.to_owned(),
            _lock: lock,
        })
    }

    /// From now on whatever happens is latched, until [`Latch::release`].
    ///
    /// # Errors
    /// When that cannot be written: then nothing may be attached.
    pub fn steering(&self, policy: &str) -> Result<(), LatchError> {
        self.write(&self.record(State::Steering, policy, "", "", None))
    }

    /// It has ended in order.
    ///
    /// # Errors
    /// When the file cannot be taken away.
    pub fn release(self) -> Result<(), LatchError> {
        self.remove()
    }

    /// The kernel has taken its own scheduler back; `kept`: the file with its dump.
    ///
    /// # Errors
    /// When that cannot be written. It stays latched all the same: the file says that it steers.
    pub fn taken_back(
        self,
        policy: &str,
        why: &str,
        advice: &str,
        kept: Option<&str>,
    ) -> Result<(), LatchError> {
        self.write(&self.record(State::TakenBack, policy, why, advice, kept))
    }

    /// It has ended by a fault after it was attached.
    ///
    /// # Errors
    /// As above.
    pub fn fault(self, policy: &str, why: &str) -> Result<(), LatchError> {
        let advice =
            "this is a fault of unspin's: report it with its journal, `journalctl -u unspin-steer`";
        self.write(&self.record(State::Fault, policy, why, advice, None))
    }

    fn record(
        &self,
        state: State,
        policy: &str,
        why: &str,
        advice: &str,
        kept: Option<&str>,
    ) -> Record {
        Record {
            state,
            since: now(),
            process: process::id(),
            boot: boot(),
            kernel: kernel_text("osrelease"),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            policy: policy.to_owned(),
            why: why.to_owned(),
            advice: advice.to_owned(),
            kept: kept.map(PathBuf::from),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(NAME)
    }

    /// `None`: there is no file; `Some(None)`: it is no record.
    fn read(&self) -> Result<Option<Option<Record>>, LatchError> {
        match fs::read_to_string(self.path()) {
            Ok(text) => Ok(Some(toml::from_str(&text).ok())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Some(None)),
            Err(error) => Err(io_error(self.path().display().to_string())(error)),
        }
    }

    /// On disk when this returns, as a whole or not at all.
    fn write(&self, record: &Record) -> Result<(), LatchError> {
        let text = toml::to_string(record)?;
        let new = self.folder.join(format!("{NAME}.new"));
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, self.path())?;
            File::open(&self.folder)?.sync_all()
        });
        written.map_err(io_error(format!(
            "{}: the latch cannot be kept",
            self.path().display()
        )))
    }

    fn remove(&self) -> Result<(), LatchError> {
        let removed = fs::remove_file(self.path());
        let removed = removed.and_then(|()| File::open(&self.folder)?.sync_all());
        removed.map_err(io_error(format!(
            "{}: cannot be removed",
            self.path().display()
        )))
    }

    /// What happened, when, why, and how to clear it. `None`: the file is no record.
    fn says(&self, record: Option<&Record>, boot: &str) -> String {
        let path = self.path();
        let path = path.display();
        let what = record.map_or_else(
            || format!("{path} is there, and cannot be read"),
            |record| record.says(boot),
        );
        format!(
            "steer stays off: {what}\nunspin: {path} says so, and keeps `unspin steer --service` from steering, after a reboot too; when \
             the reason is understood: {CLEAR}"
        )
    }
}

impl Record {
    fn says(&self, boot: &str) -> String {
        let Record {
            since,
            process,
            kernel,
            version,
            policy,
            why,
            ..
        } = self;
        let with = format!("policy {policy}, unspin {version}, kernel {kernel}");
        let mut says = match self.state {
            State::Steering if self.boot == boot => format!(
                "process {process}, which steered since {since}, has ended without a word ({with}): killed, out of memory, or a crash; \
                 see `journalctl -u unspin-steer` and `journalctl -k`"
            ),
            State::Steering => format!(
                "this host has gone down while `unspin steer` steered, since {since} ({with}): a power failure, a reset or a hang; see \
                 the end of that boot: `journalctl -k -b -1`"
            ),
            State::TakenBack => {
                format!("on {since} the kernel took its own scheduler back ({with}): {why}")
            }
            State::Fault => {
                format!("on {since} it ended by a fault while it steered ({with}): {why}")
            }
        };
        if !self.advice.is_empty() {
            says += &format!("\nunspin: {}", self.advice);
        }
        if let Some(kept) = &self.kept {
            says += &format!(
                "\nunspin: what the kernel says of that is in {}",
                kept.display()
            );
        }
        says
    }
}

/// `unspin steer --clear-latch`: takes the latch away. What it was, in words.
///
/// # Errors
/// When a service steers now, or the file cannot be taken away.
pub fn clear() -> Result<String, LatchError> {
    clear_in(&folder())
}

fn clear_in(folder: &Path) -> Result<String, LatchError> {
    if !folder.is_dir() {
        return Ok("nothing is latched".to_owned());
    }
    let latch = Latch::locked(folder)?;
    let Some(record) = latch.read()? else {
        return Ok("nothing is latched".to_owned());
    };
    latch.remove()?;
    let what = record.map_or_else(
        || "it could not be read".to_owned(),
        |record| record.says(&boot()),
    );
    Ok(format!("cleared: {what}"))
}

fn folder() -> PathBuf {
    let of_service = env::var_os(STATE_DIRECTORY);
    let of_service = of_service.and_then(|folders| env::split_paths(&folders).next());
    let folder = of_service.filter(|folder| folder.is_absolute());
    folder.unwrap_or_else(|| FOLDER.into())
}

/// As in 2026-11-25 15:30:01 UTC.
fn now() -> String {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let stamp = failure_file::stamp(since_1970);
    let digits: Vec<char> = stamp.chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at(digits.len() - 6);
    let (year, day) = day.split_at(day.len() - 4);
    let text = |part: &[char]| part.iter().collect::<String>();
    format!(
        "{}-{}-{} {}:{}:{} UTC",
        text(year),
        text(&day[..2]),
        text(&day[2..]),
        text(&time[..2]),
        text(&time[2..4]),
        text(&time[4..])
    )
}

fn boot() -> String {
    kernel_text("random/boot_id")
}

/// Of a file in /proc/sys/kernel; "unknown" where it cannot be read.
fn kernel_text(name: &str) -> String {
    let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name));
    text.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latched(folder: &Path) -> String {
        match Latch::claim_in(folder).err() {
            Some(LatchError::Latched(says)) => says,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn in_order_nothing_is_left() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("var/lib/unspin");
        let latch = Latch::claim_in(&state).expect("nothing is latched");
        latch.steering("auto").expect("written");
        assert!(state.join(NAME).exists());
        latch.release().expect("removed");
        assert_eq!(fs::read_dir(&state).expect("a folder").count(), 0);
        assert!(Latch::claim_in(&state).is_ok());
        assert_eq!(clear_in(&state).expect("cleared"), "nothing is latched");
        assert_eq!(
            clear_in(&folder.path().join("none")).expect("cleared"),
            "nothing is latched"
        );
    }

    #[test]
    fn what_the_kernel_says_stays_until_it_is_cleared() {
        let folder = tempfile::tempdir().expect("a folder");
        let latch = Latch::claim_in(folder.path()).expect("nothing is latched");
        latch.steering("auto").expect("written");
        let kept = Some("/var/log/unspin/x.txt");
        latch
            .taken_back("auto", "runnable task stall: sh[7]", "report it", kept)
            .expect("written");
        for _ in 0..2 {
            let says = latched(folder.path());
            for piece in [
                "steer stays off: on 20",
                " UTC the kernel took its own scheduler back (policy auto, unspin ",
                "runnable task stall: sh[7]\nunspin: report it\n",
                "is in /var/log/unspin/x.txt\n",
                "after a reboot too",
                "unspin steer --clear-latch",
            ] {
                assert!(says.contains(piece), "{says}\nlacks {piece}");
            }
        }
        let cleared = clear_in(folder.path()).expect("cleared");
        assert!(cleared.starts_with("cleared: on 20"), "{cleared}");
        assert!(Latch::claim_in(folder.path()).is_ok());
    }

    #[test]
    fn an_end_without_a_word_is_latched_too() {
        let folder = tempfile::tempdir().expect("a folder");
        let latch = Latch::claim_in(folder.path()).expect("nothing is latched");
        latch.steering("loan").expect("written");
        drop(latch);
        let says = latched(folder.path());
        assert!(says.contains("has ended without a word"), "{says}");
        // As after a reset of the host.
        let text = fs::read_to_string(folder.path().join(NAME)).expect("a record");
        let record: Record = toml::from_str(&text).expect("a record");
        let before = record.says("another boot");
        assert!(before.contains("this host has gone down"), "{before}");
        // As after a disk that was full, or a hand that was unlucky.
        for text in [&b""[..], b"state = 7", b"\xff"] {
            fs::write(folder.path().join(NAME), text).expect("written");
            assert!(latched(folder.path()).contains("cannot be read"));
        }
        let cleared = clear_in(folder.path()).expect("cleared");
        assert_eq!(cleared, "cleared: it could not be read");
    }

    #[test]
    fn a_fault_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let latch = Latch::claim_in(folder.path()).expect("nothing is latched");
        latch
            .fault("loan", "a map cannot be read")
            .expect("written");
        let says = latched(folder.path());
        assert!(
            says.contains("by a fault while it steered") && says.contains("a map cannot be read"),
            "{says}"
        );
    }

    #[test]
    fn one_steers_at_a_time_and_is_not_cleared_meanwhile() {
        let folder = tempfile::tempdir().expect("a folder");
        let latch = Latch::claim_in(folder.path()).expect("nothing is latched");
        latch.steering("auto").expect("written");
        for second in [
            Latch::claim_in(folder.path()).err(),
            clear_in(folder.path()).err(),
        ] {
            let says = second.expect("refused").to_string();
            assert!(
                says.contains("another `unspin steer --service` runs"),
                "{says}"
            );
        }
        latch.release().expect("removed");
    }

    #[test]
    fn where_nothing_can_be_kept_nothing_is_steered() {
        let refused = Latch::claim_in(Path::new("/dev/null/state")).err();
        assert!(
            matches!(refused, Some(LatchError::Io { .. })),
            "{refused:?}"
        );
    }
}
