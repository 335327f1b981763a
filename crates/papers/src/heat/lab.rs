// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lab's runs for the papers: remedies over the paper's baseline, seed by seed.

use anyhow::Context;
use unspin_scenario::Scenario;

use super::{
    Entry, Origin, Part, Place,
    text::{INTERVAL_95, LabText},
};
use crate::{claim::Unit, papers::Papers, runs::Run, source::LabSource};

/// Where the lab's rows are.
const BENCHMARK: &str = "papers-lab";
/// What is compared.
const MEASURE: &str = "operations_per_second";

/// All remedies of all runs of that paper that have them and the baseline.
///
/// # Errors
/// No such paper; a run without rates.
pub(super) fn entries(papers: &Papers, text: &LabText) -> anyhow::Result<Vec<Entry>> {
    let paper = papers.papers.iter().find(|paper| paper.key == text.paper);
    let paper = paper.with_context(|| format!("there is no paper {}", text.paper))?;
    let mut entries = Vec::new();
    for run in &paper.runs {
        for (column, remedy) in &text.remedies {
            let both = [column, &text.baseline];
            if both.iter().all(|column| run.columns.contains_key(*column)) {
                entries.extend(entry(papers, text, run, column, remedy)?);
            }
        }
    }
    Ok(entries)
}

fn entry(
    papers: &Papers,
    text: &LabText,
    run: &Run,
    column: &str,
    remedy: &str,
) -> anyhow::Result<Option<Entry>> {
    let source = LabSource {
        runs: vec![run.name.clone()],
        columns: vec![column.to_owned()],
        over: Some(text.baseline.clone()),
        measure: MEASURE.to_owned(),
        group: 0,
    };
    let figure = papers.lab.figure(&source, Unit::Ratio)?;
    let row = papers.lab.get(&run.name, column, 0);
    let (Some(figure), Some(row)) = (figure, row) else {
        return Ok(None);
    };
    let Some(ratio) = figure.value() else {
        return Ok(None);
    };
    let age = papers.stale_since(&run.name, [column, text.baseline.as_str()]);
    let scenario = run.scenario(&papers.root, column)?;
    Ok(Some(Entry {
        place: place(text, run, &scenario),
        remedy: remedy.to_owned(),
        baseline: text.baseline.clone(),
        ratio,
        interval: figure.interval,
        interval_is: INTERVAL_95.to_owned(),
        pairs: Some(u64::from(figure.pairs.pairs)),
        origin: Origin {
            benchmark: BENCHMARK.to_owned(),
            line: papers.lab.line(&run.name, column, 0),
            commit: format!("code {}", row.code_hash),
            date: papers
                .benchmarks
                .get(BENCHMARK)
                .map_or(String::new(), |of| of.date.clone()),
        },
        stale: age.to_owned(),
    }))
}

fn place(text: &LabText, run: &Run, scenario: &Scenario) -> Place {
    let name = run.name.strip_prefix(&text.paper).unwrap_or(&run.name);
    let name = name.trim_start_matches('-');
    // The last part of a name is how many VMs there are, where it is a number.
    let load = match name.rsplit_once('-') {
        Some((load, count)) if count.parse::<u32>().is_ok() => load,
        _ => name,
    };
    let vcpus: u32 = scenario.vms.iter().map(|vm| vm.count * vm.vcpus).sum();
    let lab = scenario.lab.as_ref();
    let of_topology = lab.and_then(|lab| lab.topology).map(|of| of.cpus());
    let cpus = of_topology.or(scenario.host.cpus);
    let mut setting = vec![format!("as in {}", text.paper)];
    if scenario.vms.len() > 1 {
        setting.push("with a co-runner".to_owned());
    }
    match lab.map_or(0, |lab| lab.cpu_hogs) {
        0 => {}
        hogs => setting.push(format!("CPU hogs: {hogs}")),
    }
    let shapes = scenario.vms.iter();
    let shapes: Vec<String> = shapes
        .map(|vm| format!("{}x{}", vm.count, vm.vcpus))
        .collect();
    Place {
        part: Part::LabPapers,
        load: text.load.replace("{load}", load),
        shape: shapes.join(" + "),
        overcommit: cpus.map(|cpus| f64::from(vcpus) / f64::from(cpus)),
        setting: setting.join(", "),
    }
}
