// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin demo`: the project's main job on a machine that needs nothing: ideal, stock and a remedy for a handful of
//! shapes and locks.
//!
//! Each row is a boot of its own in the deterministic testbed, so that the command printed for it repeats it.

use std::{
    io::{BufRead, IsTerminal, Write},
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use anyhow::{Context, anyhow};
use unspin_report::{Document, Machine};
use unspin_scenario::Scenario;
use unspin_testbed::{Input, Options};

use crate::{
    arguments::{DemoArguments, Observe},
    compare::{self, How, Row},
    compare_table,
    failure::Failure,
    other_vms, output,
    progress::Steps,
    testbed_run::kvm_amd_parameters,
};

macro_rules! demo_files {
    ($($name:literal),* $(,)?) => {
        /// The demo's scenarios, as they stand in `scenarios/`, so that the one binary is enough.
        const FILES: &[(&str, &str)] = &[$((
            concat!("scenarios/demo/", $name, ".toml"),
            include_str!(concat!("../../../scenarios/demo/", $name, ".toml")),
        )),*];
    };
}
// Longest boots first, so that the last one does not run alone for long.
demo_files!(
    "2x4-ticket",
    "2x4-preemptable_ticket",
    "2x4-test_and_test_and_set",
    "1x4-ticket",
    "1x4-preemptable_ticket",
    "1x4-test_and_test_and_set",
    "1x2-ticket",
    "1x2-test_and_test_and_set",
);

/// The best policy found so far for guests that say what they wait for, as the demo's do.
const POLICY: &str = "loan,kernel-exit";

/// Runs all rows and prints them.
pub fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let begin = Instant::now();
    let measured = if arguments.on_this_host {
        on_this_host(arguments)?
    } else {
        in_testbed(arguments)?
    };
    // One machine for all rows: this one, or the testbed as it calls itself.
    let machine = measured
        .first()
        .map_or("", |(machine, _)| machine)
        .to_owned();
    let mut rows: Vec<Row> = measured.into_iter().map(|(_, row)| row).collect();
    rows.sort_by(|a, b| (&a.shape, &a.lock).cmp(&(&b.shape, &b.lock)));
    let mut document = Document::new("demo", machine);
    document.note(
        "The same work on 2 CPUs: ideal (one VM that fits, alone), stock (the kernel as it is), none (our scheduler, \
         directed yields refused), and our scheduler with a policy:\n",
    );
    compare_table::add(&mut document, &rows);
    for row in &rows {
        document.note(compare_table::sentence(row));
    }
    document.note("\nRepeat a row byte for byte:");
    for row in &rows {
        document.note(format!("  {}", row.replay));
    }
    output::print(&document, arguments.output)?;
    eprintln!(
        "unspin demo: {} rows in {} s",
        rows.len(),
        begin.elapsed().as_secs()
    );
    Ok(())
}

fn compare_words(path: &str, pairs: u32, policy: Option<&str>) -> Vec<String> {
    let pairs = pairs.to_string();
    let mut words = vec!["compare", path, "--pairs", &pairs, "--observe", "on"];
    if let Some(policy) = policy {
        words.extend(["--policy", policy]);
    }
    words.into_iter().map(str::to_owned).collect()
}

/// A row and the machine that it was measured on.
type Measured = (String, Row);

/// Every row in a testbed of its own, as many at a time as there are CPUs (each takes one).
fn in_testbed(arguments: &DemoArguments) -> Result<Vec<Measured>, Failure> {
    let cache = unspin_testbed::cache_from_environment().map_err(anyhow::Error::from)?;
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(FILES.len());
    eprintln!(
        "unspin demo: boots an emulated KVM host {} times, {workers} at a time, in virtual time; \
         nothing outside it is touched",
        FILES.len()
    );
    let steps = Steps::start(FILES.len(), "rows");
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let results: Mutex<Vec<Result<Measured, Failure>>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((name, text)) = FILES.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = testbed_row(&cache, folder.path(), name, text, arguments.pairs);
                    let failed = result.is_err();
                    results.lock().expect("no worker panics").push(result);
                    steps.done(done.fetch_add(1, Ordering::Relaxed) + 1);
                    if failed {
                        next.store(FILES.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    results
        .into_inner()
        .expect("no worker panics")
        .into_iter()
        .collect()
}

fn testbed_row(
    cache: &Path,
    folder: &Path,
    name: &str,
    text: &str,
    pairs: u32,
) -> Result<Measured, Failure> {
    let scenario = Scenario::parse(text, name)?;
    let copy = folder.join(name.replace('/', "-"));
    std::fs::write(&copy, text).context("writing a scenario for the testbed")?;
    let mut options = Options::new(cache.to_owned());
    options.deterministic = true;
    options.seed = scenario.seed;
    options.inputs = vec![Input {
        host: copy,
        guest: name.into(),
        executable: false,
    }];
    if let Some(parameters) = kvm_amd_parameters(&scenario.host) {
        options
            .module_parameters
            .insert("kvm_amd".into(), parameters);
    }
    let mut command = vec!["unspin".to_owned()];
    command.extend(compare_words(name, pairs, Some(POLICY)));
    command.push("--json".into());
    let command: Vec<_> = command.into_iter().map(Into::into).collect();
    let (mut out, mut errors) = (Vec::new(), Vec::new());
    let outcome = unspin_testbed::run_with(&options, &command, &mut out, &mut errors)
        .map_err(anyhow::Error::from)
        .with_context(|| format!("{name} in the testbed"))?;
    std::io::stderr().write_all(&errors)?;
    if outcome.status != 0 {
        return Err(anyhow!("{name} ended with status {} in the testbed", outcome.status).into());
    }
    let object: serde_json::Value =
        serde_json::from_slice(&out).context("reading what the testbed printed")?;
    let row = object["rows"].get(0).cloned().unwrap_or_default();
    let row: Row = serde_json::from_value(row).context("reading a row that the testbed printed")?;
    let machine = object["machine"].as_str().unwrap_or("testbed").to_owned();
    let replay = repeat(name, pairs);
    Ok((machine, Row { replay, ..row }))
}

fn repeat(name: &str, pairs: u32) -> String {
    format!(
        "unspin testbed run --deterministic -- unspin {}",
        compare_words(name, pairs, Some(POLICY)).join(" ")
    )
}

/// Every row on this machine's own KVM, after a word about it.
fn on_this_host(arguments: &DemoArguments) -> Result<Vec<Measured>, Failure> {
    let others = other_vms::count().context("looking for VMs on this host")?;
    eprintln!(
        "unspin demo: on this host, for about {} s, up to 8 vCPU threads will load all CPUs, watched by BPF programs \
         that are detached at the end; no module is reloaded and no setting changed",
        FILES.len() as u32 * arguments.pairs * 4
    );
    if others > 0 && !arguments.yes {
        return Err(Failure::Usage(format!(
            "{others} other VMs run on this host and would be slowed down: stop them, or say --yes"
        )));
    }
    if !arguments.yes && !agreed()? {
        return Err(Failure::Usage("not run: answer y, or say --yes".into()));
    }
    FILES
        .iter()
        .map(|(name, text)| host_row(name, text, arguments.pairs))
        .collect()
}

fn host_row(name: &str, text: &str, pairs: u32) -> Result<Measured, Failure> {
    let mut scenario = Scenario::parse(text, name)?;
    // The host's window stays as it is; the row says which one that was.
    scenario.host.ple_window = None;
    scenario.host.ple_gap = None;
    scenario.host.ple_window_fixed = false;
    let replay = format!("unspin {}", compare_words(name, pairs, None).join(" "));
    let how = How {
        pairs,
        observe: Observe::Auto,
        // Another scheduler for the whole of somebody's host is not what a demonstration may bring.
        policy: None,
    };
    let row = compare::compare(&scenario, how, replay)?;
    Ok((Machine::here(output::in_testbed()).to_string(), row))
}

/// Asks on the terminal; without one the answer is no.
fn agreed() -> std::io::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("Go on? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
