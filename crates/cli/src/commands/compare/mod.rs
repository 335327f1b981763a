// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin compare`: scenarios as they are (*stock*) against the same work with nobody overcommitted (*ideal*), with our
//! scheduler and every directed yield refused (*refuse-yields*), and with each policy, in VMs that keep running meanwhile.

pub(crate) mod args;
mod full;
pub(crate) mod tables;

use std::time::Duration;

use unspin_experiment::{
    Plan, check_user_policies,
    kvm::{Compared, compare, sentence},
    matrix::set_shape,
    prediction,
    rival::{check_rivals, note},
};
use unspin_report::{Document, Machine};
use unspin_scenario::{Length, Scenario};

use self::args::CompareArguments;
use crate::terminal::{
    failure::Failure, options::ScenarioArguments, output, progress::Experiment, replay,
};

/// What things cost, if the lab is asked for.
///
/// # Errors
/// As [`prediction::costs`](unspin_experiment::prediction::costs).
pub fn costs(
    arguments: &CompareArguments,
    in_testbed: bool,
) -> Result<Option<Vec<String>>, Failure> {
    let asked = &arguments.prediction;
    let costs = || unspin_experiment::prediction::costs(asked.lab_costs.as_deref(), in_testbed);
    Ok(asked.lab.then(costs).transpose()?)
}

/// A scenario of the command line, with the words that repeat its row.
pub struct Chosen {
    /// With all overrides in it.
    pub scenario: Scenario,
    /// How it is compared.
    pub plan: Plan,
    /// The command that repeats its row.
    pub replay: String,
}

/// Compares and prints the tables.
pub fn run(arguments: &CompareArguments) -> Result<(), Failure> {
    if arguments.full {
        return full::run(arguments);
    }
    let in_testbed = output::in_testbed();
    let costs = costs(arguments, in_testbed)?;
    let all = chosen(arguments)?;
    let mut together = Compared::default();
    // With --json another program reads, as the demo does: it has a bar of its own.
    let progress = Experiment::new(!arguments.output.json);
    for chosen in &all {
        together.extend(compare(
            &chosen.scenario,
            &chosen.plan,
            &chosen.replay,
            &progress.session()?,
        )?);
    }
    let machine = Machine::here(in_testbed).to_string();
    print(arguments, &machine, &all, &together, costs.as_deref())
}

/// Prints what came of all scenarios together; with costs what the lab predicts for them, too.
///
/// # Errors
/// When nothing can be predicted or written.
pub fn print(
    arguments: &CompareArguments,
    machine: &str,
    all: &[Chosen],
    together: &Compared,
    costs: Option<&[String]>,
) -> Result<(), Failure> {
    let mut document = Document::new("compare", machine);
    tables::add(&mut document, &together.rows);
    tables::add_vms(&mut document, &together.vms);
    tables::add_windows(&mut document, &together.windows);
    tables::add_samples(&mut document, &together.samples);
    tables::add_pooled(&mut document, &together.rows);
    if let Some(costs) = costs {
        let predicted = all.iter().map(|chosen| {
            let hash = chosen.scenario.hash();
            let rows = together.rows.iter();
            prediction::Compared {
                scenario: &chosen.scenario,
                plan: &chosen.plan,
                rows: rows
                    .filter(|row| row.world.scenario_sha256 == hash)
                    .collect(),
            }
        });
        let predicted: Vec<_> = predicted.collect();
        tables::add_predictions(
            &mut document,
            &predicted,
            costs,
            arguments.prediction.lab_seeds,
        )?;
    }
    for row in &together.rows {
        document.note(sentence(row));
    }
    if arguments.only_vms {
        document.note("refuse-yields and policies: vCPU threads only under our scheduler (--only-vms), everything else under the kernel's own");
    }
    if let Some(rivals) = note(&arguments.rivals)? {
        document.note(rivals);
    }
    let mut last = "";
    for row in &together.rows {
        let replay = &row.world.replay;
        if replay != last {
            document.note(format!("repeat it byte for byte: {replay}"));
            last = replay;
        }
    }
    Ok(output::print(&document, arguments.output)?)
}

/// Every scenario in every shape that the command line asks for.
///
/// # Errors
/// When a scenario is wrong, or says no window's length.
pub fn chosen(arguments: &CompareArguments) -> Result<Vec<Chosen>, Failure> {
    let shapes: Vec<Option<(u32, u32)>> = match arguments.shapes.is_empty() {
        true => vec![None],
        false => arguments.shapes.iter().copied().map(Some).collect(),
    };
    let mut all = Vec::new();
    for file in &arguments.scenarios {
        for shape in &shapes {
            let mut given = ScenarioArguments {
                file: file.clone(),
                overrides: arguments.overrides.clone(),
            };
            if let Some((count, vcpus)) = shape {
                given.overrides.set.extend(set_shape(*count, *vcpus));
            }
            let scenario = given.load()?;
            if shape.is_some() && scenario.vms.len() > 1 {
                return Err(Failure::Usage(format!(
                    "--shape is for scenarios with one group of VMs; {} has {}",
                    file.display(),
                    scenario.vms.len()
                )));
            }
            let plan = plan(arguments, &scenario)?;
            all.push(Chosen {
                replay: replay::command("compare", &given, &plan.to_args()),
                scenario,
                plan,
            });
        }
    }
    Ok(all)
}

/// `1x4`: VMs x vCPUs.
pub fn parse_shape(text: &str) -> Result<(u32, u32), String> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    text.split_once('x')
        .and_then(|(count, vcpus)| Some((number(count)?, number(vcpus)?)))
        .ok_or_else(|| "write VMs x vCPUs, as in 1x4".to_owned())
}

fn plan(arguments: &CompareArguments, scenario: &Scenario) -> Result<Plan, Failure> {
    let Length::DurationNs(ns) = scenario.length else {
        return Err(Failure::Usage(format!(
            "{} ends after a number of iterations, and compared VMs keep running: give --duration TIME",
            scenario.name
        )));
    };
    check_user_policies(&arguments.policies)?;
    check_rivals(&arguments.rivals)?;
    let of_scenario = || Duration::from_nanos(ns.saturating_sub(scenario.warm_up_ns));
    let sample = arguments.sample.unwrap_or_else(of_scenario);
    Ok(Plan {
        pairs: arguments.pairs,
        sample,
        discard: arguments.discard,
        observe: arguments.observe.into(),
        policies: arguments.policies.clone(),
        rivals: arguments.rivals.clone(),
        only_vms: arguments.only_vms,
        useful_time: arguments.useful_time,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::commands::{Arguments, Command};

    const SCENARIO: &str = "duration = \"1250ms\"\nwarm_up = \"250ms\"\n[[vm]]\ncount = 2\nvcpus = 4\n\
                            lock = \"ticket\"\nhold = \"300 loops\"\n";

    fn arguments(text: &str, words: &[&str]) -> (tempfile::TempDir, CompareArguments) {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("s.toml");
        std::fs::write(&file, text).expect("written");
        let file = file.to_string_lossy().into_owned();
        let line = [&["unspin", "compare", &file], words].concat();
        match Arguments::try_parse_from(line).expect("valid").command {
            Command::Compare(arguments) => (folder, arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_shape_is_a_comparison_of_its_own() {
        let words = [
            "--shape",
            "1x2",
            "--shape",
            "2x2",
            "--policy",
            "loan",
            "--policy",
            "refuse-yields",
        ];
        let (_folder, arguments) = arguments(SCENARIO, &words);
        let chosen = chosen(&arguments).expect("two");
        let shapes: Vec<_> = chosen
            .iter()
            .map(|chosen| (chosen.scenario.vms[0].count, chosen.scenario.vms[0].vcpus))
            .collect();
        assert_eq!(shapes, [(1, 2), (2, 2)]);
        assert_eq!(chosen[0].plan.sample, Duration::from_secs(1));
        assert_eq!(chosen[0].plan.discard, Duration::from_millis(250));
        assert_eq!(chosen[0].plan.policies.len(), 2);
        assert!(
            chosen[1].replay.ends_with(
                "--set vm.count=2 --set vm.vcpus=2 --pairs 4 --sample 1s --discard 250ms --policy loan --policy refuse-yields"
            ),
            "{}",
            chosen[1].replay
        );
    }

    #[test]
    fn rivals_are_columns_and_part_of_the_replay() {
        let words = ["--shape", "1x4", "--rival", "scx_lavd,scx_rusty"];
        let (_folder, of_words) = arguments(SCENARIO, &words);
        let chosen = chosen(&of_words).expect("one");
        assert_eq!(
            chosen[0].plan.rivals,
            [
                unspin_experiment::rival::Rival::Lavd,
                unspin_experiment::rival::Rival::Rusty
            ]
        );
        assert!(
            chosen[0]
                .replay
                .ends_with("--discard 250ms --rival scx_lavd --rival scx_rusty"),
            "{}",
            chosen[0].replay
        );
        let twice = ["--rival", "scx_lavd", "--rival", "scx_rusty,scx_lavd"];
        let (_folder, twice) = arguments(SCENARIO, &twice);
        let refused = super::chosen(&twice);
        assert!(
            matches!(refused, Err(Failure::Usage(text)) if text.contains("scx_lavd is given twice"))
        );
    }

    #[test]
    fn what_cannot_keep_running_is_refused() {
        let iterations = SCENARIO.replace(
            "duration = \"1250ms\"\nwarm_up = \"250ms\"",
            "iterations = 10",
        );
        let (_folder, ends) = arguments(&iterations, &[]);
        assert!(matches!(chosen(&ends), Err(Failure::Usage(_))));
        let (_folder, ends) = arguments(&iterations, &["--sample", "1s"]);
        assert!(matches!(chosen(&ends), Err(Failure::Usage(_))));
        let (_folder, goes) = arguments(&iterations, &["--duration", "1s"]);
        assert_eq!(chosen(&goes).expect("one").len(), 1);
        let groups = format!("{SCENARIO}[[vm]]\nvcpus = 1\nlock = \"ticket\"\nhold = \"1us\"\n");
        let (_folder, two) = arguments(&groups, &["--shape", "1x4"]);
        assert!(matches!(chosen(&two), Err(Failure::Usage(text)) if text.contains("has 2")));
    }

    #[test]
    fn shapes() {
        assert_eq!(parse_shape("2x4"), Ok((2, 4)));
        for wrong in ["", "4", "x4", "2x", "0x4", "2x0", "2x-1", "1x2x3"] {
            assert!(parse_shape(wrong).is_err(), "{wrong}");
        }
    }
}
