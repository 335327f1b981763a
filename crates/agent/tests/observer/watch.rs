// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the watcher counts without events, against the observer that sees every switch, and against the guests themselves.

use std::{sync::Mutex, time::Duration};

use unspin_agent::{EventMask, WatchCounters, WatchedHost, WatchedVm, Watcher, monotonic_ns};
use unspin_events::VcpuCounters;
use unspin_testbed::check;
use unspin_vmm::{Phase, RunOptions, RunReport};

use crate::{
    checks::attach,
    vms::{run_with, vcpus, vm},
};

/// What was read while the VMs were there: at the window's end, and when all their threads had ended.
struct Readings {
    report: RunReport,
    running: WatchedHost,
    stopped: WatchedHost,
    observed: Vec<VcpuCounters>,
    /// Runs of the observer's programs that did not take place.
    missed: u64,
}

fn read_while_they_run(watcher: Watcher, milliseconds: u64) -> (Watcher, Readings) {
    let observer = attach(EventMask::NONE);
    let both = std::sync::Arc::new((watcher, Mutex::new(Vec::new())));
    let seen = std::sync::Arc::clone(&both);
    let options = RunOptions {
        on_phase: Some(Box::new(move |phase| {
            if matches!(phase, Phase::WindowEnds | Phase::Stopped) {
                let host = seen.0.read().expect("the kernel tells");
                seen.1.lock().expect("one thread").push(host);
            }
        })),
        ..RunOptions::default()
    };
    let report = run_with(&options, milliseconds, vec![vm(3), vm(2)]);
    let observed = observer.counters().expect("the kernel tells");
    let missed = observer.health().expect("the kernel tells");
    let missed = missed.recursion_misses();
    drop(options);
    let (watcher, hosts) = std::sync::Arc::into_inner(both).expect("the options are gone");
    let hosts = hosts.into_inner().expect("one thread");
    let Ok([running, stopped]) = <[WatchedHost; 2]>::try_from(hosts) else {
        panic!("two phases")
    };
    let readings = Readings {
        report,
        running,
        stopped,
        observed,
        missed,
    };
    (watcher, readings)
}

impl Readings {
    /// Each VM at the end, with its vCPUs as they were before: numbers are given in order of appearance, which is anybody's.
    fn vms(&self) -> impl Iterator<Item = (&WatchedVm, &WatchedVm)> {
        assert_eq!(self.stopped.vms.len(), 2);
        self.stopped.vms.iter().zip(&self.running.vms)
    }

    /// What the observer counted of that VM's threads.
    fn observed(&self, vm: &WatchedVm) -> VcpuCounters {
        let mut sum = VcpuCounters::default();
        let own = |counters: &&VcpuCounters| {
            let mut threads = vm.vcpus.iter();
            threads.any(|vcpu| vcpu.thread == counters.thread)
        };
        self.observed
            .iter()
            .filter(own)
            .for_each(|counters| sum.add(counters));
        sum
    }
}

/// Both, apart by no more than so many percent and a millisecond.
#[track_caller]
fn close(what: &str, ns: u64, other_ns: u64, percent: u64) {
    println!("  {what}: {ns} ns, {other_ns} ns by another way");
    let allowed_ns = other_ns / 100 * percent + 1_000_000;
    assert!(
        ns.abs_diff(other_ns) <= allowed_ns,
        "{what}: {ns} {other_ns}"
    );
}

check!(COUNTED: the_watcher_counts_what_the_observer_counts);
fn the_watcher_counts_what_the_observer_counts() {
    let watcher = Watcher::attach().expect("the testbed's kernel has all it takes");
    let (watcher, seen) = read_while_they_run(watcher, 400);
    // While they run each vCPU has its line, and they are this process's.
    let threads = seen.running.vms.iter().flat_map(|vm| &vm.vcpus);
    let mut threads: Vec<u32> = threads.map(|vcpu| vcpu.thread).collect();
    let mut known: Vec<u32> = vcpus(&seen.report)
        .map(|(_, vcpu)| vcpu.thread_id)
        .collect();
    threads.sort_unstable();
    known.sort_unstable();
    assert_eq!(threads, known);
    for vm in &seen.running.vms {
        assert_eq!(vm.process, Some(std::process::id()));
    }
    assert!(seen.running.sees_yields && seen.running.unseen_exits == 0);
    // Their threads have ended: sums stay until the VM goes.
    for (vm, running) in seen.vms() {
        let (total, observed) = (vm.total, seen.observed(running));
        println!("  VM {}: {total:?}", vm.number);
        assert_eq!(vm.number, running.number);
        assert!(vm.vcpus.is_empty());
        assert_eq!(
            (total.exits, total.ple_exits, total.ple_exits_user),
            (observed.exits, observed.ple_exits, observed.ple_exits_user)
        );
        let yields =
            observed.yield_to_boosted + observed.yield_to_refused + observed.yield_to_failed;
        let succeeded = observed.yield_to_boosted;
        println!(
            "  yields: {yields} tried, {succeeded} succeeded; the observer missed {} runs",
            seen.missed
        );
        assert!(total.yields_tried.abs_diff(yields) <= seen.missed);
        assert!(total.yields_succeeded.abs_diff(succeeded) <= seen.missed);
        close("ran", total.run_ns, observed.running_ns, 2);
        close("waited", total.wait_ns, observed.runnable_ns, 2);
        assert!(total.spin_ns <= total.guest_ns);
        assert!(total.guest_ns + total.handling_ns <= total.run_ns);
        assert!(total.handling_ns > 0);
        assert!(total.slices_lost <= observed.switches_out_runnable);
        assert!(total.halted_ns <= observed.asleep_ns + total.run_ns);
    }
    let sum = |of: fn(&WatchCounters) -> u64| -> u64 {
        seen.stopped.vms.iter().map(|vm| of(&vm.total)).sum()
    };
    assert!(sum(|of| of.ple_exits) > 300 && sum(|of| of.slices_lost) > 0);
    assert!(sum(|of| of.halted_ns) > 0 && sum(|of| of.yields_succeeded) > 0);
    // The VMs are gone.
    let after = watcher.read().expect("the kernel tells");
    assert_eq!(after.vms, []);
    // Those at KVM's tracepoints run with interrupts off, and none of their runs is left out.
    let health = watcher.health().expect("the kernel tells");
    assert_eq!(health.unobserved_exits, 0);
    for program in &health.programs {
        let at_kvm = program.name.starts_with("tp_btf/kvm");
        assert!(!at_kvm || program.recursion_misses == 0, "{program:?}");
    }
}

/// VMs and vCPUs of the host are 500 and 8,000; cost and memory grow with the vCPUs.
const VMS: u64 = 50;
const VCPUS: usize = 800;
/// Of a reading, for each vCPU: read every other second, 8,000 vCPUs take 12 million instructions a second then, some four thousandths of a
/// CPU.
const INSTRUCTIONS_MAX: u64 = 3_000;
/// The testbed's clock under icount: shift 1.
const INSTRUCTION_NS: u64 = 2;

/// Waits until a loop of a million instructions takes no longer than they do. Emulated CPUs take turns and share the clock: while the
/// other one works (what the check before detached is still being freed), all that is timed here takes longer.
fn wait_until_the_other_cpu_is_idle() {
    const INSTRUCTIONS: u64 = 1_000_000;
    let is_alone = || {
        let began_ns = monotonic_ns();
        // SAFETY: it counts a register down.
        unsafe {
            std::arch::asm!("2: dec {count}", "jnz 2b", count = inout(reg) INSTRUCTIONS / 2 => _);
        }
        // A tick may come in between.
        (monotonic_ns() - began_ns) * 10 < INSTRUCTIONS * INSTRUCTION_NS * 11
    };
    let found = (0..300).any(|_| {
        let alone = is_alone();
        if !alone {
            std::thread::sleep(Duration::from_millis(20));
        }
        alone
    });
    assert!(found, "the other CPU was busy for six seconds");
}

check!(INTERRUPTED: a_reading_costs_little_for_each_vcpu);
fn a_reading_costs_little_for_each_vcpu() {
    let watcher = Watcher::attach().expect("the testbed's kernel has all it takes");
    let read_ns = || {
        // The shortest of some: another task of the host runs in between.
        let times = (0..5).map(|_| {
            wait_until_the_other_cpu_is_idle();
            let began_ns = monotonic_ns();
            let host = watcher.read().expect("the kernel tells");
            (monotonic_ns() - began_ns, host)
        });
        times.min_by_key(|(ns, _)| *ns).expect("five")
    };
    let (empty_ns, _) = read_ns();
    let (sender, numbers) = std::sync::mpsc::channel();
    let end = std::sync::Barrier::new(VCPUS + 1);
    std::thread::scope(|scope| {
        for _ in 0..VCPUS {
            let (sender, end) = (sender.clone(), &end);
            let thread = std::thread::Builder::new().stack_size(64 << 10);
            let spawned = thread.spawn_scoped(scope, move || {
                // SAFETY: it only tells a number.
                sender
                    .send(unsafe { libc::gettid() } as u32)
                    .expect("asked");
                end.wait();
            });
            spawned.expect("a thread");
        }
        let threads = numbers.iter().take(VCPUS);
        for (number, thread) in (0u64..).zip(threads) {
            watcher
                .pretend(thread, 1 + number % VMS)
                .expect("Linux 6.9");
        }
        let (full_ns, host) = read_ns();
        end.wait();
        let vcpus: usize = host.vms.iter().map(|vm| vm.vcpus.len()).sum();
        assert_eq!((host.vms.len(), vcpus), (50, VCPUS));
        let each = full_ns.saturating_sub(empty_ns) / INSTRUCTION_NS / VCPUS as u64;
        println!(
            "  a reading takes {} instructions, and {each} more for each vCPU",
            empty_ns / INSTRUCTION_NS
        );
        assert!(each < INSTRUCTIONS_MAX, "{each} instructions");
    });
}

check!(INTERRUPTED: spin_time_is_what_the_guests_say);
fn spin_time_is_what_the_guests_say() {
    let watcher = Watcher::attach().expect("the testbed's kernel has all it takes");
    let (_, seen) = read_while_they_run(watcher, 400);
    for (vm, running) in seen.vms() {
        let mut said_ns = 0;
        for vcpu in &running.vcpus {
            let mut reports = vcpus(&seen.report);
            let report = reports.find(|(_, report)| report.thread_id == vcpu.thread);
            let (_, report) = report.expect("one of its vCPUs");
            let guest = &report.statistics;
            let wait_ns = guest.lock_wait_cycles * 1_000_000 / guest.tsc_khz.max(1);
            said_ns += wait_ns.saturating_sub(guest.lock_wait_stolen_ns);
        }
        let what = format!("VM {} spun", vm.number);
        close(&what, vm.total.waste_ns(), said_ns, 25);
        assert!(
            said_ns > 20_000_000,
            "{said_ns} ns of spinning prove little"
        );
    }
}
