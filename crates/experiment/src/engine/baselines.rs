// SPDX-License-Identifier: MIT OR Apache-2.0
//! Other simulators, each put into the cache when it is first needed: SimPy from PyPI, NeXosim from cargo's registry.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use anyhow::{Context, anyhow};
use unspin_lab::engine::timers::Expiries;

use crate::Error;

/// A simulator to measure the lab's engine against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaselineKind {
    /// Python's.
    Simpy,
    /// A fast one in Rust.
    Nexosim,
}

impl BaselineKind {
    /// All of them.
    pub const ALL: [BaselineKind; 2] = [BaselineKind::Simpy, BaselineKind::Nexosim];
}

const SIMPY: &str = "4.1.2";
const SIMPY_SHA256: &str = "43071f84b6512c9b4fcb33ef057f240ccb1d1f3b263f9b4f9229d072e310b372";
const SIMPY_MODEL: &str = include_str!("../../baselines/timers_simpy.py");
/// NeXosim 1 needs Rust 1.88; an older compiler gets the last version that it builds.
const NEXOSIM_RUST: (u32, u32) = (1, 88);
const NEXOSIM: (&str, &str) = ("1.0.0", include_str!("../../baselines/nexosim/main_1.rs"));
const NEXOSIM_OLD: (&str, &str) = ("0.3.3", include_str!("../../baselines/nexosim/main_0.rs"));
const CACHE_TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n# unspin\n";

/// A simulator that can be run.
pub struct Baseline {
    kind: BaselineKind,
    version: String,
    /// Program and what comes before the model's arguments.
    command: Vec<PathBuf>,
    interrupt: Arc<AtomicBool>,
}

impl Baseline {
    /// Puts it into the cache unless it is there; says so. Once `interrupt` is set, what fails was interrupted.
    ///
    /// # Errors
    /// [`Error::Usage`] when this machine lacks the tool that installs it.
    pub fn ready(kind: BaselineKind, interrupt: &Arc<AtomicBool>) -> Result<Baseline, Error> {
        let cache = unspin_testbed::cache_from_environment().map_err(anyhow::Error::from)?;
        if !cache.exists() {
            // Marked as set-up marks it (setup/lib/common.bash), so that `make clean-cache` takes it away.
            fs::create_dir_all(&cache)?;
            fs::write(cache.join("CACHEDIR.TAG"), CACHE_TAG)?;
        }
        let folder = cache.join("baselines");
        match kind {
            BaselineKind::Simpy => simpy(&folder, interrupt),
            BaselineKind::Nexosim => nexosim(&folder, interrupt),
        }
    }

    /// Which.
    pub fn kind(&self) -> BaselineKind {
        self.kind
    }

    /// Name, version, and what runs it.
    pub fn version(&self) -> String {
        self.version.clone()
    }

    /// Runs the model; what it came to, and in how many seconds.
    pub fn run(&self, timers: u32, horizon_ns: u64, seed: u64) -> Result<(Expiries, f64), Error> {
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]);
        command.args([timers.to_string(), horizon_ns.to_string(), seed.to_string()]);
        let output = succeeded(&mut command, &self.version, &self.interrupt)?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let words: Vec<&str> = said.split_whitespace().collect();
        let parsed = || match words[..] {
            [events, checksum, seconds] => {
                let expiries = Expiries {
                    events: events.parse().ok()?,
                    checksum: checksum.parse().ok()?,
                };
                Some((expiries, seconds.parse().ok()?))
            }
            _ => None,
        };
        parsed().ok_or_else(|| anyhow!("{} said {said:?}", self.version).into())
    }
}

/// A virtual environment below `baselines`, and the model beside it.
fn simpy(baselines: &Path, interrupt: &Arc<AtomicBool>) -> Result<Baseline, Error> {
    let python = first_that_runs(&["python3".into(), "/usr/bin/python3".into()]).ok_or_else(|| {
        Error::Usage("SimPy needs python3, which is not on PATH: `apt-get install python3-venv`, or --baselines nexosim".into())
    })?;
    let folder = baselines.join(format!("simpy-{SIMPY}"));
    let interpreter = folder.join("bin/python");
    if !runs(interpreter.as_os_str().as_ref(), &["-c", "import simpy"]) {
        eprintln!(
            "unspin: installing SimPy {SIMPY} from PyPI into {} (30 kB)",
            folder.display()
        );
        let new = baselines.join(format!(".simpy-{}", std::process::id()));
        install_simpy(baselines, &new, &python, interrupt)
            .inspect_err(|_| drop(fs::remove_dir_all(&new)))?;
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::rename(&new, &folder)?;
    }
    let model = folder.join("timers_simpy.py");
    fs::write(&model, SIMPY_MODEL)?;
    let output = succeeded(
        Command::new(&interpreter).arg("--version"),
        "python",
        interrupt,
    )?;
    let python = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(Baseline {
        kind: BaselineKind::Simpy,
        version: format!("SimPy {SIMPY}, {python}"),
        command: vec![interpreter, model],
        interrupt: Arc::clone(interrupt),
    })
}

fn install_simpy(
    baselines: &Path,
    new: &Path,
    python: &Path,
    interrupt: &AtomicBool,
) -> Result<(), Error> {
    fs::create_dir_all(baselines)?;
    let venv = Command::new(python)
        .args(["-m", "venv"])
        .arg(new)
        .output()?;
    if !venv.status.success() {
        let why = last_line(&venv);
        let what = format!(
            "{} makes no virtual environment ({why}): `apt-get install python3-venv`",
            python.display()
        );
        return Err(Error::Usage(what));
    }
    let list = new.join("simpy.txt");
    fs::write(
        &list,
        format!("simpy=={SIMPY} --hash=sha256:{SIMPY_SHA256}\n"),
    )?;
    let pip = [
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
    ];
    let mut install = Command::new(new.join("bin/python"));
    install
        .args(pip)
        .arg("--require-hashes")
        .arg("-r")
        .arg(&list);
    succeeded(&mut install, "pip install simpy", interrupt)?;
    Ok(())
}

/// A cargo project below `baselines`, built with cargo's own flags. cargo itself sees when there is nothing to do.
fn nexosim(baselines: &Path, interrupt: &Arc<AtomicBool>) -> Result<Baseline, Error> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let cargo = first_that_runs(&["cargo".into(), home.join(".cargo/bin/cargo")]).ok_or_else(|| {
        Error::Usage("NeXosim needs cargo, which is not on PATH: `apt-get install cargo`, or --baselines simpy".into())
    })?;
    let rust = String::from_utf8_lossy(
        &succeeded(Command::new(&cargo).arg("--version"), "cargo", interrupt)?.stdout,
    )
    .into_owned();
    let rust = rust
        .split_whitespace()
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    let (version, model) = if is_at_least(&rust, NEXOSIM_RUST) {
        NEXOSIM
    } else {
        NEXOSIM_OLD
    };
    let folder = baselines.join(format!("nexosim-{version}-rust-{rust}"));
    let program = folder.join("target/release/timers");
    fs::create_dir_all(folder.join("src"))?;
    write_changed(&folder.join("Cargo.toml"), &manifest(version))?;
    write_changed(&folder.join("src/main.rs"), model)?;
    if !program.exists() {
        eprintln!(
            "unspin: building NeXosim {version} from cargo's registry in {} (about 20 s on 2 cores)",
            folder.display()
        );
    }
    let mut build = Command::new(&cargo);
    build
        .args(["build", "--release", "--quiet", "--target-dir", "target"])
        .current_dir(&folder);
    for flags in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_BUILD_TARGET",
        "CARGO_BUILD_RUSTFLAGS",
    ] {
        build.env_remove(flags);
    }
    succeeded(&mut build, "cargo build of NeXosim", interrupt)?;
    Ok(Baseline {
        kind: BaselineKind::Nexosim,
        version: format!("NeXosim {version}, Rust {rust}"),
        command: vec![program],
        interrupt: Arc::clone(interrupt),
    })
}

fn manifest(version: &str) -> String {
    format!(
        "[package]\nname = \"timers\"\nversion = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.85\"\n\n\
         [dependencies]\nnexosim = \"={version}\"\nserde = \"1\"\n\n[workspace]\n"
    )
}

/// Leaves a file alone that is as it should be: cargo builds again what is newer.
fn write_changed(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    fs::write(path, text)
}

/// "1.85.1" against (1, 85); what cannot be read is older.
fn is_at_least(version: &str, least: (u32, u32)) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= least
}

fn first_that_runs(programs: &[PathBuf]) -> Option<PathBuf> {
    programs
        .iter()
        .find(|program| runs(program, &["--version"]))
        .cloned()
}

fn runs(program: &Path, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// What the command printed, if it ended well. Ctrl-C reaches it too and is then told as such.
fn succeeded(command: &mut Command, what: &str, interrupt: &AtomicBool) -> Result<Output, Error> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{what} does not start"))?;
    if output.status.success() {
        return Ok(output);
    }
    if interrupt.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let why = last_line(&output);
    Err(anyhow!("{what} failed, {}: {why}", output.status).into())
}

fn last_line(output: &Output) -> String {
    let said = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        text.lines()
            .rfind(|line| !line.trim().is_empty())
            .map(str::to_owned)
    };
    said(&output.stderr)
        .or_else(|| said(&output.stdout))
        .unwrap_or_else(|| "it said nothing".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(
            is_at_least("1.88.0", NEXOSIM_RUST) && is_at_least("1.100.0-nightly", NEXOSIM_RUST)
        );
        assert!(!is_at_least("1.85.1", NEXOSIM_RUST) && !is_at_least("", NEXOSIM_RUST));
    }
}
