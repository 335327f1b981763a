// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comparisons that are built in, each in a deterministic testbed of its own, as many at a time as there are CPUs (each
//! takes one): the rows of the demo and of the matrix.

use std::{
    fs::File,
    io::Write,
    os::fd::AsRawFd,
    sync::{
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    time::Duration,
};

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use unspin_scenario::{Overrides, Scenario};
use unspin_testbed::{Input, Options, Vendor};
use unspin_vmm::PauseLoop;

use crate::{
    Error, Row, Session,
    kvm::{Compared, Figures, SampleRow, VmRow, WindowRow, compare},
    plan::Plan,
    progress::Work,
    rival,
};

/// How soon an interrupt is noticed.
const INTERRUPT_POLL: Duration = Duration::from_millis(100);

/// How long a cell may take in the Intel machine: some ten times what one takes on an idle core.
const INTEL_LIMIT: Duration = Duration::from_secs(3600);

/// One comparison: a scenario of this binary, what overrides it, and how it is compared.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Where the scenario stands in the repository.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
    /// `KEY=VALUE` each.
    pub set: Vec<String>,
    /// Pairs, windows, policies.
    pub plan: Plan,
    /// The testbed's machine.
    pub vendor: Vendor,
}

/// What came of a cell.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Finished {
    /// [`Cell::identity`].
    pub cell: String,
    /// The machine that it was measured on.
    pub machine: String,
    /// One for each policy.
    pub rows: Vec<Row<Figures>>,
    /// One for each VM and column.
    pub vms: Vec<VmRow>,
    /// One for each sample.
    pub samples: Vec<SampleRow>,
    /// One for each column, where windows were compared.
    #[serde(default)]
    pub windows: Vec<WindowRow>,
}

impl Cell {
    /// The scenario with all overrides.
    ///
    /// # Errors
    /// When they do not fit together.
    pub fn scenario(&self) -> Result<Scenario, Error> {
        let mut overrides = Overrides::default();
        for set in &self.set {
            overrides
                .set(set)
                .map_err(|error| Error::Usage(error.to_string()))?;
        }
        Ok(Scenario::parse_with(
            self.text, self.file, "unnamed", &overrides,
        )?)
    }

    /// The command line that compares it, without `unspin`.
    fn to_args(&self) -> Vec<String> {
        let mut words = vec!["compare".to_owned(), self.file.to_owned()];
        words.extend(self.set.iter().map(|set| format!("--set {set}")));
        words.extend(self.plan.to_args());
        let words = words.iter().flat_map(|word| word.split(' '));
        words.map(str::to_owned).collect()
    }

    /// All that its rows depend on, but the binary: the scenario's hash, and how it is compared.
    ///
    /// # Errors
    /// As [`Cell::scenario`].
    pub fn identity(&self) -> Result<String, Error> {
        let hash = self.scenario()?.hash();
        let machine = match self.vendor {
            Vendor::Amd => "",
            Vendor::Intel => "intel ",
        };
        Ok(format!("{machine}{hash} {}", self.plan.to_args().join(" ")))
    }

    /// Runs it in a testbed.
    fn in_testbed(&self) -> Result<Finished, Error> {
        let scenario = self.scenario()?;
        let cache = unspin_testbed::cache_from_environment()?;
        // Without a name: whatever ends this process, nothing is left of it.
        let mut text = tempfile::tempfile().context("making a temporary file")?;
        text.write_all(self.text.as_bytes())
            .context("writing a scenario for the testbed")?;
        let mut options = self.options(Options::new(cache), &scenario, &text);
        let brought = rival::inputs(&self.plan.rivals, &options)?;
        options.inputs.extend(brought);
        let mut command = vec!["unspin".to_owned()];
        command.extend(self.to_args());
        command.push("--json".into());
        let command: Vec<_> = command.into_iter().map(Into::into).collect();
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let outcome = unspin_testbed::run_with(&options, &command, &mut out, &mut errors)
            .with_context(|| format!("{} in the testbed", self.name()))?;
        std::io::stderr().write_all(&errors)?;
        if outcome.status != 0 {
            return Err(anyhow!(
                "{} ended with status {} in the testbed",
                self.name(),
                outcome.status
            )
            .into());
        }
        let (machine, compared) = read_compared(&out)?;
        self.of(machine, compared)
    }

    fn options(&self, mut options: Options, scenario: &Scenario, text: &File) -> Options {
        options.deterministic = true;
        options.vendor = self.vendor;
        if self.vendor == Vendor::Intel {
            options.time_limit = INTEL_LIMIT;
        }
        options.seed = scenario.seed;
        options.inputs = vec![Input {
            host: format!("/proc/self/fd/{}", text.as_raw_fd()).into(),
            guest: self.file.into(),
            executable: false,
        }];
        let module = options.vendor.kvm_module();
        if let Some(parameters) = PauseLoop::module_parameters(module, &scenario.host) {
            options.module_parameters.insert(module.into(), parameters);
        }
        options
    }

    /// Runs it on this machine's own KVM, whose pause-loop window stays as it is: the row says which one that was. `machine`: what
    /// this machine is called.
    ///
    /// # Errors
    /// As [`compare`].
    pub fn on_this_host(&self, machine: &str, session: &Session) -> Result<Finished, Error> {
        let mut scenario = self.scenario()?;
        scenario.host.ple_window = None;
        scenario.host.ple_gap = None;
        scenario.host.ple_window_fixed = false;
        let replay = format!("unspin {}", self.to_args().join(" "));
        let compared = compare(&scenario, &self.plan, &replay, session)?;
        self.of(machine.to_owned(), compared)
    }

    fn of(&self, machine: String, compared: Compared) -> Result<Finished, Error> {
        Ok(Finished {
            cell: self.identity()?,
            machine,
            rows: compared.rows,
            vms: compared.vms,
            samples: compared.samples,
            windows: compared.windows,
        })
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        [&[self.file.to_owned()], &self.set[..]].concat().join(" ")
    }
}

/// What `unspin compare --json` printed in a testbed: the machine, and all that came of it.
///
/// # Errors
/// When it is not that.
pub fn read_compared(out: &[u8]) -> Result<(String, Compared), Error> {
    let object: serde_json::Value =
        serde_json::from_slice(out).context("reading what the testbed printed")?;
    let machine = object["machine"].as_str().unwrap_or("testbed").to_owned();
    let mut compared = Compared::default();
    for row in object["rows"].as_array().into_iter().flatten() {
        let of = row.clone();
        match row["table"].as_str() {
            Some("compare") => compared.rows.push(read(of)?),
            Some("vm") => compared.vms.push(read(of)?),
            Some("sample") => compared.samples.push(read(of)?),
            Some("windows") => compared.windows.push(read(of)?),
            _ => {}
        }
    }
    Ok((machine, compared))
}

fn read<T: DeserializeOwned>(row: serde_json::Value) -> Result<T, Error> {
    Ok(serde_json::from_value(row).context("reading a row that the testbed printed")?)
}

/// Runs every cell in a testbed, the first ones first, and hands over each as soon as it is done. An interrupt calls `abort`,
/// which ends this process: the testbeds' processes die with it.
///
/// # Errors
/// The first error, a cell's or `done`'s, when those cells that had begun are done too.
pub fn in_testbeds(
    cells: &[&Cell],
    message: &str,
    session: &Session,
    abort: fn() -> !,
    mut done: impl FnMut(Finished) -> Result<(), Error>,
) -> Result<(), Error> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    session.progress.begin(message, Work::Steps(cells.len()));
    let next = AtomicUsize::new(0);
    let (sender, results) = mpsc::channel();
    let result = std::thread::scope(|scope| {
        for _ in 0..workers.min(cells.len()) {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // Nobody listens any more only when the process ends.
                    let _ = sender.send(cell.in_testbed());
                }
            });
        }
        drop(sender);
        let (mut finished, mut result) = (0, Ok(()));
        loop {
            match results.recv_timeout(INTERRUPT_POLL) {
                Ok(of_cell) => {
                    finished += 1;
                    session.progress.done(finished);
                    if result.is_ok() {
                        result = of_cell.and_then(&mut done);
                    }
                    if result.is_err() {
                        next.store(cells.len(), Ordering::Relaxed);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return result,
                Err(RecvTimeoutError::Timeout) if session.interrupt.load(Ordering::Relaxed) => {
                    session.progress.end();
                    abort()
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    });
    session.progress.end();
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Observe;

    fn cell() -> Cell {
        Cell {
            file: "x.toml",
            text: "duration = \"1s\"\n[[vm]]\nvcpus = 4\nlock = \"ticket\"\nhold = \"1us\"\n",
            set: vec!["vm.pv_page=true".into()],
            plan: Plan {
                pairs: 2,
                sample: Duration::from_millis(500),
                discard: Duration::from_millis(250),
                observe: Observe::On,
                policies: vec!["loan".parse().expect("a policy")],
                rivals: Vec::new(),
                only_vms: false,
                useful_time: false,
            },
            vendor: Vendor::Amd,
        }
    }

    #[test]
    fn a_cell_is_what_its_rows_depend_on() {
        let cell = cell();
        assert_eq!(
            cell.to_args().join(" "),
            "compare x.toml --set vm.pv_page=true --pairs 2 \
             --sample 500ms --discard 250ms --observe on --policy loan"
        );
        let identity = |cell: &Cell| cell.identity().expect("valid");
        let mut other = cell.clone();
        other.plan.pairs = 4;
        assert_ne!(identity(&cell), identity(&other));
        let mut other = cell.clone();
        other.set = vec!["vm.pv_page=false".into()];
        assert_ne!(identity(&cell), identity(&other));
        other = cell.clone();
        other.vendor = Vendor::Intel;
        assert_ne!(identity(&cell), identity(&other));
        assert_eq!(identity(&cell), identity(&cell.clone()));
    }
}
