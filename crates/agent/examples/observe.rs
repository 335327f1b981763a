// SPDX-License-Identifier: MIT OR Apache-2.0
//! Observes this host's vCPU threads while a command runs, then prints counters, health and a summary of events as JSON:
//! `observe [--counters-only|--everything] COMMAND [ARGUMENT...]`.

use std::{
    collections::BTreeMap,
    env,
    error::Error,
    process::{Command, ExitCode},
    time::Duration,
};

use unspin_agent::{EventMask, ObserveOptions, Observer, Recorder, capabilities};

const EVENTS_MAX: usize = 10_000_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("observe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<_> = env::args_os().skip(1).collect();
    let mut options = ObserveOptions {
        run_statistics: true,
        ..ObserveOptions::default()
    };
    match arguments.first().and_then(|first| first.to_str()) {
        Some("--counters-only") => options.events = EventMask::NONE,
        Some("--everything") => options.events = options.events.and(EventMask::EXITS),
        _ => {}
    }
    arguments.retain(|argument| !argument.to_string_lossy().starts_with("--"));
    eprintln!("{:#?}", capabilities());
    let observer = Observer::attach(&options)?;
    let recorder = Recorder::start(observer, Duration::from_millis(5), EVENTS_MAX)?;
    if let Some((program, rest)) = arguments.split_first() {
        let status = Command::new(program).args(rest).status()?;
        eprintln!("command: {status}");
    }
    let recorded = recorder.finish()?;
    for counters in recorded.observer.counters()? {
        println!("{}", serde_json::to_string(&counters)?);
        if counters.conservation_error_ns() != 0 {
            println!(
                "conservation error: {} ns",
                counters.conservation_error_ns()
            );
        }
    }
    println!("{:#?}", recorded.observer.health()?);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for event in &recorded.events {
        let what = serde_json::to_value(event)?;
        let kind = what["kind"].as_str().unwrap_or("?").to_owned();
        *kinds.entry(kind).or_default() += 1;
    }
    println!("events {kinds:?}, dropped {}", recorded.dropped);
    for event in recorded.events.iter().take(12) {
        println!("{}", serde_json::to_string(event)?);
    }
    Ok(())
}
