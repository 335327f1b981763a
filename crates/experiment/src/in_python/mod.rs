// SPDX-License-Identifier: MIT OR Apache-2.0
//! Experiments that Python's `unspin_lab` (crates/python) does, called from here: those that need Ray ([`on_cluster`]) or optuna
//! ([`find`]).
//!
//! The plan goes to its standard input. Each line of its standard output is a JSON object: `{"done": STEPS}` as it goes on, and in
//! the end `{"result": ...}`, `{"usage": WHY}` or `{"failed": WHY}`.

mod find;
mod sweep;

use std::{
    env,
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use anyhow::Context;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use unspin_report::COMMIT;
use unspin_scenario::{Overrides, ScenarioText};

pub use find::{FindPlan, FindingRow, Found, SearchRow, find};
pub use sweep::{ClusterSwept, on_cluster};

use crate::{Error, Session, Work, sweep::Axis};

/// The variable that says which Python has `unspin_lab`; `python3` otherwise.
const PYTHON: &str = "UNSPIN_PYTHON";
/// How often the interrupt is looked at while Python is silent.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A scenario with several values of some keys, as `unspin_lab` takes it.
#[derive(Serialize)]
struct Varied<'a> {
    source: (&'a str, &'a str, &'a str, bool),
    settings: Vec<String>,
    axes: Vec<(&'a str, &'a [String])>,
}

impl<'a> Varied<'a> {
    /// This scenario, what overrides it, and the keys with several values.
    fn new(text: &'a ScenarioText, plain: &Overrides, axes: &'a [Axis]) -> Varied<'a> {
        let values = axes
            .iter()
            .map(|axis| (axis.key.as_str(), &axis.values[..]));
        Varied {
            source: (text.text(), text.file(), text.name(), true),
            settings: plain.words().collect(),
            axes: values.collect(),
        }
    }
}

#[derive(Serialize)]
struct Plan<'a, A> {
    commit: &'a str,
    function: &'a str,
    varied: &'a Varied<'a>,
    arguments: A,
}

/// One line of Python's.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<R> {
    Done(usize),
    Result(R),
    Usage(String),
    Failed(String),
}

/// Calls that function of `unspin_lab._command` with these arguments; it has so many steps. Returns its result.
///
/// # Errors
/// No Python with `unspin_lab` of this build; what the function refuses or fails at; an interrupt.
fn call<A: Serialize, R: DeserializeOwned>(
    function: &str,
    varied: &Varied<'_>,
    arguments: A,
    (what, steps): (&str, usize),
    session: &Session<'_>,
) -> Result<R, Error> {
    let plan = Plan {
        commit: COMMIT,
        function,
        varied,
        arguments,
    };
    let plan = serde_json::to_vec(&plan).map_err(anyhow::Error::from)?;
    let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    let mut child = Command::new(&python)
        .args(["-m", "unspin_lab._command"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("{python}, which {PYTHON} names or PATH has"))?;
    if let Some(mut input) = child.stdin.take() {
        // A Python that ends before it has read all says why, or its status does.
        let _ = input.write_all(&plan);
    }
    session.progress.begin(what, Work::EvenSteps(steps));
    let last = read_lines(&mut child, session);
    session.progress.end();
    let status = child.wait().map_err(anyhow::Error::from)?;
    match last {
        _ if session.interrupt.load(Ordering::Relaxed) => Err(Error::Interrupted),
        Some(Line::Result(result)) => Ok(result),
        Some(Line::Usage(why)) => Err(Error::Usage(why)),
        Some(Line::Failed(why)) => Err(Error::Failed(anyhow::Error::msg(why))),
        Some(Line::Done(_)) | None => Err(Error::Usage(format!(
            "{python} ended ({status}): this needs a Python with unspin_lab of this build, which `make wheel` makes \
             (docs/python.md); {PYTHON} names one"
        ))),
    }
}

/// Passes on how far it is; the last line. An interrupt, which a terminal sends to Python as well, ends Python in order.
fn read_lines<R: DeserializeOwned>(child: &mut Child, session: &Session<'_>) -> Option<Line<R>> {
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
            if let Some(Line::Done(steps)) = last {
                session.progress.done(steps);
            }
        }
        over.store(true, Ordering::Relaxed);
        last
    })
}
