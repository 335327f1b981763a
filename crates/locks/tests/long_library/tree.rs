// SPDX-License-Identifier: MIT OR Apache-2.0
//! An installed library in a temporary folder, and programs that are run with it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// What a command said and how it ended.
pub struct Ended {
    pub success: bool,
    pub out: String,
    pub err: String,
}

/// The repository.
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the tree is there")
}

/// Runs a command to its end; one that has not ended after four minutes fails the test (the runner ends it after five).
pub fn run(command: &mut Command) -> Ended {
    let shown = format!("{command:?}");
    let folder = tempfile::tempdir().expect("a folder");
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let file = |path: &Path| Stdio::from(fs::File::create(path).expect("a file"));
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file(&out))
        .stderr(file(&err))
        .spawn()
        .unwrap_or_else(|error| panic!("{shown}: {error}"));
    let limit = Instant::now() + Duration::from_secs(240);
    let status = loop {
        if let Some(status) = child.try_wait().expect("it is our child") {
            break status;
        }
        if Instant::now() > limit {
            child.kill().expect("it is our child");
            child.wait().expect("it is our child");
            panic!("{shown}: not done after four minutes");
        }
        thread::sleep(Duration::from_millis(5));
    };
    Ended {
        success: status.success(),
        out: fs::read_to_string(&out).expect("it is there"),
        err: fs::read_to_string(&err).expect("it is there"),
    }
}

/// Runs a command that must end well; returns what it printed.
pub fn succeed(command: &mut Command) -> String {
    let ended = run(command);
    assert!(ended.success, "{command:?}\n{}{}", ended.out, ended.err);
    ended.out
}

/// Whether a program of that name can be started.
pub fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// How a program is linked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Linked {
    Shared,
    Static,
}

/// The library, built and installed below `folder`.
pub struct Installed {
    pub folder: TempDir,
}

impl Installed {
    pub fn new() -> Installed {
        let installed = Installed {
            folder: tempfile::tempdir().expect("a folder"),
        };
        succeed(Command::new(root().join("lib/build")).arg(installed.built()));
        succeed(&mut installed.install());
        installed
    }

    /// Where lib/build has put it.
    pub fn built(&self) -> PathBuf {
        self.folder.path().join("built")
    }

    /// DESTDIR.
    pub fn dest(&self) -> PathBuf {
        self.folder.path().join("dest")
    }

    /// Where libraries are.
    pub fn libraries(&self) -> PathBuf {
        self.dest().join("usr/lib/some-triplet")
    }

    /// The command that installs it; its first argument is the folder of what was built.
    pub fn install(&self) -> Command {
        let mut command = Command::new(root().join("lib/install"));
        command
            .arg(self.built())
            .env("PREFIX", "/usr")
            .env("LIBDIR", "/usr/lib/some-triplet")
            .env("DESTDIR", self.dest());
        command
    }

    /// What pkg-config says of the package `unspin`.
    pub fn pkg_config(&self, questions: &[&str]) -> String {
        succeed(
            Command::new("pkg-config")
                .args(questions)
                .arg("unspin")
                .env("PKG_CONFIG_PATH", self.libraries().join("pkgconfig"))
                .env("PKG_CONFIG_SYSROOT_DIR", self.dest()),
        )
    }

    /// Compiles sources by this compiler and flags, with what pkg-config says; returns the program.
    pub fn compile(
        &self,
        compiler: &str,
        flags: &str,
        sources: &[PathBuf],
        how: Linked,
    ) -> PathBuf {
        let program = self.folder.path().join("program");
        let mut words = self.pkg_config(&["--cflags", "--libs"]);
        if how == Linked::Static {
            words = self.pkg_config(&["--cflags", "--libs", "--static"]);
            words = words.replace("-lunspin", "-l:libunspin.a");
        }
        succeed(
            Command::new(compiler)
                .args(flags.split_whitespace())
                .args(["-Wall", "-Wextra", "-Werror"])
                .args(sources)
                .args(words.split_whitespace())
                .arg("-pthread")
                .arg("-o")
                .arg(&program),
        );
        program
    }

    /// A command that finds the shared library.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_LIBRARY_PATH", self.libraries());
        command
    }
}
