// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a run of the lab: the run as a whole, its events, each VM, vCPU and pCPU.
//!
//! Rates and shares are those of the window (after the warm-up); counters are those of the whole run, as in `vm run`.

use unspin_lab::{Counts, Lab, VcpuOutcome, observers::KINDS};
use unspin_report::row;
use unspin_scenario::{Scenario, Vm};

use super::Ran;

row! {
    "run", ["lab run"];
    /// A run of the lab as a whole.
    pub struct RunRow {
        /// The scenario's name.
        scenario: String,
        /// SHA-256 of its canonical text.
        scenario_sha256: String,
        /// Its seed.
        seed: u64 = ("seed", Count),
        /// The host's scheduler, with its version.
        scheduler: String = ("scheduler", Text),
        /// pCPUs.
        cpus: u32 = ("pCPUs", Count),
        /// VMs.
        vms: u32 = ("VMs", Count),
        /// vCPUs of all VMs.
        vcpus: usize = ("vCPUs", Count),
        /// Simulated time; ns.
        simulated_ns: u64 = ("simulated", Nanoseconds),
        /// Of it the window: what is measured, after the warm-up; ns.
        window_ns: u64,
        /// Time that it took here; ns.
        wall_ns: f64 = ("took", Nanoseconds),
        /// Changes of the state of a vCPU, pCPU, lock or timer.
        events: u64 = ("events", Count),
        /// Of these, per second that it took.
        events_per_second: Option<f64> = ("events/s", Count),
        /// Acquisitions of locks per second that it took.
        acquisitions_per_second: Option<f64> = ("locks/s", Count),
        /// The most memory that this process had; bytes.
        resident_bytes: Option<u64> = ("peak memory, bytes", Count),
    }
}

row! {
    "event", ["lab run"];
    /// One kind of event of a run of the lab.
    pub struct EventRow {
        /// The kind.
        kind: &'static str = ("event", Text),
        /// How many there were.
        events: u64 = ("events", Count),
        /// The same per second that the run took.
        events_per_second: Option<f64> = ("per second of work", Count),
    }
}

row! {
    "vm", ["lab run"];
    /// One VM of the lab. Rates and shares are of the window, counters of the whole run.
    pub struct VmRow {
        /// The VM.
        vm: String = ("VM", Text),
        /// Its group: the scenario's table `[[vm]]`, from 0.
        group: usize,
        /// Its lock.
        lock: &'static str = ("lock", Text),
        /// Its vCPUs.
        vcpus: u32 = ("vCPUs", Count),
        /// Iterations of its vCPUs per second.
        operations_per_second: Option<f64> = ("ops/s", Count),
        /// Share of all time in waits for locks; percent.
        waiting_share_percent: Option<f64> = ("waiting %", Percent),
        /// Share of the time on a pCPU in loops of waits; percent.
        spin_share_percent: Option<f64> = ("spinning %", Percent),
        /// Share of all time in which a vCPU waited for a pCPU; percent.
        steal_share_percent: Option<f64> = ("steal %", Percent),
        /// Share of all time asleep; percent.
        halted_share_percent: Option<f64> = ("halted %", Percent),
        /// Pause-loop exits.
        pause_exits: u64 = ("PLE exits", Count),
        /// Calls of `yield_to()` that were done.
        yields: u64 = ("yields", Count),
        /// Calls of `yield_to()` that were refused.
        yields_refused: u64 = ("refused", Count),
        /// Times a vCPU was taken off its pCPU while it wanted to go on.
        preemptions: u64 = ("preempted", Count),
        /// Of them while it held a lock.
        preemptions_holding: u64 = ("holding", Count),
        /// Of them while it waited for one.
        preemptions_waiting: u64 = ("waiting", Count),
        /// Loans that its vCPUs got.
        loans: u64 = ("loans", Count),
        /// Times a slice was prolonged at its end.
        grants: u64 = ("grants", Count),
        /// Times a vCPU gave a pCPU back before its time was up.
        given_back: u64 = ("given back", Count),
        /// Times somebody was let run because a vCPU asked for help.
        helped: u64,
        /// Slice boundaries reached with a lock asked for or held (ruling 22).
        boundaries_critical: u64,
        /// Waits that the guest ended at the threshold that it was told.
        waits_ended: u64,
        /// The sum of these thresholds; spins.
        waited_spins: u64,
        /// The host's time that it took to handle these waits; ns.
        wait_host_ns: u64,
    }
}

row! {
    "vcpu", ["lab run"];
    /// One vCPU of the lab. Rates and shares are of the window, counters of the whole run.
    pub struct VcpuRow {
        /// Its VM.
        vm: String = ("VM", Text),
        /// Its number in the VM.
        vcpu: u32 = ("vCPU", Count),
        /// Iterations per second.
        operations_per_second: Option<f64> = ("ops/s", Count),
        /// Share of all time in waits for locks; percent.
        waiting_share_percent: Option<f64> = ("waiting %", Percent),
        /// Share of the time on a pCPU in loops of waits; percent.
        spin_share_percent: Option<f64> = ("spinning %", Percent),
        /// Share of all time in which it waited for a pCPU; percent.
        steal_share_percent: Option<f64> = ("steal %", Percent),
        /// Share of all time asleep; percent.
        halted_share_percent: Option<f64> = ("halted %", Percent),
        /// Iterations.
        operations: u64,
        /// Locks taken.
        lock_waits: u64 = ("lock waits", Count),
        /// From asking for locks until they were held; ns.
        lock_wait_ns: u64,
        /// The longest of these; ns.
        longest_wait_ns: u64 = ("longest", Nanoseconds),
        /// Time in which locks were held, on a pCPU or not; ns.
        hold_ns: u64,
        /// Time on a pCPU in loops of waits; ns.
        spin_ns: u64,
        /// Time on a pCPU; ns.
        running_ns: u64,
        /// Time that it waited for a pCPU; ns.
        runnable_ns: u64,
        /// Time asleep; ns.
        halted_ns: u64,
        /// The host's work on its account: exits, entries, switches; ns.
        host_ns: u64,
        /// Of it what pause-loop exits took; ns.
        spin_host_ns: u64,
        /// Its longest wait for a pCPU; ns.
        longest_runnable_ns: u64,
        /// PAUSE instructions, where they may exit.
        pauses: u64,
        /// Pause-loop exits.
        pause_exits: u64 = ("PLE exits", Count),
        /// Calls of `yield_to()` that were done.
        yields: u64 = ("yields", Count),
        /// Calls of `yield_to()` that were refused.
        yields_refused: u64,
        /// Times it was taken off its pCPU while it wanted to go on.
        preemptions: u64 = ("preempted", Count),
        /// Of them while it held a lock.
        preemptions_holding: u64 = ("holding", Count),
        /// Of them while it waited for one.
        preemptions_waiting: u64 = ("waiting", Count),
        /// Shootdowns that it sent.
        shootdowns: u64,
        /// Shootdowns that it answered.
        shootdowns_answered: u64,
        /// Tokens that it passed on.
        wakeups: u64,
        /// Times it went to sleep in the host.
        halts: u64,
        /// Guest ticks handled.
        ticks: u64,
        /// Loans that it got.
        loans: u64,
        /// Times its slice was prolonged at its end.
        grants: u64,
        /// Times it gave a pCPU back before its time was up.
        given_back: u64,
        /// Times somebody was let run because it asked for help.
        helped: u64,
        /// Slice boundaries that it reached with a lock asked for or held (ruling 22).
        boundaries_critical: u64,
        /// Pages that the host had to fetch.
        page_faults: u64,
        /// Switches between guest tasks.
        guest_switches: u64,
    }
}

row! {
    "cpu", ["lab run"];
    /// One pCPU of the lab, in the whole run.
    pub struct CpuRow {
        /// Its number.
        cpu: usize = ("pCPU", Count),
        /// Share of its time in which it was busy; percent.
        busy_percent: Option<f64> = ("busy %", Percent),
        /// Share of its time that interrupts and threads of the host took (`lab.host_noise`), without its tick; percent.
        host_percent: Option<f64> = ("host %", Percent),
        /// Tasks that got it.
        switches: u64 = ("switches", Count),
        /// Busy; ns.
        busy_ns: u64,
        /// Of these, what interrupts and threads of the host took; ns.
        host_ns: u64,
        /// Idle; ns.
        idle_ns: u64,
    }
}

/// So many per second of `ns`; none when no time passed.
fn rate(count: u64, ns: u128) -> Option<f64> {
    (ns > 0).then(|| count as f64 * 1e9 / ns as f64)
}

/// `part` of `whole` in percent; none of nothing.
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// `VmHWM` of this process (proc(5)).
fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kilobytes.checked_mul(1_024)
}

/// What VMs and vCPUs share, in the window: a rate and four shares.
struct Shares {
    operations_per_second: Option<f64>,
    waiting_percent: Option<f64>,
    spin_percent: Option<f64>,
    steal_percent: Option<f64>,
    halted_percent: Option<f64>,
}

impl Shares {
    fn of(vcpus: &[&VcpuOutcome], window_ns: u64) -> Shares {
        let sum =
            |what: fn(&Counts) -> u64| -> u64 { vcpus.iter().map(|vcpu| vcpu.grown(what)).sum() };
        let operations = vcpus.iter().map(|vcpu| vcpu.operations()).sum();
        let wall_ns = window_ns * vcpus.len() as u64;
        let running_ns = sum(|counts| counts.times.running_ns);
        Shares {
            operations_per_second: rate(operations, window_ns.into()),
            waiting_percent: share(sum(|counts| counts.statistics.lock_wait_ns), wall_ns),
            spin_percent: share(sum(|counts| counts.statistics.spin_ns), running_ns),
            steal_percent: share(sum(|counts| counts.times.runnable_ns), wall_ns),
            halted_percent: share(sum(|counts| counts.times.halted_ns), wall_ns),
        }
    }
}

impl Ran {
    /// The run as a whole.
    pub fn run_row(&self, scenario: &Scenario, lab: &Lab) -> RunRow {
        let outcome = &self.outcome;
        let acquisitions = outcome.vcpus.iter();
        let acquisitions = acquisitions
            .map(|vcpu| vcpu.after.statistics.acquisitions)
            .sum();
        let wall_ns = self.wall.as_nanos();
        RunRow {
            scenario: scenario.name.clone(),
            scenario_sha256: scenario.hash(),
            seed: scenario.seed,
            scheduler: lab.scheduler().to_owned(),
            cpus: lab.host().topology.cpus(),
            vms: scenario.vms.iter().map(|vm| vm.count).sum(),
            vcpus: outcome.vcpus.len(),
            simulated_ns: outcome.end_ns,
            window_ns: outcome.window_ns,
            wall_ns: wall_ns as f64,
            events: outcome.trace_events,
            events_per_second: rate(outcome.trace_events, wall_ns),
            acquisitions_per_second: rate(acquisitions, wall_ns),
            resident_bytes: peak_resident_bytes(),
        }
    }

    /// A row for each kind of event that there was.
    pub fn event_rows(&self) -> impl Iterator<Item = EventRow> {
        let wall_ns = self.wall.as_nanos();
        let kinds = KINDS.iter().zip(self.counter.kinds);
        let kinds = kinds.filter(|(_, events)| *events > 0);
        kinds.map(move |(kind, events)| EventRow {
            kind,
            events,
            events_per_second: rate(events, wall_ns),
        })
    }

    /// A row for each VM.
    pub fn vm_rows(&self, scenario: &Scenario) -> impl Iterator<Item = VmRow> {
        let groups = scenario.vms.iter().enumerate();
        let instances = groups.flat_map(|(group, of)| (0..of.count).map(move |_| (group, of)));
        let instances = instances.enumerate();
        instances.map(|(number, (group, of))| self.vm_row(number, group, of))
    }

    fn vm_row(&self, number: usize, group: usize, of: &Vm) -> VmRow {
        let ours = self.outcome.vcpus.iter();
        let ours: Vec<_> = ours.filter(|vcpu| vcpu.vm as usize == number).collect();
        let all =
            |what: fn(&Counts) -> u64| -> u64 { ours.iter().map(|vcpu| what(&vcpu.after)).sum() };
        let shares = Shares::of(&ours, self.outcome.window_ns);
        VmRow {
            vm: format!("vm{number}"),
            group,
            lock: of.lock.name(),
            vcpus: of.vcpus,
            operations_per_second: shares.operations_per_second,
            waiting_share_percent: shares.waiting_percent,
            spin_share_percent: shares.spin_percent,
            steal_share_percent: shares.steal_percent,
            halted_share_percent: shares.halted_percent,
            pause_exits: all(|counts| counts.statistics.pause_exits),
            yields: all(|counts| counts.statistics.yields),
            yields_refused: all(|counts| counts.statistics.yields_refused),
            preemptions: all(|counts| counts.statistics.preemptions),
            preemptions_holding: all(|counts| counts.statistics.preemptions_holding),
            preemptions_waiting: all(|counts| counts.statistics.preemptions_waiting),
            loans: all(|counts| counts.statistics.loans),
            grants: all(|counts| counts.statistics.grants),
            given_back: all(|counts| counts.statistics.given_back),
            helped: all(|counts| counts.statistics.helped),
            boundaries_critical: all(|counts| counts.statistics.boundaries_critical),
            waits_ended: all(|counts| counts.statistics.waits_ended),
            waited_spins: all(|counts| counts.statistics.waited_spins),
            wait_host_ns: all(|counts| counts.statistics.wait_host_ns),
        }
    }

    /// A row for each vCPU.
    pub fn vcpu_rows(&self) -> impl Iterator<Item = VcpuRow> {
        let vcpus = self.outcome.vcpus.iter();
        vcpus.map(|vcpu| vcpu_row(vcpu, self.outcome.window_ns))
    }

    /// A row for each pCPU.
    pub fn cpu_rows(&self) -> impl Iterator<Item = CpuRow> {
        let cpus = self.outcome.cpus.iter().zip(&self.outcome.host_ns);
        let cpus = cpus.zip(&self.counter.switches).enumerate();
        cpus.map(
            |(cpu, ((&(busy_ns, idle_ns), &host_ns), &switches))| CpuRow {
                cpu,
                busy_percent: share(busy_ns, busy_ns + idle_ns),
                host_percent: share(host_ns, busy_ns + idle_ns),
                switches,
                busy_ns,
                host_ns,
                idle_ns,
            },
        )
    }
}

fn vcpu_row(vcpu: &VcpuOutcome, window_ns: u64) -> VcpuRow {
    let Counts { statistics, times } = &vcpu.after;
    let shares = Shares::of(&[vcpu], window_ns);
    VcpuRow {
        vm: format!("vm{}", vcpu.vm),
        vcpu: vcpu.vcpu,
        operations_per_second: shares.operations_per_second,
        waiting_share_percent: shares.waiting_percent,
        spin_share_percent: shares.spin_percent,
        steal_share_percent: shares.steal_percent,
        halted_share_percent: shares.halted_percent,
        operations: statistics.operations,
        lock_waits: statistics.acquisitions,
        lock_wait_ns: statistics.lock_wait_ns,
        longest_wait_ns: statistics.longest_wait_ns,
        hold_ns: statistics.hold_ns,
        spin_ns: statistics.spin_ns,
        running_ns: times.running_ns,
        runnable_ns: times.runnable_ns,
        halted_ns: times.halted_ns,
        host_ns: statistics.host_ns,
        spin_host_ns: statistics.spin_host_ns,
        longest_runnable_ns: times.longest_wait_ns,
        pauses: statistics.pauses,
        pause_exits: statistics.pause_exits,
        yields: statistics.yields,
        yields_refused: statistics.yields_refused,
        preemptions: statistics.preemptions,
        preemptions_holding: statistics.preemptions_holding,
        preemptions_waiting: statistics.preemptions_waiting,
        shootdowns: statistics.shootdowns,
        shootdowns_answered: statistics.shootdowns_answered,
        wakeups: statistics.wakeups,
        halts: statistics.halts,
        ticks: statistics.ticks,
        loans: statistics.loans,
        grants: statistics.grants,
        given_back: statistics.given_back,
        helped: statistics.helped,
        boundaries_critical: statistics.boundaries_critical,
        page_faults: statistics.page_faults,
        guest_switches: statistics.guest_switches,
    }
}
