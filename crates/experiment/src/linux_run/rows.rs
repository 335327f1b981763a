// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a run of Linux guests: the run, each VM, each of its runs, each vCPU.
//!
//! What the guest says and what the host counted stand in columns of their own; what was not observed is unknown.

use std::time::Duration;

use unspin_events::VcpuCounters;
use unspin_linux_guest::{Counts, Outcome, VmReport};
use unspin_report::row;

use super::{LinuxRun, LinuxSeen};
use crate::{
    host_keys::{PauseLoopKeys, SchedulingKeys},
    linux::per_second,
};

row! {
    "run", ["vm linux"];
    /// A run of Linux guests as a whole.
    pub struct RunRow {
        /// Paravirtual features of all guests: the cell of ruling 35.
        features: String,
        /// The command that each guest repeats.
        load: String,
        /// VMs.
        vms: usize,
        /// From when all guests had booted until every one had done its runs; ns.
        window_ns: u64,
        #[serde(flatten)]
        pause_loop: PauseLoopKeys,
        /// Runs of BPF programs that the kernel left out; null: not observed.
        missed_bpf_runs: Option<u64>,
        /// Exits of vCPUs for which there was no room.
        unobserved_exits: Option<u64>,
    }
}

row! {
    "vm", ["vm linux"];
    /// One Linux guest. Exits are those of the window.
    pub struct VmRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// Its QEMU's process.
        process: u32,
        /// The version that its kernel says.
        kernel: Option<String>,
        /// vCPU threads that the host saw; null, as all that the host counts: not observed.
        vcpus_seen: Option<usize>,
        /// From its QEMU's start until its PID 1 ran; ns.
        boot_ns: Option<u64> = ("booted in", Nanoseconds),
        /// The same as its kernel's clock says; ns.
        guest_boot_ns: Option<u64>,
        /// Exits while it booted.
        boot_exits: Option<u64> = ("exits booting", Count),
        /// Pause-loop exits while it booted.
        boot_ple_exits: Option<u64> = ("PLE booting", Count),
        /// Runs of its load.
        runs: usize = ("runs", Count),
        /// Mean time of a run, as the guest timed it; ns.
        load_mean_ns: Option<f64> = ("load, mean", Nanoseconds),
        /// The shortest; ns.
        load_least_ns: Option<u64> = ("least", Nanoseconds),
        /// The longest; ns.
        load_most_ns: Option<u64> = ("most", Nanoseconds),
        /// Requests (transactions, allocations, answers) per second, mean of its runs; null of a load that has none.
        requests_per_s: Option<f64> = ("requests/s", Count),
        /// The 99th percentile of their latencies, mean of its runs; ns; null of a load that has none.
        p99_ns: Option<f64> = ("p99", Nanoseconds),
        /// The longest of all; ns; null of a load that does not say it.
        max_ns: Option<u64> = ("longest", Nanoseconds),
        /// Exits per second.
        exits_per_second: Option<f64> = ("exits/s", Count),
        /// Pause-loop exits per second.
        ple_exits_per_second: Option<f64> = ("PLE/s", Count),
        /// Rescheduling interrupts that the guest counted in its runs.
        reschedules: Option<u64> = ("RES", Count),
        /// Function-call interrupts.
        function_calls: Option<u64> = ("CAL", Count),
        /// TLB shootdowns.
        tlb_shootdowns: Option<u64> = ("TLB", Count),
        /// vCPU time that it wanted and did not get; ns; null without the feature steal-time.
        steal_ns: Option<u64> = ("stolen", Nanoseconds),
    }
}

row! {
    "load_run", ["vm linux"];
    /// One run of a guest's load.
    pub struct LoadRunRow {
        /// The VM.
        vm: String,
        /// Its number, from 0.
        run: usize,
        /// Its time, as the guest timed it; ns.
        load_ns: u64,
        /// Requests (transactions, allocations, answers) per second; null of a load that has none.
        requests_per_s: Option<f64>,
        /// The 99th percentile of their latencies; ns; null of a load that has none.
        p99_ns: Option<u64>,
        /// The longest; ns; null of a load that does not say it.
        max_ns: Option<u64>,
        /// Rescheduling interrupts that the guest counted in it.
        reschedules: Option<u64>,
        /// Function-call interrupts.
        function_calls: Option<u64>,
        /// TLB shootdowns.
        tlb_shootdowns: Option<u64>,
        /// vCPU time that it wanted and did not get; ns; null without the feature steal-time.
        steal_ns: Option<u64>,
    }
}

row! {
    "vcpu", ["vm linux"];
    /// One vCPU of a Linux guest while the loads ran, as the host counted.
    pub struct VcpuRow {
        /// Its VM.
        vm: String = ("VM", Text),
        /// Its number in the VM.
        vcpu: u32 = ("vCPU", Count),
        /// Its thread.
        thread: u32,
        /// Exits.
        exits: u64 = ("exits", Count),
        /// Pause-loop exits.
        ple_exits: u64 = ("PLE exits", Count),
        /// Of these, those in user mode.
        ple_exits_user: u64 = ("in user mode", Count),
        /// Calls of kvm_vcpu_on_spin().
        on_spin: u64 = ("on_spin", Count),
        /// Of these, those that did not call yield_to().
        on_spin_no_yield: u64 = ("no candidate", Count),
        #[serde(flatten)]
        scheduling: SchedulingKeys = (of SchedulingKeys),
        /// Times that it was preempted or yielded.
        switches_out_runnable: u64,
        /// Exits while its guest booted; null: its thread was not there.
        boot_exits: Option<u64>,
        /// Pause-loop exits while its guest booted.
        boot_ple_exits: Option<u64>,
        /// Time that is missing (below 0: too much) in running, runnable and asleep; ns.
        conservation_error_ns: f64,
    }
}

impl LinuxRun {
    /// The run as a whole.
    pub fn run_row(&self) -> RunRow {
        let health = self.seen.as_ref().map(|seen| &seen.health);
        RunRow {
            features: self.features.clone(),
            load: self.report.command.clone(),
            vms: self.report.vms.len(),
            window_ns: self.report.window_ns,
            pause_loop: PauseLoopKeys::of(self.pause_loop.as_ref()),
            missed_bpf_runs: health.map(|health| health.recursion_misses()),
            unobserved_exits: health.map(|health| health.unobserved_exits),
        }
    }

    /// A row for each VM.
    pub fn vm_rows(&self) -> impl Iterator<Item = VmRow> {
        self.report.vms.iter().map(|vm| self.vm_row(vm))
    }

    fn vm_row(&self, vm: &VmReport) -> VmRow {
        let boot = self.seen.as_ref().map(|seen| seen.boot(vm.process));
        let window = self.seen.as_ref().map(|seen| seen.window(vm.process));
        let sum = |counters: &Option<Vec<VcpuCounters>>, of: fn(&VcpuCounters) -> u64| {
            Some(counters.as_ref()?.iter().map(of).sum::<u64>())
        };
        // How long the threads were watched, which is a little longer than the window.
        let time = window
            .as_ref()
            .and_then(|window| window.iter().map(|vcpu| vcpu.wall_ns).max());
        let rate = |of: fn(&VcpuCounters) -> u64| {
            let time = Duration::from_nanos(time.unwrap_or(0));
            sum(&window, of).and_then(|count| per_second(count, time))
        };
        let range = vm.range_load_ns();
        let counts = vm.counts();
        VmRow {
            vm: vm.name.clone(),
            process: vm.process,
            kernel: vm.kernel.clone(),
            vcpus_seen: window.as_ref().map(Vec::len),
            boot_ns: vm.boot_ns,
            guest_boot_ns: vm.guest_boot_ns,
            boot_exits: sum(&boot, |vcpu| vcpu.exits),
            boot_ple_exits: sum(&boot, |vcpu| vcpu.ple_exits),
            runs: vm.runs.len(),
            load_mean_ns: vm.mean_load_ns(),
            load_least_ns: range.map(|(least, _)| least),
            load_most_ns: range.map(|(_, most)| most),
            requests_per_s: vm.mean(Outcome::requests_per_s),
            p99_ns: vm.mean(|outcome| outcome.p99_ns.map(|ns| ns as f64)),
            max_ns: vm.runs.iter().filter_map(|run| run.outcome.max_ns).max(),
            exits_per_second: rate(|vcpu| vcpu.exits),
            ple_exits_per_second: rate(|vcpu| vcpu.ple_exits),
            reschedules: counts.map(|counts| counts.reschedules),
            function_calls: counts.map(|counts| counts.function_calls),
            tlb_shootdowns: counts.map(|counts| counts.tlb_shootdowns),
            steal_ns: counts.and_then(|counts| self.steal_ns(counts)),
        }
    }

    /// Without the steal-time feature a guest does not know what was stolen.
    fn steal_ns(&self, counts: Counts) -> Option<u64> {
        let told = self.features.split(',').any(|word| word == "steal-time");
        told.then_some(counts.steal_ns)
    }

    /// A row for each run of each VM.
    pub fn load_run_rows(&self) -> impl Iterator<Item = LoadRunRow> {
        let runs = |vm| -> Vec<LoadRunRow> { self.load_runs_of(vm).collect() };
        self.report.vms.iter().flat_map(runs)
    }

    fn load_runs_of<'a>(&'a self, vm: &'a VmReport) -> impl Iterator<Item = LoadRunRow> + 'a {
        let runs = vm.runs.iter().enumerate();
        runs.map(|(run, one)| LoadRunRow {
            vm: vm.name.clone(),
            run,
            load_ns: one.outcome.load_ns,
            requests_per_s: one.outcome.requests_per_s(),
            p99_ns: one.outcome.p99_ns,
            max_ns: one.outcome.max_ns,
            reschedules: Some(one.counts.reschedules),
            function_calls: Some(one.counts.function_calls),
            tlb_shootdowns: Some(one.counts.tlb_shootdowns),
            steal_ns: self.steal_ns(one.counts),
        })
    }

    /// A row for each vCPU; none where nobody watched.
    pub fn vcpu_rows(&self) -> Vec<VcpuRow> {
        let mut rows = Vec::new();
        if let Some(seen) = &self.seen {
            for vm in &self.report.vms {
                rows.extend(vcpu_rows(seen, vm));
            }
        }
        rows
    }
}

fn vcpu_rows(seen: &LinuxSeen, vm: &VmReport) -> Vec<VcpuRow> {
    let boot = seen.boot(vm.process);
    let row = |vcpu: &VcpuCounters| {
        let booting = boot.iter().find(|then| then.thread == vcpu.thread);
        VcpuRow {
            vm: vm.name.clone(),
            vcpu: vcpu.vcpu,
            thread: vcpu.thread,
            exits: vcpu.exits,
            ple_exits: vcpu.ple_exits,
            ple_exits_user: vcpu.ple_exits_user,
            on_spin: vcpu.on_spin,
            on_spin_no_yield: vcpu.on_spin_no_yield,
            scheduling: SchedulingKeys::of(Some(vcpu)),
            switches_out_runnable: vcpu.switches_out_runnable,
            boot_exits: booting.map(|vcpu| vcpu.exits),
            boot_ple_exits: booting.map(|vcpu| vcpu.ple_exits),
            conservation_error_ns: vcpu.conservation_error_ns() as f64,
        }
    };
    seen.window(vm.process).iter().map(row).collect()
}
