// SPDX-License-Identifier: MIT OR Apache-2.0
//! A user policy: one C file that defines NAME_on_yield(), NAME_on_slice_end(), NAME_on_poll() and
//! NAME_on_slice_start() (`policy/contract.h`). It is created from a template, compiled natively for tests and replays,
//! and compiled for BPF to be loaded.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    raw::unspin_decision_record as DecisionRecord,
    user_policy::{
        error::UserPolicySourceError,
        sources,
        work::{CC, CLANG, Compiler, Work, absolute},
    },
};

/// Longer names do not fit into `struct unspin_user_policy` (abi/bpf/scheduler.h).
const NAME_MAX: usize = 31;

/// The output of a test, and whether it passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// Whether its exit status was 0.
    pub passed: bool,
    /// Standard output and error.
    pub output: String,
}

/// The C file of a user policy; the file exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserPolicySource {
    path: PathBuf,
    name: String,
}

/// Checks the name of a user policy: its functions must be C names, and no policy of unspin may have it.
///
/// # Errors
/// [`UserPolicySourceError::Name`].
pub fn check_name(name: &str) -> Result<(), UserPolicySourceError> {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|it| it.is_ascii_lowercase());
    let rest = characters.all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '_');
    if first && rest && name.len() <= NAME_MAX && !sources::is_taken(name) {
        return Ok(());
    }
    Err(UserPolicySourceError::Name(name.to_owned()))
}

impl UserPolicySource {
    /// The policy in this file; its name is the file's without `.c`.
    ///
    /// # Errors
    /// When the file is missing or its name is not valid.
    pub fn at(path: &Path) -> Result<UserPolicySource, UserPolicySourceError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        check_name(&name)?;
        let found = fs::metadata(path).and_then(|metadata| match metadata.is_file() {
            true => Ok(()),
            false => Err(io::Error::other("no file")),
        });
        found.map_err(|source| UserPolicySourceError::file(path, source))?;
        Ok(UserPolicySource {
            path: path.to_owned(),
            name: name.into_owned(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The prefix of its functions' names.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compiles NAME_test.c, which is beside it, with the policy for this machine, and runs it.
    ///
    /// # Errors
    /// When there is no such file or no compiler, or it does not compile.
    pub fn test(&self) -> Result<Tested, UserPolicySourceError> {
        let test = self.path.with_file_name(format!("{}_test.c", self.name));
        if let Err(source) = fs::metadata(&test) {
            return Err(UserPolicySourceError::file(&test, source));
        }
        let work = Work::new(&self.path)?;
        let program = self.compile_native(&work, &absolute(&test)?, "testing a policy")?;
        let output = Command::new(program).output()?;
        Ok(Tested {
            passed: output.status.success(),
            output: work.readable(&output),
        })
    }

    /// Replays these decisions. Returns for each whether it is the same to the bit.
    ///
    /// # Errors
    /// When there is no compiler, or the policy does not compile, or the program ends early.
    pub fn replay(&self, records: &[DecisionRecord]) -> Result<Vec<bool>, UserPolicySourceError> {
        let work = Work::new(&self.path)?;
        let main = work.folder().join("unspin/policy/user_replay.c");
        let program = self.compile_native(&work, &main, "taking decisions again")?;
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().expect("it is piped");
        // Written by another thread: if both sides only wrote, both pipes would fill and block.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut write = || -> io::Result<()> {
                    records
                        .iter()
                        .try_for_each(|record| stdin.write_all(&record.to_bytes()))
                };
                // A program that has ended early is seen from its exit status.
                drop(write());
            });
            child.wait_with_output()
        })?;
        if !output.status.success() || output.stdout.len() != records.len() {
            return Err(UserPolicySourceError::Replay(self.path.clone()));
        }
        Ok(output.stdout.iter().map(|byte| *byte == b'=').collect())
    }

    /// Compiles `unspin/bpf/scheduler/user_policy.bpf.c` with the policy for BPF; `dry_run`: the object for `steer
    /// --dry-run`. `headers`: libbpf's headers for BPF programs, by name.
    ///
    /// # Errors
    /// When there is no clang, or it does not compile.
    pub fn compile_bpf(
        &self,
        dry_run: bool,
        headers: &[(&str, &str)],
    ) -> Result<Vec<u8>, UserPolicySourceError> {
        let work = Work::new(&self.path)?;
        let libbpf = work.folder().join("bpf");
        fs::create_dir(&libbpf)?;
        for (name, text) in headers {
            fs::write(libbpf.join(name), text)?;
        }
        let object = work.folder().join("policy.bpf.o");
        let mut arguments: Vec<String> = [
            "-g",
            "-O2",
            "-target",
            "bpf",
            "-mcpu=v3",
            "-D__TARGET_ARCH_x86",
            "-c",
        ]
        .map(str::to_owned)
        .into();
        arguments.push(format!("-DUNSPIN_USER_NAME=\"{}\"", self.name));
        arguments.push(format!(
            "-DUNSPIN_USER_SOURCES=\"{}\"",
            sources::SOURCES_HASH
        ));
        if dry_run {
            arguments.push("-DUNSPIN_USER_DRY_RUN".to_owned());
        }
        let main = work.folder().join("unspin/bpf/scheduler/user_policy.bpf.c");
        self.compile(
            &work,
            &CLANG,
            "steering by a policy of one's own",
            arguments,
            &main,
            &object,
        )?;
        Ok(fs::read(object)?)
    }

    fn compile_native(
        &self,
        work: &Work,
        main: &Path,
        what: &'static str,
    ) -> Result<PathBuf, UserPolicySourceError> {
        let program = work.folder().join("program");
        let arguments = ["-std=c11", "-O1", "-g"].map(str::to_owned).into();
        self.compile(work, &CC, what, arguments, main, &program)?;
        Ok(program)
    }

    pub(crate) fn compile(
        &self,
        work: &Work,
        compiler: &Compiler,
        what: &'static str,
        arguments: Vec<String>,
        main: &Path,
        output: &Path,
    ) -> Result<(), UserPolicySourceError> {
        let own = format!("-DUNSPIN_USER_POLICY=\"{}\"", work.own().display());
        let functions = ["on_yield", "on_slice_end", "on_poll", "on_slice_start"]
            .map(|event| format!("-Duser_{event}={}_{event}", self.name));
        let mut command = compiler.command(what)?;
        command
            .args(arguments)
            .args(["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"])
            .arg("-I")
            .arg(work.folder())
            .args(functions)
            .arg(own)
            .arg("-o")
            .arg(output)
            .arg(main);
        let output = command.output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(UserPolicySourceError::Compiler {
            path: self.path.clone(),
            said: work.readable(&output),
        })
    }
}

const POLICY: &str = include_str!("../../native/new_policy.c");
const TEST: &str = include_str!("../../native/new_policy_test.c");

/// Writes NAME.c and NAME_test.c into `folder`; returns both paths.
///
/// # Errors
/// When the name is not valid, or a file exists already (then neither is written) or cannot be written.
pub fn write_new_policy(folder: &Path, name: &str) -> Result<[PathBuf; 2], UserPolicySourceError> {
    check_name(name)?;
    let paths = ["", "_test"].map(|end| folder.join(format!("{name}{end}.c")));
    // Both are created before either is written.
    let mut made: Vec<&Path> = Vec::new();
    for path in &paths {
        match OpenOptions::new().write(true).create_new(true).open(path) {
            Ok(_) => made.push(path),
            Err(source) => {
                // The files are empty and were created here; if one cannot be removed, the next try reports it.
                made.iter()
                    .for_each(|path| drop(std::fs::remove_file(path)));
                return Err(UserPolicySourceError::file(path, source));
            }
        }
    }
    for (path, text) in paths.iter().zip([POLICY, TEST]) {
        let written = OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut file| file.write_all(text.replace("NAME", name).as_bytes()));
        written.map_err(|source| UserPolicySourceError::file(path, source))?;
    }
    Ok(paths)
}
