// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of `unspin vm run`: the run as a whole, each VM, each vCPU.
//!
//! Rates and shares are those of the window (after the warm-up); counters are those of the whole run, so that the
//! guest's count of PAUSEs and the host's count of exits can be compared one to one.

use unspin_abi::unspin_guest_statistics;
use unspin_events::VcpuCounters;
use unspin_report::row;
use unspin_vmm::{Shares, VcpuReport, VmReport};

use super::Run;
use crate::host_keys::{PauseLoopKeys, SchedulingKeys};

row! {
    "run", ["vm run"];
    /// A run of VMs as a whole.
    pub struct RunRow {
        /// The scenario's name.
        scenario: String,
        /// SHA-256 of its canonical text.
        scenario_sha256: String,
        /// Its seed.
        seed: u64,
        /// VMs.
        vms: usize,
        /// vCPUs of all VMs.
        vcpus: usize,
        /// The window: what was measured, after the warm-up; ns.
        window_ns: u64,
        /// From the start until all VMs ran; ns.
        all_started_ns: u64,
        /// Loops of work that a pCPU does in a microsecond.
        loops_per_microsecond: Option<f64>,
        #[serde(flatten)]
        pause_loop: PauseLoopKeys,
        /// Events that found no room on their way out of the kernel; null: not observed.
        lost_events: Option<u64>,
        /// Events beyond the room for them here.
        dropped_events: Option<u64>,
        /// Runs of BPF programs that the kernel left out.
        missed_bpf_runs: Option<u64>,
        /// Exits of vCPUs for which there was no room.
        unobserved_exits: Option<u64>,
    }
}

row! {
    "vm", ["vm run"];
    /// One VM. Rates and shares are of the window, counters of the whole run.
    pub struct VmRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// Its group: the scenario's table `[[vm]]`, from 0.
        group: usize,
        /// Its lock.
        lock: Option<&'static str> = ("lock", Text),
        /// Its vCPUs.
        vcpus: usize = ("vCPUs", Count),
        /// Iterations of its vCPUs per second.
        operations_per_second: f64 = ("ops/s", Count),
        /// Share of all time in waits for locks and shootdowns; percent.
        waiting_share_percent: f64 = ("waiting %", Percent),
        /// Share of CPU time in spinning; percent.
        spin_share_percent: Option<f64> = ("spinning %", Percent),
        /// Pause-loop exits; null: not observed.
        ple_exits: Option<u64> = ("PLE exits", Count),
        /// From the start until its first instruction; ns.
        start_ns: u64 = ("started in", Nanoseconds),
        /// Its window; ns.
        window_ns: u64,
        /// Guest memory in use at the end; bytes.
        resident_bytes: u64,
    }
}

row! {
    "vcpu", ["vm run"];
    /// One vCPU. Rates and shares are of the window, counters of the whole run.
    pub struct VcpuRow {
        /// Its VM.
        vm: String = ("VM", Text),
        /// Its number in the VM.
        vcpu: u32 = ("vCPU", Count),
        /// Its thread.
        thread: u32,
        /// Iterations per second.
        operations_per_second: f64 = ("ops/s", Count),
        /// Share of all time in waits for locks and shootdowns; percent.
        waiting_share_percent: f64 = ("waiting %", Percent),
        /// Share of CPU time in spinning; percent.
        spin_share_percent: Option<f64> = ("spinning %", Percent),
        /// Acquisitions that found the lock taken.
        lock_waits: u64 = ("lock waits", Count),
        /// Its longest wait for a lock; ns.
        longest_wait_ns: f64 = ("longest", Nanoseconds),
        /// PAUSE instructions.
        pauses: u64 = ("PAUSEs", Count),
        /// Pause-loop exits; null, as all that the host counts: not observed.
        ple_exits: Option<u64> = ("PLE exits", Count),
        /// Calls of kvm_vcpu_on_spin().
        on_spin: Option<u64> = ("on_spin", Count),
        #[serde(flatten)]
        scheduling: SchedulingKeys = (of SchedulingKeys),
        /// Iterations.
        operations: u64,
        /// Spins of waiting loops.
        spin_count: u64,
        /// Lock waits of more than the scenario's `stall_spins`.
        stalls: u64,
        /// Of these, waits with nobody holding the lock at that moment.
        stalls_unheld: u64,
        /// Shootdowns that it sent.
        shootdowns: u64,
        /// Tokens that it gave to the next vCPU, each with an IPI.
        wakeups: u64,
        /// HLT instructions of an idle vCPU.
        halts: u64,
        /// Timer ticks.
        ticks: u64,
        /// Time that it was runnable and off its pCPU, as KVM tells the guest; ns.
        steal_ns: u64,
        /// CPU time of its thread in the window, guest and KVM together; ns.
        cpu_time_ns: u64,
        /// Exits to user space.
        user_exits: u64,
        /// Exits.
        exits: Option<u64>,
        /// Pause-loop exits in user mode.
        ple_exits_user: Option<u64>,
        /// Calls of kvm_vcpu_on_spin() that did not call yield_to().
        on_spin_no_yield: Option<u64>,
        /// Times that it got a pCPU.
        switches_in: Option<u64>,
        /// Times that it was preempted or yielded.
        switches_out_runnable: Option<u64>,
        /// Time from exits to the next entry, all together; ns.
        exit_to_entry_ns: Option<u64>,
        /// Time that is missing (below 0: too much) in running, runnable and asleep; ns.
        conservation_error_ns: Option<f64>,
    }
}

/// Operations per second in the window.
fn operations_per_second(statistics: &unspin_guest_statistics, window_ns: u64) -> f64 {
    statistics.operations as f64 * 1e9 / window_ns as f64
}

impl Run {
    /// The run as a whole.
    pub fn run_row(&self) -> RunRow {
        let report = &self.report;
        let seen = self.seen.as_ref();
        RunRow {
            scenario: self.scenario.name.clone(),
            scenario_sha256: self.scenario.hash(),
            seed: self.scenario.seed,
            vms: report.vms.len(),
            vcpus: report.vms.iter().map(|vm| vm.vcpus.len()).sum(),
            window_ns: report.window_ns,
            all_started_ns: report.all_started_ns,
            loops_per_microsecond: report.work_rate.map(|rate| rate.loops_per_ms as f64 / 1e3),
            pause_loop: PauseLoopKeys::of(report.pause_loop.as_ref()),
            lost_events: seen.map(|seen| seen.health.lost_events),
            dropped_events: seen.map(|seen| seen.dropped_events),
            missed_bpf_runs: seen.map(|seen| seen.health.recursion_misses()),
            unobserved_exits: seen.map(|seen| seen.health.unobserved_exits),
        }
    }

    /// A row for each VM.
    pub fn vm_rows(&self) -> impl Iterator<Item = VmRow> {
        self.report.vms.iter().map(|vm| self.vm_row(vm))
    }

    fn vm_row(&self, vm: &VmReport) -> VmRow {
        let shares = Shares::of_vm(vm, self.report.clock.tsc_hz());
        let vcpus = vm.vcpus.iter();
        let rate = vcpus.map(|vcpu| operations_per_second(&vcpu.window, vm.window_ns));
        let counters = vm.vcpus.iter().map(|vcpu| self.counters(vcpu));
        let ple_exits = counters
            .map(|counters| counters.map(|counters| counters.ple_exits))
            .sum::<Option<u64>>();
        let group = self.scenario.vms.get(vm.group);
        VmRow {
            vm: vm.name.clone(),
            group: vm.group,
            lock: group.map(|group| group.lock.name()),
            vcpus: vm.vcpus.len(),
            operations_per_second: rate.sum(),
            waiting_share_percent: shares.waiting_percent(),
            spin_share_percent: shares.spin_percent(),
            ple_exits,
            start_ns: vm.start_ns,
            window_ns: vm.window_ns,
            resident_bytes: vm.resident_bytes,
        }
    }

    /// A row for each vCPU.
    pub fn vcpu_rows(&self) -> impl Iterator<Item = VcpuRow> {
        let vcpus = self.report.vms.iter();
        let vcpus = vcpus.flat_map(|vm| vm.vcpus.iter().map(move |vcpu| (vm, vcpu)));
        vcpus.map(|(vm, vcpu)| vcpu_row(self, vm, vcpu))
    }

    fn counters(&self, vcpu: &VcpuReport) -> Option<&VcpuCounters> {
        self.seen.as_ref()?.of_thread(vcpu.thread_id)
    }
}

fn vcpu_row(run: &Run, vm: &VmReport, vcpu: &VcpuReport) -> VcpuRow {
    let tsc_hz = run.report.clock.tsc_hz();
    let shares = Shares::of(&vcpu.window, vcpu.cpu_time_ns, vm.window_ns, tsc_hz);
    let whole = &vcpu.statistics;
    let counters = run.counters(vcpu);
    let host = |of: fn(&VcpuCounters) -> u64| counters.map(of);
    VcpuRow {
        vm: vm.name.clone(),
        vcpu: vcpu.number,
        thread: vcpu.thread_id,
        operations_per_second: operations_per_second(&vcpu.window, vm.window_ns),
        waiting_share_percent: shares.waiting_percent(),
        spin_share_percent: shares.spin_percent(),
        lock_waits: whole.lock_waits,
        longest_wait_ns: whole.longest_wait_cycles as f64 * 1e9 / tsc_hz.max(1) as f64,
        pauses: whole.pauses,
        ple_exits: host(|c| c.ple_exits),
        on_spin: host(|c| c.on_spin),
        scheduling: SchedulingKeys::of(counters),
        operations: whole.operations,
        spin_count: whole.spin_count,
        stalls: whole.stalls,
        stalls_unheld: whole.stalls_unheld,
        shootdowns: whole.shootdowns,
        wakeups: whole.wakeups,
        halts: whole.halts,
        ticks: whole.ticks,
        steal_ns: whole.steal_ns,
        cpu_time_ns: vcpu.cpu_time_ns,
        user_exits: vcpu.user_exits,
        exits: host(|c| c.exits),
        ple_exits_user: host(|c| c.ple_exits_user),
        on_spin_no_yield: host(|c| c.on_spin_no_yield),
        switches_in: host(|c| c.switches_in),
        switches_out_runnable: host(|c| c.switches_out_runnable),
        exit_to_entry_ns: host(|c| c.exit_to_entry_ns),
        conservation_error_ns: counters.map(|c| c.conservation_error_ns() as f64),
    }
}
