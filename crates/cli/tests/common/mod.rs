// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of the binary share.
#![allow(dead_code)]

pub mod lab;

use std::{
    fs,
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The binary under test.
pub const UNSPIN: &str = env!("CARGO_BIN_EXE_unspin");

/// A scenario that runs anywhere there is KVM.
pub const SCENARIO: &str =
    "iterations = 100\n\n[[vm]]\nvcpus = 2\nlock = \"ticket\"\nhold = \"300 loops\"\n";

/// What a command did.
#[derive(Debug)]
pub struct Ended {
    /// Exit status; 128 + n for signal n.
    pub status: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Ended {
    /// Fails unless the status is that, standard output empty, and every piece in standard error.
    #[track_caller]
    pub fn refused(&self, status: i32, pieces: &[&str]) {
        assert_eq!(self.status, status, "{self:#?}");
        assert_eq!(self.out, "", "{self:#?}");
        for piece in pieces {
            assert!(self.err.contains(piece), "{self:#?}\nlacks {piece:?}");
        }
    }

    /// What `--json` printed. It went well.
    #[track_caller]
    pub fn json(&self) -> Value {
        assert_eq!(self.status, 0, "{self:#?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }

    /// What `unspin COMMAND --json` printed among other output: `steer` beside a command does so on standard error.
    #[track_caller]
    pub fn json_of(&self, command: &str) -> Value {
        let lines = self.out.lines().chain(self.err.lines());
        let mut objects = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let object = objects.find(|object| object["command"] == command);
        object.unwrap_or_else(|| panic!("no object of {command}: {self:#?}"))
    }

    /// The rows of a table in that.
    #[track_caller]
    pub fn rows(&self, table: &str) -> Vec<Value> {
        let object = self.json();
        let rows = object["rows"].as_array().expect("rows");
        let of_table = rows.iter().filter(|row| row["table"] == table);
        of_table.cloned().collect()
    }
}

/// Runs `command` to its end.
pub fn ended(command: &mut Command) -> Ended {
    let output = command.output().expect("it starts");
    let signal = std::os::unix::process::ExitStatusExt::signal(&output.status);
    Ended {
        status: output.status.code().unwrap_or(128 + signal.unwrap_or(0)),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Runs the binary with these arguments.
pub fn unspin(arguments: &[&str]) -> Ended {
    ended(Command::new(UNSPIN).args(arguments))
}

/// A folder that everybody may enter, with `s.toml` and a copy of the binary in it.
pub fn folder(scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    fs::write(folder.path().join("s.toml"), scenario).expect("written");
    fs::copy(UNSPIN, folder.path().join("unspin")).expect("copied");
    folder
}

/// The path of `s.toml` in the folder.
pub fn scenario(folder: &tempfile::TempDir) -> String {
    folder.path().join("s.toml").to_string_lossy().into_owned()
}

/// Root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where set-up keeps what it has fetched and built.
pub fn cache() -> PathBuf {
    std::env::var_os("UNSPIN_CACHE").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/unspin"),
        PathBuf::from,
    )
}

/// Runs the folder's copy of the binary with the folder as the root of the file system: no /dev, /proc, /sys.
pub fn in_an_empty_world(folder: &tempfile::TempDir, arguments: &[&str]) -> Ended {
    let root =
        std::ffi::CString::new(folder.path().as_os_str().as_encoded_bytes()).expect("no zero byte");
    let mut command = Command::new("/unspin");
    command.args(arguments).env_clear().current_dir("/");
    // SAFETY: between fork and exec only system calls without allocation; `root` lives in the closure.
    unsafe {
        command.pre_exec(move || {
            // Whoever is not root may only do so as root of a namespace of its own.
            if libc::geteuid() != 0 && libc::unshare(libc::CLONE_NEWUSER) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            if libc::chroot(root.as_ptr()) != 0 || libc::chdir(c"/".as_ptr()) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    ended(&mut command)
}

/// Runs the folder's copy of the binary as a user who is not root.
pub fn as_nobody(folder: &tempfile::TempDir, arguments: &[&str]) -> Ended {
    let mut command = Command::new(folder.path().join("unspin"));
    command.args(arguments).current_dir(folder.path());
    // SAFETY: geteuid() takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(65_534).gid(65_534);
    }
    ended(&mut command)
}
