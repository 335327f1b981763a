// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much of the gap between stock and ideal each policy closes: `gap SCENARIO [PAIRS [KEY=VALUE...]] [-- POLICY...]`.
//!
//! Boots the testbed deterministically with itself as PID 1 and runs, in one boot, the columns *ideal* (one VM that fits,
//! alone), *stock* (the kernel's scheduler), and each policy (`none`, when nothing else is asked for), pair by pair from
//! seed, seed + 1 ..., in this order and back in the next pair. Prints each sample, then each column's mean and the gap
//! closed, (policy - stock) / (ideal - stock). A policy's counters are printed for the last pair.

use std::error::Error;

use unspin_agent::{SteerOptions, Steerer};
use unspin_scenario::{Overrides, Scenario};
use unspin_testbed::{Input, Options, Qemu, cache_from_environment, init_main, run_with};
use unspin_vmm::{RunOptions, run};

const SCENARIO: &str = "/root/scenario.toml";

fn main() -> Result<(), Box<dyn Error>> {
    if std::process::id() == 1 {
        init_main();
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == "inside") {
        return inside(&words[1..]);
    }
    let file = words.first().ok_or("which scenario?")?;
    let mut options = Options::new(cache_from_environment()?);
    options.qemu = Qemu::Unspin;
    options.deterministic = true;
    options.inputs.push(Input {
        host: file.into(),
        guest: SCENARIO.into(),
        executable: false,
    });
    let host = load(file, &words[1..])?.host;
    let (window, gap) = (host.ple_window.unwrap_or(3000), host.ple_gap.unwrap_or(128));
    let mut parameters = format!("pause_filter_count={window} pause_filter_thresh={gap}");
    if host.ple_window_fixed {
        parameters += " pause_filter_count_grow=1 pause_filter_count_shrink=1";
    }
    options
        .module_parameters
        .insert("kvm_amd".into(), parameters);
    let mut command = vec!["unspin".into(), "inside".into()];
    command.extend(words[1..].iter().map(Into::into));
    let outcome = run_with(
        &options,
        &command,
        &mut std::io::stdout(),
        &mut std::io::stderr(),
    )?;
    std::process::exit(outcome.status)
}

/// A column and the policies that make it; `None`: nobody steers.
struct Column {
    name: String,
    steer: Option<SteerOptions>,
    ideal: bool,
    samples: Vec<f64>,
}

/// Words before and after `--`.
fn parts(words: &[String]) -> (&[String], &[String]) {
    match words.iter().position(|word| word == "--") {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[]),
    }
}

/// The scenario with its overrides. Guests of every column give the same hints: only the host differs.
fn load(file: &str, words: &[String]) -> Result<Scenario, Box<dyn Error>> {
    let mut overrides = Overrides::default();
    for setting in parts(words).0.iter().skip(1) {
        overrides.set(setting)?;
    }
    Ok(Scenario::load(file.as_ref(), &overrides)?)
}

fn inside(words: &[String]) -> Result<(), Box<dyn Error>> {
    let (settings, policies) = parts(words);
    let pairs: u64 = settings.first().map_or(Ok(2), |pairs| pairs.parse())?;
    let scenario = load(SCENARIO, words)?;
    let mut columns = columns(policies)?;
    for pair in 0..pairs {
        let backwards = pair % 2 == 1;
        let mut order: Vec<usize> = (0..columns.len()).collect();
        if backwards {
            order.reverse();
        }
        for at in order {
            let rate = sample(&scenario, pair, &columns[at], pair + 1 == pairs)?;
            println!("pair {pair} {} {rate:.0}", columns[at].name);
            columns[at].samples.push(rate);
        }
    }
    summary(&columns);
    Ok(())
}

fn columns(policies: &[String]) -> Result<Vec<Column>, Box<dyn Error>> {
    let column = |name: &str, steer, ideal| Column {
        name: name.to_owned(),
        steer,
        ideal,
        samples: Vec::new(),
    };
    let mut columns = vec![column("ideal", None, true), column("stock", None, false)];
    for name in policies {
        let options = SteerOptions {
            policies: name.parse()?,
            ..SteerOptions::default()
        };
        columns.push(column(name, Some(options), false));
    }
    Ok(columns)
}

/// Acquisitions per second of all VMs together.
fn sample(
    scenario: &Scenario,
    pair: u64,
    column: &Column,
    last: bool,
) -> Result<f64, Box<dyn Error>> {
    let mut scenario = scenario.clone();
    scenario.seed += pair;
    if column.ideal {
        scenario.vms.truncate(1);
        scenario.vms[0].count = 1;
        scenario.vms[0].vcpus = scenario.host.cpus.unwrap_or(2);
    }
    let steerer = column.steer.as_ref().map(Steerer::attach).transpose()?;
    let report = run(&scenario, &RunOptions::default())?;
    let vcpus = report.vms.iter().flat_map(|vm| &vm.vcpus);
    let operations: u64 = vcpus.map(|vcpu| vcpu.window.operations).sum();
    if report.vms.len() > 1 {
        let each = report.vms.iter().map(|vm| {
            let operations = vm
                .vcpus
                .iter()
                .map(|vcpu| vcpu.window.operations)
                .sum::<u64>();
            let cpu_ns = vm.vcpus.iter().map(|vcpu| vcpu.cpu_time_ns).sum::<u64>();
            format!("{operations} ops in {} ms", cpu_ns / 1_000_000)
        });
        println!("  VMs: {}", each.collect::<Vec<_>>().join(", "));
    }
    if let Some(steerer) = steerer {
        if let Some(end) = steerer.ended()? {
            return Err(format!("{}: {}", end.reason, end.message).into());
        }
        if last {
            for counter in steerer
                .counters()?
                .iter()
                .filter(|counter| counter.value > 0)
            {
                print!("  {} {}", counter.name, counter.value);
            }
            println!();
        }
    }
    Ok(operations as f64 * 1e9 / report.window_ns.max(1) as f64)
}

fn summary(columns: &[Column]) {
    let mean = |column: &Column| column.samples.iter().sum::<f64>() / column.samples.len() as f64;
    let (ideal, stock) = (mean(&columns[0]), mean(&columns[1]));
    for column in columns {
        let mean = mean(column);
        println!(
            "{:24} {mean:9.0} ops/s, gap closed {:6.3}, to stock {:6.3}",
            column.name,
            (mean - stock) / (ideal - stock),
            mean / stock
        );
    }
}
