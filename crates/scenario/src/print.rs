// SPDX-License-Identifier: MIT OR Apache-2.0
//! A scenario back to TOML, in one canonical form, so that a run can print exactly what it did and name it.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::{
    lab::{LabGroups, LabSettings, LabTopology, LabVendor},
    model::{Distribution, Host, Length, LockSharing, Scenario, Shape, Vm},
    parse_lab::print_pins,
    quantity::{format_duration, format_work},
};

impl Scenario {
    /// The canonical text: every key, in a fixed order. Reading it back gives an equal scenario.
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut text);
        text
    }

    /// SHA-256 of the canonical text, in hexadecimal: equal for two scenarios exactly when they say the same.
    pub fn hash(&self) -> String {
        Sha256::digest(self.to_toml())
            .iter()
            .fold(String::new(), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        // A name has only characters that need no escape; so has every other text here.
        writeln!(out, "name = \"{}\"", self.name)?;
        writeln!(out, "seed = {}", self.seed)?;
        match self.length {
            Length::DurationNs(ns) => {
                writeln!(out, "duration = \"{}\"", format_duration(ns))?;
                writeln!(out, "warm_up = \"{}\"", format_duration(self.warm_up_ns))?;
            }
            Length::Iterations(iterations) => writeln!(out, "iterations = {iterations}")?,
        }
        write_host(&self.host, out)?;
        if let Some(lab) = &self.lab {
            write_lab(lab, out)?;
        }
        self.vms.iter().try_for_each(|vm| write_vm(vm, out))
    }
}

fn write_host(host: &Host, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n[host]")?;
    for (key, value) in [
        ("cpus", host.cpus),
        ("ple_window", host.ple_window),
        ("ple_gap", host.ple_gap),
    ] {
        if let Some(value) = value {
            writeln!(out, "{key} = {value}")?;
        }
    }
    writeln!(out, "ple_window_fixed = {}", host.ple_window_fixed)
}

fn write_lab(lab: &LabSettings, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n[lab]")?;
    for (key, name) in [
        ("scheduler", &lab.scheduler),
        ("policy", &lab.policy),
        ("window_control", &lab.window_control),
        ("spin_count", &lab.spin_count),
        ("candidates", &lab.candidates),
    ] {
        if let Some(name) = name {
            writeln!(out, "{key} = \"{name}\"")?;
        }
    }
    if let Some(topology) = lab.topology {
        let LabTopology {
            sockets,
            caches,
            cores,
            threads,
        } = topology;
        let counts = format!("{sockets}x{caches}x{cores}x{threads}");
        writeln!(out, "topology = \"{counts}\"")?;
    }
    let vendor = match lab.vendor {
        LabVendor::Amd => "amd",
        LabVendor::Intel => "intel",
    };
    let groups = match lab.groups {
        LabGroups::Vm => "vm",
        LabGroups::Vcpu => "vcpu",
    };
    writeln!(out, "vendor = \"{vendor}\"")?;
    writeln!(out, "ignore_reschedules = {}", lab.ignore_reschedules)?;
    writeln!(out, "ecs = \"{}\"", lab.ecs.name())?;
    let facts_age = format_duration(lab.facts_age_ns.into());
    writeln!(out, "facts_age = \"{facts_age}\"")?;
    writeln!(out, "lost_ppm = {}", lab.lost_ppm)?;
    writeln!(out, "tick_only = {}", lab.tick_only)?;
    if let Some(ns) = lab.poll_period_ns {
        writeln!(out, "poll_period = \"{}\"", format_duration(ns.into()))?;
    }
    let halt_poll = format_duration(lab.halt_poll_ns.into());
    writeln!(out, "halt_poll = \"{halt_poll}\"")?;
    writeln!(out, "guest_tasks = {}", lab.guest_tasks)?;
    let every = lab.page_fault_every_iterations;
    writeln!(out, "page_fault_every_iterations = {every}")?;
    if let Some(ns) = lab.page_fetch_ns {
        writeln!(out, "page_fetch = \"{}\"", format_duration(ns.into()))?;
    }
    for (key, value) in [
        ("async_page_faults", lab.async_page_faults),
        ("pv_tlb_flush", lab.pv_tlb_flush),
        ("pv_sched_yield", lab.pv_sched_yield),
        ("pv_send_ipi", lab.pv_send_ipi),
    ] {
        writeln!(out, "{key} = {value}")?;
    }
    writeln!(out, "cpu_hogs = {}", lab.cpu_hogs)?;
    writeln!(out, "groups = \"{groups}\"")?;
    if !lab.weights.is_empty() {
        writeln!(out, "weights = {:?}", lab.weights)?;
    }
    if !lab.pins.is_empty() {
        let pins: Vec<String> = lab.pins.iter().map(|cpus| print_pins(cpus)).collect();
        writeln!(out, "pins = {pins:?}")?;
    }
    if !lab.costs.is_empty() {
        writeln!(out, "\n[lab.costs]")?;
    }
    lab.costs
        .iter()
        .try_for_each(|(name, cost)| writeln!(out, "{name} = {cost}"))
}

fn write_vm(vm: &Vm, out: &mut String) -> std::fmt::Result {
    writeln!(out, "\n[[vm]]")?;
    writeln!(out, "count = {}", vm.count)?;
    writeln!(out, "vcpus = {}", vm.vcpus)?;
    writeln!(out, "lock = \"{}\"", vm.lock.name())?;
    match vm.locks {
        LockSharing::Shared(count) => writeln!(out, "locks = {count}")?,
        LockSharing::Private => writeln!(out, "locks = \"private\"")?,
    }
    writeln!(out, "user_work = {}", distribution(&vm.user_work))?;
    writeln!(out, "kernel_work = {}", distribution(&vm.kernel_work))?;
    writeln!(out, "hold = {}", distribution(&vm.hold))?;
    for (key, value) in [
        ("shootdown_every_iterations", vm.shootdown_every_iterations),
        ("wakeup_every_iterations", vm.wakeup_every_iterations),
        ("tick_hz", vm.tick_hz),
        ("pause_every_spins", vm.pause_every_spins),
        ("log_records", vm.log_records),
        ("log_minimum_spins", vm.log_minimum_spins),
        ("help_after_spins", vm.help_after_spins),
        ("tasks_per_vcpu", vm.tasks_per_vcpu),
        ("reader_percent", vm.reader_percent),
    ] {
        writeln!(out, "{key} = {value}")?;
    }
    writeln!(out, "pause_exits = {}", vm.pause_exits)?;
    writeln!(out, "halt_exits = {}", vm.halt_exits)?;
    writeln!(out, "pv_page = {}", vm.pv_page)?;
    writeln!(out, "pv_page_memory = \"{}\"", vm.pv_page_memory.name())?;
    writeln!(out, "workload = \"{}\"", vm.workload.name())?;
    writeln!(out, "ecs_ablation = \"{}\"", vm.ecs_ablation.name())
}

fn distribution(distribution: &Distribution) -> String {
    let work = |value| format!("\"{}\"", format_work(distribution.unit, value));
    match distribution.shape {
        Shape::Constant(value) => work(value),
        Shape::Uniform { low, high } => {
            format!("{{ uniform = [{}, {}] }}", work(low), work(high))
        }
        Shape::Exponential { mean } => format!("{{ exponential = {} }}", work(mean)),
    }
}
