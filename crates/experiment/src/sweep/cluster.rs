// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sweep on a Ray cluster (`unspin lab sweep --ray`): what Python's `unspin_lab` does of it (crates/python), called from here.
//!
//! The plan goes to its standard input; each line of its standard output is a JSON object, `{"done": CELLS}` as it goes on and
//! in the end `{"result": ...}` or `{"usage": WHY}` or `{"failed": WHY}`.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use unspin_report::COMMIT;
use unspin_scenario::{Overrides, ScenarioText};

use super::{Grid, grid::axes_of};
use crate::{Error, Session, Work};

/// The variable that says which Python has `unspin_lab`; `python3` otherwise.
const PYTHON: &str = "UNSPIN_PYTHON";
/// How often the interrupt is looked at while Python is silent.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The plan, as `unspin_lab._command` reads it.
#[derive(Serialize)]
struct Plan<'a> {
    commit: &'a str,
    source: (&'a str, &'a str, &'a str, bool),
    settings: Vec<String>,
    axes: Vec<(&'a str, &'a [String])>,
    seeds: u32,
    address: &'a str,
    out: &'a str,
}

/// One line of Python's.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Done(usize),
    Result(Counted),
    Usage(String),
    Failed(String),
}

/// What Python counted.
#[derive(Deserialize)]
pub(super) struct Counted {
    pub(super) folder: String,
    pub(super) run: usize,
    pub(super) kept: usize,
    pub(super) rows: usize,
    left: Vec<String>,
}

/// A sweep of a cluster that is complete.
pub struct ClusterSwept {
    pub(super) grid: Grid,
    pub(super) counted: Counted,
}

impl ClusterSwept {
    /// What else there is to say: files that killed workers left half-written.
    pub fn notes(&self) -> Option<String> {
        let left = &self.counted.left;
        let what = "Killed workers left half-written files, which nothing reads";
        (!left.is_empty()).then(|| format!("{what}: {}", left.join(", ")))
    }
}

/// Runs what is missing in the folder or at the URL `out` on the cluster at that address; the grid as of [`Grid::of_words`].
///
/// # Errors
/// Those of the grid; no Python with `unspin_lab` of this build and Ray, no cluster, a folder of another sweep; a cell that is
/// stuck or whose workers keep dying; an interrupt. Files that are whole stay.
pub fn on_cluster(
    text: &ScenarioText,
    overrides: &Overrides,
    set: &[String],
    seeds: u32,
    (address, out): (&str, &str),
    session: &Session<'_>,
) -> Result<ClusterSwept, Error> {
    let (plain, axes) = axes_of(overrides, set)?;
    let grid = Grid::part(text, &plain, axes, seeds, 0..0, &session.interrupt)?;
    let plan = Plan {
        commit: COMMIT,
        source: (text.text(), text.file(), text.name(), true),
        settings: plain.words().collect(),
        axes: grid
            .axes
            .iter()
            .map(|axis| (axis.key.as_str(), &axis.values[..]))
            .collect(),
        seeds,
        address,
        out,
    };
    let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    let mut child = Command::new(&python)
        .args(["-m", "unspin_lab._command"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{python}, which {PYTHON} names or PATH has"))?;
    if let Some(mut input) = child.stdin.take() {
        // A Python that ends before it has read all says why, or its status does.
        let _ = input.write_all(&serde_json::to_vec(&plan).map_err(anyhow::Error::from)?);
    }
    session.progress.begin(
        "sweeping on the cluster",
        Work::EvenSteps(grid.len_of_whole()),
    );
    let last = read_lines(&mut child, session);
    session.progress.end();
    let status = child.wait().map_err(anyhow::Error::from)?;
    match last {
        _ if session.interrupt.load(Ordering::Relaxed) => Err(Error::Interrupted),
        Some(Line::Result(counted)) => Ok(ClusterSwept { grid, counted }),
        Some(Line::Usage(why)) => Err(Error::Usage(why)),
        Some(Line::Failed(why)) => Err(Error::Failed(anyhow::Error::msg(why))),
        Some(Line::Done(_)) | None => Err(Error::Usage(format!(
            "{python} ended ({status}): `lab sweep --ray` needs a Python with unspin_lab of this build (make wheel), \
             `pip install 'WHEEL[ray]'`; {PYTHON} names one"
        ))),
    }
}

/// Passes on how far it is; the last line. An interrupt, which a terminal sends to Python as well, ends Python in order.
fn read_lines(child: &mut Child, session: &Session<'_>) -> Option<Line> {
    let lines = BufReader::new(child.stdout.take()?).lines();
    let (pid, interrupt, over) = (child.id(), &session.interrupt, AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if interrupt.load(Ordering::Relaxed) {
                    // SAFETY: a number; the process is ours and is waited for after this thread.
                    unsafe { libc::kill(pid as libc::pid_t, libc::SIGINT) };
                    return;
                }
                thread::sleep(LOOK_EVERY);
            }
        });
        let mut last = None;
        for line in lines.map_while(Result::ok) {
            last = serde_json::from_str(&line).ok();
            if let Some(Line::Done(cells)) = last {
                session.progress.done(cells);
            }
        }
        over.store(true, Ordering::Relaxed);
        last
    })
}
