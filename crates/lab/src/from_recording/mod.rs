// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a scenario from a recording (`unspin lab from`): VMs, vCPUs, pCPUs and window as recorded, work as far as
//! events show it.

mod seen;
mod work;

use std::path::PathBuf;

use seen::{Seen, VmSeen};
use unspin_events::{
    facts::Facts,
    vm_identity::{NAME_LENGTH_MAX, printable},
};
use unspin_recording::Recorded;
use unspin_scenario::Scenario;

use crate::{DEFAULT_SCHEDULER, Lab, LabError, scheduler::names::known_names};

/// The longest duration of a scenario made from a recording, ns; longer recordings are given this duration.
const DURATION_MAX_NS: u64 = 10_000_000_000;
/// The shortest, ns: a few slices of every scheduler.
const DURATION_MIN_NS: u64 = 10_000_000;

/// Why no scenario could be made from a recording.
#[derive(Debug, thiserror::Error)]
pub enum FromRecordingError {
    /// The recording has no vCPU.
    #[error("{}: no vCPU appears in it: there is nothing to make a scenario of", folder.display())]
    NoVcpu {
        /// The recording cannot be read.
        folder: PathBuf,
    },
    /// The text that was made is not a valid scenario.
    #[error("a fault of this command: {0}")]
    Scenario(String),
    /// The lab refuses the scenario.
    #[error("a fault of this command: {0}")]
    Lab(LabError),
}

/// The text of a scenario that would give the same events as the recording, as far as they show; its comments separate
/// observations from assumptions. Reads the recording twice.
///
/// # Errors
/// A recording without a vCPU; an error of the recording; a mistake in this module.
pub fn scenario_text(recorded: &Recorded) -> Result<String, FromRecordingError> {
    let seen = Seen::of(recorded);
    if seen.vms.is_empty() {
        return Err(FromRecordingError::NoVcpu {
            folder: recorded.folder().to_owned(),
        });
    }
    let text = text(recorded, &seen);
    let parsed = Scenario::parse(&text, "the recording's scenario")
        .map_err(|error| FromRecordingError::Scenario(error.plain()))?;
    Lab::new(&parsed).map_err(FromRecordingError::Lab)?;
    Ok(text)
}

fn text(recorded: &Recorded, seen: &Seen) -> String {
    let folder = recorded.folder().display();
    let facts = recorded.facts();
    let mut text = String::new();
    let mut say = |line: &str| {
        // A comment ends with its line, so text of the recording must not contain a line break.
        let line = line.replace(|c: char| c.is_control(), " ");
        text += &format!("# {line}\n");
    };
    say(&format!(
        "From the recording {folder}, by `unspin lab from`."
    ));
    if !facts.machine.is_empty() {
        say(&format!("Recorded on: {}", facts.machine));
    }
    if let Some(own) = &facts.scenario {
        say(&format!(
            "The recording is of the scenario {} (sha256 {}), which has more than this.",
            own.name, own.sha256
        ));
    }
    for problem in &seen.problems {
        say(&format!("Missing: {problem}"));
    }
    for line in ASSUMED {
        say(line);
    }
    let (scheduler, why) = scheduler(facts);
    say(&format!("Scheduler: {why}."));
    if let Some(share) = seen.others_share() {
        let percent = share * 100.0;
        say(&format!(
            "Threads of no VM took {percent:.1} % of the time between vCPUs' slices on these pCPUs: lab.cpu_hogs stands for such, none here."
        ));
    }
    let duration_ns = seen.span_ns().clamp(DURATION_MIN_NS, DURATION_MAX_NS);
    text += &format!("name = \"recorded\"\nseed = 1\nduration = \"{duration_ns}ns\"\n");
    text += &format!("warm_up = \"{}ns\"\n", duration_ns / 10);
    text += &host(facts, seen);
    text += &format!("\n[lab]\nscheduler = \"{scheduler}\"\n");
    if facts.kvm.module.as_deref() == Some("kvm_intel") {
        text += "vendor = \"intel\"\n";
    }
    for (number, vm) in &seen.vms {
        text += &vm_text(facts, *number, vm);
    }
    text
}

/// Settings that all such scenarios have.
const ASSUMED: [&str; 6] = [
    "Seen: VMs, vCPUs, pCPUs, the window, how long vCPUs ran and spun.",
    "Assumed: every wait that the host saw is a wait for one ticket lock per VM (locks cannot be seen), each slice has one",
    "such wait, and waits are of the length that a queue of all vCPUs makes: hold = (work + median wait) / vCPUs.",
    "Waits shorter than the window do not exit and are not seen: slices are fewer and longer here than they were.",
    "Distributions are exponential of the mean. Not there: sleeping vCPUs, I/O, interrupts other than ticks.",
    "Costs are the lab's defaults: set lab.costs to those of the machine.",
];

/// The newest version of the lab that is not newer than the recorded kernel.
fn scheduler(facts: &Facts) -> (String, String) {
    let kernel = kernel(&facts.machine);
    let version = |name: &'static str| {
        let of = name.strip_prefix("eevdf-").or(name.strip_prefix("cfs-"))?;
        Some((numbers(of)?, name))
    };
    let known: Vec<_> = known_names().into_iter().filter_map(version).collect();
    let fits = known
        .iter()
        .filter(|(of, _)| kernel.is_some_and(|kernel| *of <= kernel));
    match (kernel, fits.max()) {
        (Some((major, minor)), Some((_, name))) => {
            let why = format!("{name}, for Linux {major}.{minor}");
            ((*name).to_owned(), why)
        }
        _ => {
            let why =
                format!("{DEFAULT_SCHEDULER}, the default: the recording does not name the kernel");
            (DEFAULT_SCHEDULER.to_owned(), why)
        }
    }
}

/// The version after "Linux ".
fn kernel(machine: &str) -> Option<(u32, u32)> {
    let begin = machine.find("Linux ")? + "Linux ".len();
    numbers(&machine[begin..])
}

/// "7.2.1-amd64": 7 and 2.
fn numbers(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn host(facts: &Facts, seen: &Seen) -> String {
    let mut text = format!(
        "\n[host]\ncpus = {}\n",
        seen.cpus()
            .clamp(1, unspin_scenario::limits::CPUS_MAX as usize)
    );
    let (window, gap) = facts.kvm.window_and_gap();
    for (key, value) in [("ple_window", window), ("ple_gap", gap)] {
        let most = u64::from(unspin_scenario::limits::PLE_MAX);
        match value {
            Some(value) if (1..=most).contains(&value) => text += &format!("{key} = {value}\n"),
            Some(value) => {
                text += &format!(
                    "# {key} was {value}, which a scenario cannot say; KVM's default here\n"
                )
            }
            None => text += &format!("# {key} is not known; KVM's default here\n"),
        }
    }
    let prefix = match facts.kvm.module.as_deref() {
        Some("kvm_intel") => "ple_window",
        _ => "pause_filter_count",
    };
    let is_1 = |what: &str| facts.kvm.number(&format!("{prefix}_{what}")) == Some(1);
    if is_1("grow") && is_1("shrink") {
        text += "ple_window_fixed = true\n";
    }
    text
}

fn vm_text(facts: &Facts, number: u32, vm: &VmSeen) -> String {
    let most = unspin_scenario::limits::VCPUS_MAX as usize;
    let mut text = format!("\n# VM {number}");
    let named = facts.vms.iter().find(|of| of.vm == number);
    if let Some(name) = named.and_then(|of| of.identity.called().or_else(|| of.comm.clone())) {
        let name = printable(&name, 2 * NAME_LENGTH_MAX);
        text += &format!(" ({name})");
    }
    text += &format!(
        ": its vCPUs ran {} ms, of which {} ms were seen spinning in {} waits.\n",
        vm.running_ns / 1_000_000,
        vm.spinning_ns / 1_000_000,
        vm.waits
    );
    if vm.vcpus > most {
        text += &format!(
            "# It has {} vCPUs; a scenario has at most {most}.\n",
            vm.vcpus
        );
    }
    let work = work::estimate(vm);
    text += &format!("# {}\n", work.why);
    text += &format!(
        "[[vm]]\nvcpus = {}\nlock = \"ticket\"\n",
        vm.vcpus.clamp(1, most)
    );
    if work.private {
        text += "locks = \"private\"\n";
    }
    for (key, ns) in [
        ("user_work", work.user_ns),
        ("kernel_work", work.kernel_ns),
        ("hold", work.hold_ns),
    ] {
        let ns = ns.min(unspin_scenario::limits::WORK_MAX_NS);
        if ns > 0 {
            text += &format!("{key} = {{ exponential = \"{ns}ns\" }}\n");
        } else if key == "hold" {
            text += "hold = \"0ns\"\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedulers_of_kernels() {
        let of = |machine: &str| {
            let facts = Facts {
                machine: machine.into(),
                ..Facts::default()
            };
            scheduler(&facts).0
        };
        for (machine, name) in [
            ("EPYC, 2 CPUs, Linux 7.2.3+deb14-amd64", "eevdf-7.2"),
            ("X, 8 CPUs, Linux 6.19.1", "eevdf-6.19"),
            ("X, 8 CPUs, Linux 6.12.0-1", "eevdf-6.12"),
            ("X, Linux 6.5.1", "cfs-5.6"),
            ("X, Linux 9.1", "eevdf-7.2"),
            ("X, Linux 2.6", "eevdf-7.2"),
            ("", "eevdf-7.2"),
        ] {
            assert_eq!(of(machine), name, "{machine}");
        }
    }
}
