// SPDX-License-Identifier: MIT OR Apache-2.0
//! A view as metrics: OpenMetrics 1.0 (as `prometheus-client` writes it), or the older text format for readers that do not ask for that.
//!
//! 22 series a VM and some 15 more; of VMs beyond a limit none, and they are counted.

use std::{borrow::Cow, fmt, fmt::Write};

use prometheus_client::{
    collector::Collector,
    encoding::{
        DescriptorEncoder, EncodeLabelValue, EncodeMetric, LabelValueEncoder, text::encode,
    },
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
    registry::{Registry, Unit},
};
use unspin_agent::WatchCounters;
use unspin_report::COMMIT;

use crate::{
    own_cost::OwnCost,
    view::{HostView, SampledView, VmView},
};

/// VMs of which series are shown when nothing else is asked for.
pub const VMS_MAX: usize = 1000;

/// The two formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Text,
}

impl Format {
    /// What a reader that accepts this gets: OpenMetrics if it names it.
    pub fn accepted(accept: &str) -> Format {
        match accept.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Text,
        }
    }

    /// For the header of that name.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The metrics of a view; of the first `vms_max` VMs, in order of appearance, so that the same ones stay.
pub fn text(view: &HostView, own: &OwnCost, vms_max: usize, format: Format) -> String {
    let mut registry = Registry::default();
    let (shown, hidden) = view.vms.split_at(vms_max.min(view.vms.len()));
    registry.register_collector(Box::new(Metrics {
        view: HostView {
            vms: shown.to_vec(),
            ..view.clone()
        },
        hidden_vms: hidden.len(),
        own: *own,
    }));
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = encode(&mut text, &registry);
    match format {
        Format::OpenMetrics => text,
        Format::Text => older(&text),
    }
}

/// A counter of VMs.
struct VmCounter {
    /// In [`WatchCounters`].
    field: &'static str,
    name: &'static str,
    help: &'static str,
    /// Nanoseconds, shown as seconds; else a number.
    is_time: bool,
    of: fn(&WatchCounters) -> u64,
}

macro_rules! vm_counters {
    ($($field:ident: $kind:ident $name:literal $help:literal;)*) => {
        &[$(VmCounter {
            field: stringify!($field),
            name: concat!("unspin_vm_", $name),
            help: $help,
            is_time: vm_counters!(@is_time $kind),
            of: |counters| counters.$field,
        }),*]
    };
    (@is_time seconds) => { true };
    (@is_time number) => { false };
}

const VM_COUNTERS: &[VmCounter] = vm_counters! {
    run_ns: seconds "run" "CPU time of the VM's vCPUs, guest and KVM together";
    wait_ns: seconds "wait" "Time in which vCPUs could have run and had no CPU (run delay)";
    halted_ns: seconds "halted" "Time in which vCPUs were halted by their guest";
    guest_ns: seconds "guest" "CPU time inside the guest";
    spin_ns: seconds "spin" "CPU time inside the guest in spin loops";
    handling_ns: seconds "pause_exit_handling" "CPU time in KVM for pause-loop exits: wasted by spinning, too";
    exits: number "exits" "Exits of vCPUs";
    ple_exits: number "pause_loop_exits" "Pause-loop exits of vCPUs";
    ple_exits_user: number "pause_loop_exits_user" "Of those, with the guest in user mode (0 on Intel)";
    yields_tried: number "directed_yields" "Directed yields that KVM tried for pause-loop exits";
    yields_succeeded: number "directed_yields_succeeded" "Of those, yields after which the target runs next";
    slices_lost: number "slices_lost" "Slices that ended while the vCPU spun";
};

#[derive(Debug)]
struct Metrics {
    view: HostView,
    hidden_vms: usize,
    own: OwnCost,
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for counter in VM_COUNTERS
            .iter()
            .filter(|counter| self.view.knows(counter.field))
        {
            self.vm_counter(&mut encoder, counter)?;
        }
        self.vms(&mut encoder)?;
        self.sampled(&mut encoder)?;
        self.watching(&mut encoder)?;
        self.health(&mut encoder)?;
        self.process(&mut encoder)
    }
}

/// Seconds of so many nanoseconds.
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// A label of a VM.
fn vm_label(vm: &VmView) -> (&'static str, Escaped<'_>) {
    ("vm", Escaped(&vm.name))
}

impl Metrics {
    fn vm_counter(&self, encoder: &mut DescriptorEncoder, counter: &VmCounter) -> fmt::Result {
        let unit = counter.is_time.then_some(&Unit::Seconds);
        let mut metric =
            encoder.encode_descriptor(counter.name, counter.help, unit, MetricType::Counter)?;
        for vm in &self.view.vms {
            let labels = [vm_label(vm)];
            let value = (counter.of)(&vm.total);
            let encoder = metric.encode_family(&labels)?;
            match counter.is_time {
                true => ConstCounter::new(seconds(value)).encode(encoder)?,
                false => ConstCounter::new(value).encode(encoder)?,
            }
        }
        Ok(())
    }

    fn vms(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help = "vCPUs of the VM that have run since it was seen";
        let mut metric =
            encoder.encode_descriptor("unspin_vm_vcpus", help, None, MetricType::Gauge)?;
        for vm in &self.view.vms {
            let labels = [vm_label(vm)];
            ConstGauge::new(vm.vcpus.len() as i64).encode(metric.encode_family(&labels)?)?;
        }
        let help = "The VM's process, and its number in order of appearance";
        let mut metric =
            encoder.encode_descriptor("unspin_vm_info", help, None, MetricType::Gauge)?;
        for vm in &self.view.vms {
            let number = vm.number.to_string();
            let process = vm.process.map_or(String::new(), |id| id.to_string());
            let labels = [
                vm_label(vm),
                ("number", Escaped(&number)),
                ("process", Escaped(&process)),
            ];
            ConstGauge::new(1i64).encode(metric.encode_family(&labels)?)?;
        }
        let shown = self.view.vms.len() as u64;
        gauge(encoder, "unspin_vms", "VMs with series of their own", shown)?;
        let help = "VMs without series, beyond the limit on them";
        gauge(encoder, "unspin_vms_hidden", help, self.hidden_vms as u64)
    }

    fn sampled(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help = "Sampled: CPU time of the VM's vCPUs in bursts in which every event was seen";
        let seconds_unit = Some(&Unit::Seconds);
        let name = "unspin_vm_sampled_cpu";
        let mut metric =
            encoder.encode_descriptor(name, help, seconds_unit, MetricType::Counter)?;
        for vm in &self.view.vms {
            let labels = [vm_label(vm)];
            let encoder = metric.encode_family(&labels)?;
            ConstCounter::new(seconds(vm.sampled.cpu_ns)).encode(encoder)?;
        }
        let help =
            "Sampled: of that CPU time, spent spinning, by what it was for (explain's causes)";
        let name = "unspin_vm_sampled_spin";
        let mut metric =
            encoder.encode_descriptor(name, help, seconds_unit, MetricType::Counter)?;
        for vm in &self.view.vms {
            let SampledView { spin_ns, .. } = &vm.sampled;
            for (cause, ns) in spin_ns {
                let labels = [vm_label(vm), ("cause", Escaped(cause))];
                ConstCounter::new(seconds(*ns)).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }

    fn watching(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help =
            "1: the host is watched, or a recording is shown; 0: it is not, /health says why";
        let watching = u64::from(self.view.blind.is_none());
        gauge(encoder, "unspin_watching", help, watching)?;
        let help = "1, with the commit of this program";
        let mut metric =
            encoder.encode_descriptor("unspin_build_info", help, None, MetricType::Gauge)?;
        let labels = [("commit", Escaped(COMMIT))];
        ConstGauge::new(1i64).encode(metric.encode_family(&labels)?)
    }

    fn health(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let health = &self.view.health;
        let counts = [
            (
                "unspin_unseen_exits",
                "Exits of vCPUs for which the kernel had no memory: in no counter",
                health.unseen_exits,
            ),
            (
                "unspin_missed_program_runs",
                "Runs of the BPF programs that did not take place",
                health.missed_runs,
            ),
            (
                "unspin_failed_reads",
                "Readings of counters that the kernel refused",
                health.failed_reads,
            ),
            ("unspin_bursts", "Sampled bursts", health.bursts),
            (
                "unspin_failed_bursts",
                "Sampled bursts that failed",
                health.failed_bursts,
            ),
            (
                "unspin_burst_lost_events",
                "Events of sampled bursts that found no room",
                health.lost_events,
            ),
        ];
        for (name, help, value) in counts {
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(value).encode(metric)?;
        }
        let help = "Time that sampled bursts lasted";
        counted_seconds(encoder, "unspin_burst", help, seconds(health.burst_ns))
    }

    fn process(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help = "CPU time of this program, in user and kernel mode; what runs inside of vCPUs' threads is theirs";
        counted_seconds(encoder, "process_cpu", help, self.own.cpu_seconds)?;
        let help = "Resident memory of this program";
        let bytes = Some(&Unit::Bytes);
        let name = "process_resident_memory";
        let metric = encoder.encode_descriptor(name, help, bytes, MetricType::Gauge)?;
        ConstGauge::new(self.own.resident_bytes as i64).encode(metric)
    }
}

fn gauge(
    encoder: &mut DescriptorEncoder,
    name: &'static str,
    help: &str,
    value: u64,
) -> fmt::Result {
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(value as i64).encode(metric)
}

fn counted_seconds(
    encoder: &mut DescriptorEncoder,
    name: &'static str,
    help: &str,
    value: f64,
) -> fmt::Result {
    let unit = Some(&Unit::Seconds);
    let metric = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    ConstCounter::new(value).encode(metric)
}

/// A label's value as both formats want it: `prometheus-client` 0.24 writes it as it is.
#[derive(Clone, Debug)]
struct Escaped<'a>(&'a str);

impl EncodeLabelValue for Escaped<'_> {
    fn encode(&self, encoder: &mut LabelValueEncoder) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '\\' => encoder.write_str("\\\\")?,
                '"' => encoder.write_str("\\\"")?,
                '\n' => encoder.write_str("\\n")?,
                other => encoder.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// OpenMetrics as the text format 0.0.4: there a counter's name has its `_total`, and neither units nor an end are said.
fn older(openmetrics: &str) -> String {
    let mut counters = std::collections::BTreeSet::new();
    for line in openmetrics.lines() {
        if let Some(name) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.strip_suffix(" counter"))
        {
            counters.insert(name);
        }
    }
    let lines = openmetrics.lines();
    let kept = lines.filter(|line| *line != "# EOF" && !line.starts_with("# UNIT "));
    let mut text = String::with_capacity(openmetrics.len());
    for line in kept {
        text.push_str(&with_total(line, &counters));
        text.push('\n');
    }
    text
}

fn with_total<'a>(line: &'a str, counters: &std::collections::BTreeSet<&str>) -> Cow<'a, str> {
    for word in ["# HELP ", "# TYPE "] {
        let Some((name, rest)) = line
            .strip_prefix(word)
            .and_then(|line| line.split_once(' '))
        else {
            continue;
        };
        if counters.contains(name) {
            return format!("{word}{name}_total {rest}").into();
        }
    }
    line.into()
}

#[cfg(test)]
mod tests;
