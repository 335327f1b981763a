// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whatever ends it: the kernel's own scheduler is back within a second, VMs go on, and it is said why.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use unspin_agent::{SteerEnd, SteerEndKind, Steerer, UserPolicy};
use unspin_policy::steering::Policies;
use unspin_testbed::check;
use unspin_vmm::{Phase, RunOptions};

use super::ERRING;
use crate::steerer::{
    host::{Busy, attach, shares, state, still_there, wait_for},
    hostile::attaching::{latest_wakeup, set_class},
    observer_vms::run_warmed_up,
    vms::{peaceful, steer},
};

/// From the cause on.
const LIMIT: Duration = Duration::from_secs(1);

/// Whether the kernel's own scheduler has a process: `ext.enabled` of /proc/PID/sched (proc_sched_show_task(),
/// kernel/sched/debug.c, Linux 7.2).
fn is_ours(process: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/sched")).expect("it runs");
    let line = text.lines().find(|line| line.starts_with("ext.enabled"));
    let line = line.unwrap_or_else(|| panic!("no ext.enabled in {text}"));
    line.trim_end().ends_with('1')
}

/// Sets it: a check that fails does not wait for its sleeper for ever.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Ends the scheduler so, beside a VM of four vCPUs, a hog and a sleeper, and looks at all of them afterwards. The hog gets so much
/// of 0.2 s then, or more: its due was 0.08 s where nothing else runs.
fn ended_by(steerer: &Steerer, busy: &Busy, least_s: f64, cause: impl FnOnce()) -> SteerEnd {
    let (tell, told) = mpsc::channel();
    let options = RunOptions {
        on_phase: Some(Box::new(move |phase| {
            // The check is over, or it has failed.
            let _ = tell.send(phase);
        })),
        ..RunOptions::default()
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let vms = scope.spawn(|| run_warmed_up(&options, 3_000, 300, vec![peaceful(4)]));
        while told.recv().expect("the VM comes") != Phase::Started {}
        let sleeper = scope.spawn(|| latest_wakeup(&over));
        let _end = EndOnDrop(&over);
        std::thread::sleep(Duration::from_millis(50));
        still_there(steerer);
        assert!(is_ours(busy.id()));
        // Whoever looks is not kept waiting by those who are looked at.
        set_class(0, libc::SCHED_FIFO, 1);
        let began = Instant::now();
        cause();
        wait_for("disabled", LIMIT);
        let back = began.elapsed();
        set_class(0, libc::SCHED_OTHER, 0);
        assert!(!is_ours(busy.id()));
        let spent = shares(&[busy], Duration::from_millis(200));
        over.store(true, Ordering::Relaxed);
        let late = sleeper.join().expect("it sleeps");
        assert!(spent[0] > least_s, "{spent:?}");
        // What follows counts from then on.
        let begun = told.try_iter().any(|phase| phase == Phase::WindowBegins);
        assert!(!begun, "the VM's warm-up is too short");
        let report = vms.join().expect("the VM runs");
        let vcpus = report.vms[0].vcpus.iter();
        let operations: Vec<u64> = vcpus.map(|vcpu| vcpu.window.operations).collect();
        let end = steerer.ended().expect("the kernel tells").expect("it went");
        println!(
            "  {end:?}: back after {} ms, a sleeper was late by {} ms at most, {operations:?} operations in 300 ms from then on",
            back.as_millis(),
            late.as_millis()
        );
        assert!(operations.iter().all(|done| *done > 0), "{operations:?}");
        assert!(late < LIMIT, "{late:?}");
        end
    })
}

fn press_s() {
    fs::write("/proc/sysrq-trigger", "S").expect("SysRq is there");
}

check!(FAILURE: sysrq_gives_the_host_back);
fn sysrq_gives_the_host_back() {
    let busy = Busy::start(0, None);
    let steerer = attach();
    let end = ended_by(&steerer, &busy, 0.05, press_s);
    assert_eq!(end.kind, SteerEndKind::SysRq, "{end:?}");
    assert!(end.reason.contains("sysrq"), "{end:?}");
    assert_eq!(end.dump, "");
    // And the next one may come.
    drop(steerer);
    let next = attach();
    still_there(&next);
}

check!(FAILURE: a_fault_of_its_own_gives_the_host_back);
/// By scx_bpf_error(), with so many tasks that the kernel's default has no room for the dump of them.
fn a_fault_of_its_own_gives_the_host_back() {
    const THREADS: u32 = 80;
    let busy = Busy::start(-10, None);
    let crowd = Busy::threads(THREADS);
    let steerer = erring();
    let own: Policies = Policies::REFUSE_YIELDS.with_user_policy();
    let end = ended_by(&steerer, &busy, 0.01, || {
        steerer.set_policies(own).expect("at any time");
    });
    assert_eq!(end.kind, SteerEndKind::ItsError, "{end:?}");
    assert_eq!(end.message, "a fault that a test has put into a policy");
    drop(crowd);
    let tasks = end.dump.matches("payer ").count();
    println!("  {} bytes of dump with {tasks} tasks", end.dump.len());
    assert!(tasks >= THREADS as usize, "{tasks}");
    assert!(!end.dump_is_cut() && end.dump.len() > 32_768);
    assert!(
        end.dump.contains("Event counters"),
        "the end of it is missing"
    );
}

fn erring() -> Steerer {
    steer("refuse-yields", |options| {
        let policy = UserPolicy::load(Path::new(ERRING), false);
        options.user_policy = Some(policy.expect("`bring` brings it"));
    })
}

check!(FAILURE: killed_it_gives_the_host_back);
/// With SIGKILL: the kernel closes its link.
fn killed_it_gives_the_host_back() {
    let busy = Busy::start(0, None);
    let own = std::env::current_exe().expect("procfs is mounted");
    let mut steerer = Command::new(own)
        .arg("steer")
        .spawn()
        .expect("this very binary");
    wait_for("enabled", Duration::from_secs(20));
    std::thread::sleep(Duration::from_millis(100));
    assert!(is_ours(busy.id()));
    let began = Instant::now();
    steerer.kill().expect("it is ours");
    wait_for("disabled", LIMIT);
    println!("  back {} ms after the kill", began.elapsed().as_millis());
    assert!(!is_ours(busy.id()));
    steerer.wait().expect("it was killed");
    // Nothing of it is left that the next one would trip over.
    let next = attach();
    still_there(&next);
    drop(next);
    assert_eq!(state(), "disabled");
}
