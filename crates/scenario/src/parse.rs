// SPDX-License-Identifier: MIT OR Apache-2.0
//! TOML to [`Scenario`], strictly: the top of the file and `[host]`.

use std::{fs, io::Read, path::Path};

use toml::de::{DeTable, DeValue};

use crate::{
    error::ScenarioError,
    limits::{CPUS_MAX, DURATION_MAX_NS, FILE_MAX_BYTES, NAME_MAX, PLE_MAX, SEED_MAX, VMS_MAX},
    model::{Host, Length, Scenario},
    overrides::Overrides,
    parse_lab, parse_vm,
    quantity::{duration, format_duration},
    section::{Found, Section, Source},
};

/// Keys at the top of the file.
pub(crate) const TOP_KEYS: &[&str] = &[
    "name",
    "seed",
    "duration",
    "iterations",
    "warm_up",
    "host",
    "lab",
    "vm",
];
/// Keys of `[host]`.
pub(crate) const HOST_KEYS: &[&str] = &["cpus", "ple_window", "ple_gap", "ple_window_fixed"];

const DURATION_FORM: &str = "a time such as \"2s\", \"250ms\", \"1.5us\" or \"10ns\"";

impl Scenario {
    /// Reads a scenario file, then `overrides` on top of it. The file must be a valid scenario by itself.
    ///
    /// A fault that only an override brings in is shown in the merged text, named `FILE with --set ...`.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Scenario, ScenarioError> {
        let file = path.display().to_string();
        let text = read_file(path).map_err(|reason| {
            ScenarioError::whole_file(
                &file,
                format!("the scenario cannot be read: {reason}"),
                "give the path of a scenario in TOML; `unspin scenario schema` says what is in one",
            )
        })?;
        let stem = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned());
        Scenario::parse_with(&text, &file, stem.as_deref().unwrap_or(""), overrides)
    }

    /// Reads a scenario from text; `file` is its name in messages. Without a `name` in the text it is "unnamed".
    pub fn parse(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
        parse_named(Source { file, text }, "unnamed")
    }

    /// [`Scenario::parse`], then overrides; `name` is used when the text gives none.
    pub fn parse_with(
        text: &str,
        file: &str,
        name: &str,
        overrides: &Overrides,
    ) -> Result<Scenario, ScenarioError> {
        let name = default_name(name);
        let scenario = parse_named(Source { file, text }, &name)?;
        if overrides.is_empty() {
            return Ok(scenario);
        }
        let merged = overrides.apply(text);
        let file = format!("{file} with {overrides}");
        parse_named(
            Source {
                file: &file,
                text: &merged,
            },
            &name,
        )
    }
}

/// The file's text; refuses what is too long or not UTF-8.
fn read_file(path: &Path) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(FILE_MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err(format!("it is longer than {FILE_MAX_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|error| format!("it is not UTF-8 text ({error})"))
}

/// A file's stem as a name: what a name may not hold becomes `-`.
fn default_name(stem: &str) -> String {
    let name: String = stem
        .chars()
        .take(NAME_MAX)
        .map(|c| if is_name_character(c) { c } else { '-' })
        .collect();
    if name.is_empty() {
        "unnamed".into()
    } else {
        name
    }
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

fn parse_named(source: Source<'_>, default_name: &str) -> Result<Scenario, ScenarioError> {
    let parsed = DeTable::parse(source.text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        source.error(span, format!("this is not TOML: {}", error.message()), "")
    })?;
    let top = Section::open(source, "", 0..0, parsed.get_ref(), TOP_KEYS)?;
    let length = length(&top)?;
    let vms = parse_vm::groups(source, &top)?;
    let total: u64 = vms.iter().map(|vm| u64::from(vm.count)).sum();
    if total > u64::from(VMS_MAX) {
        return Err(top.error(
            format!("{total} VMs in all are too many"),
            format!("at most {VMS_MAX}"),
        ));
    }
    Ok(Scenario {
        name: name(&top, default_name)?,
        seed: top
            .find("seed")
            .map_or(Ok(1), |found| found.integer(0, SEED_MAX))?,
        length,
        warm_up_ns: warm_up(&top, length)?,
        host: host(source, &top)?,
        lab: parse_lab::lab(source, &top, vms.len())?,
        vms,
    })
}

fn name(top: &Section<'_, '_>, default: &str) -> Result<String, ScenarioError> {
    let Some(found) = top.find("name") else {
        return Ok(default.to_owned());
    };
    let allowed = format!("1 to {NAME_MAX} of the characters A-Z a-z 0-9 . _ -");
    let text = found.text(&allowed)?;
    if text.is_empty() || text.len() > NAME_MAX || !text.chars().all(is_name_character) {
        return Err(found.wrong(allowed));
    }
    Ok(text.to_owned())
}

/// `duration` or `iterations`, exactly one of them, above 0.
fn length(top: &Section<'_, '_>) -> Result<Length, ScenarioError> {
    match (top.find("duration"), top.find("iterations")) {
        (Some(duration), None) => Ok(Length::DurationNs(time(&duration, 1)?)),
        (None, Some(iterations)) => {
            let iterations = iterations.integer(1, u64::from(u32::MAX))?;
            Ok(Length::Iterations(
                u32::try_from(iterations).unwrap_or(u32::MAX),
            ))
        }
        (Some(_), Some(iterations)) => Err(iterations.refuse(
            "`iterations` and `duration` exclude each other",
            "keep the one that should end the run",
        )),
        (None, None) => Err(top.error(
            "neither `duration` nor `iterations` says when the run ends",
            "add duration = \"2s\", or iterations = 1000 for so many iterations of each vCPU",
        )),
    }
}

/// `warm_up`: shorter than the run, and only with `duration`.
fn warm_up(top: &Section<'_, '_>, length: Length) -> Result<u64, ScenarioError> {
    let Some(found) = top.find("warm_up") else {
        return Ok(0);
    };
    let warm_up_ns = time(&found, 0)?;
    match length {
        Length::DurationNs(run_ns) if warm_up_ns >= run_ns => Err(found.refuse(
            format!(
                "a warm-up of {} leaves nothing of a run of {}",
                format_duration(warm_up_ns),
                format_duration(run_ns)
            ),
            "make `warm_up` shorter than `duration`",
        )),
        Length::Iterations(_) if warm_up_ns > 0 => Err(found.refuse(
            "`warm_up` needs `duration`: a run of `iterations` is counted from its first iteration",
            "leave `warm_up` out",
        )),
        _ => Ok(warm_up_ns),
    }
}

/// A time of at least `least_ns` and at most a day.
fn time(found: &Found<'_, '_>, least_ns: u64) -> Result<u64, ScenarioError> {
    let ns = found.quantity(DURATION_FORM, duration)?;
    if !(least_ns..=DURATION_MAX_NS).contains(&ns) {
        return Err(found.refuse(
            format!("`{}` cannot be {}", found.key, format_duration(ns)),
            format!(
                "from {} to {}",
                format_duration(least_ns),
                format_duration(DURATION_MAX_NS)
            ),
        ));
    }
    Ok(ns)
}

fn host(source: Source<'_>, top: &Section<'_, '_>) -> Result<Host, ScenarioError> {
    let empty = DeTable::new();
    let (table, span) = match top.find("host") {
        None => (&empty, 0..0),
        Some(found) => match found.value {
            DeValue::Table(table) => (table, found.span.clone()),
            _ => return Err(found.wrong("a table: [host]")),
        },
    };
    let host = Section::open(source, "[host]", span, table, HOST_KEYS)?;
    Ok(Host {
        cpus: host.number_if("cpus", 1, CPUS_MAX)?,
        ple_window: host.number_if("ple_window", 1, PLE_MAX)?,
        ple_gap: host.number_if("ple_gap", 1, PLE_MAX)?,
        ple_window_fixed: host.boolean("ple_window_fixed", false)?,
    })
}
