// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said of VMs whose trouble was planted by hand: stops, I/O, waits for CPUs, and what cannot be seen. Preempted holders,
//! waiters and receivers are planted in the lab (crates/cli/tests/report/main.rs).

use unspin_analysis::{
    verdict::{
        decide::Finding,
        study::{Study, study_events},
        words::{Verdict, verdicts},
    },
    waits::spin_locations::Naming,
};
use unspin_events::{
    Event, KIND_NAMES, What,
    facts::{BeginTime, Facts, TaskFacts, VcpuFacts, VmFacts},
    vm_identity::VmIdentity,
};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// The recording begins then, at 14:02:00 on some day.
const BEGIN: u64 = 77 * SECOND;
/// SVM's codes.
const INTERRUPT: u32 = 0x60;
const HALT: u32 = 0x78;
const PAGE_FAULT: u32 = 0x400;
/// Threads of the VM's process: of vCPU 0, of vCPU 1, and one for its disk.
const VCPU: u32 = 101;
const DISK: u32 = 109;

#[derive(Default)]
struct Host(Vec<Event>);

impl Host {
    fn push(&mut self, at_ns: u64, vcpu: u16, what: What) {
        self.0.push(Event {
            time_ns: BEGIN + at_ns,
            vm: Some(0),
            vcpu: Some(vcpu),
            thread: VCPU + u32::from(vcpu),
            cpu: vcpu,
            what,
        });
    }

    fn comes(&mut self, at_ns: u64, vcpu: u16) {
        let what = What::SwitchIn {
            previous_thread: 7,
            previous_vm: None,
        };
        self.push(at_ns, vcpu, what);
    }

    fn leaves(&mut self, at_ns: u64, vcpu: u16, runnable: bool, exit_code: u32) {
        let what = What::SwitchOut {
            next_thread: 7,
            next_vm: None,
            runnable,
            preempt: runnable,
            mode: None,
            exit_code: Some(exit_code),
            guest_rip: None,
        };
        self.push(at_ns, vcpu, what);
    }

    /// Runs for `on_ns` and is away for `off_ns`, again and again.
    fn cycles(
        &mut self,
        (from_ns, to_ns): (u64, u64),
        vcpu: u16,
        (on_ns, off_ns): (u64, u64),
        away: Away,
    ) {
        let mut at_ns = from_ns;
        while at_ns + on_ns + off_ns <= to_ns {
            self.comes(at_ns, vcpu);
            at_ns += on_ns;
            match away {
                Away::Preempted => self.leaves(at_ns, vcpu, true, INTERRUPT),
                Away::Asleep { exit_code, waker } => {
                    self.leaves(at_ns, vcpu, false, exit_code);
                    self.push(
                        at_ns + off_ns,
                        vcpu,
                        What::SchedWakeup {
                            waker_thread: waker,
                        },
                    );
                }
            }
            at_ns += off_ns;
        }
        self.comes(at_ns, vcpu);
    }

    fn judged(mut self, facts: &Facts) -> (Study, Verdict) {
        self.0.sort_by_key(|event| event.time_ns);
        let study = study_events(facts, Naming::default(), self.0);
        let verdict = verdicts(facts, &study).remove(0);
        (study, verdict)
    }
}

#[derive(Clone, Copy)]
enum Away {
    Preempted,
    Asleep { exit_code: u32, waker: u32 },
}

fn facts() -> Facts {
    let vcpu = |vcpu| VcpuFacts {
        vcpu,
        thread: VCPU + u32::from(vcpu),
        ..VcpuFacts::default()
    };
    let mut facts = Facts {
        begin: BeginTime {
            monotonic_ns: BEGIN,
            unix_ns: (20_000 * 86_400 + 14 * 3_600 + 2 * 60) * SECOND,
        },
        kinds: KIND_NAMES.iter().map(|name| (*name).to_owned()).collect(),
        vms: vec![VmFacts {
            vm: 0,
            process: Some(100),
            identity: VmIdentity {
                name: Some("web-3".into()),
                ..VmIdentity::default()
            },
            vcpus: vec![vcpu(0), vcpu(1)],
            ..VmFacts::default()
        }],
        tasks: vec![TaskFacts {
            thread: DISK,
            process: Some(100),
            comm: "IO iothread1".into(),
            ..TaskFacts::default()
        }],
        ..Facts::default()
    };
    facts.kvm.module = Some("kvm_amd".into());
    let window = ("pause_filter_count".to_owned(), Some("3000".to_owned()));
    facts.kvm.parameters.extend([window]);
    facts
}

#[track_caller]
fn share(verdict: &Verdict, percent: f64) {
    let share = verdict.share_percent.expect("a share");
    assert!(
        (share - percent).abs() < 1.0,
        "{share} is not {percent}: {verdict:?}"
    );
}

#[test]
fn waits_for_cpus_alone_are_steal_since_they_began() {
    let mut host = Host::default();
    for vcpu in [0, 1] {
        host.comes(0, vcpu);
        host.leaves(37 * SECOND - MS, vcpu, true, INTERRUPT);
        host.cycles(
            (37 * SECOND, 60 * SECOND),
            vcpu,
            (3 * MS, 6 * MS),
            Away::Preempted,
        );
    }
    let (_, verdict) = host.judged(&facts());
    assert_eq!(verdict.finding, Finding::Steal);
    // Two thirds of 23 of 60 s.
    share(&verdict, 100.0 * 23.0 * 2.0 / 3.0 / 60.0);
    let since_ns = verdict.since_ns.expect("a time") - BEGIN;
    assert!(since_ns.abs_diff(37 * SECOND) <= 2 * SECOND, "{since_ns}");
    assert!(
        verdict.sentence.starts_with("web-3: this is steal only."),
        "{}",
        verdict.sentence
    );
    assert!(
        verdict.sentence.contains(" since 14:02:3"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn sleep_that_the_own_disk_ends_is_io() {
    let away = |exit_code, waker| {
        let mut host = Host::default();
        for vcpu in [0, 1] {
            host.cycles(
                (0, 10 * SECOND),
                vcpu,
                (MS, 4 * MS),
                Away::Asleep { exit_code, waker },
            );
        }
        host.judged(&facts()).1
    };
    let disk = away(HALT, DISK);
    assert_eq!(disk.finding, Finding::Io);
    share(&disk, 80.0);
    assert!(
        disk.sentence.starts_with("web-3: this is I/O."),
        "{}",
        disk.sentence
    );
    assert!(disk.sentence.contains("since the recording's beginning"));
    // A page that the host must fetch, whoever wakes the vCPU.
    assert_eq!(away(PAGE_FAULT, 0).finding, Finding::Io);
    // An idle guest: its own timer, or another vCPU, wakes it.
    assert_eq!(away(HALT, 0).finding, Finding::Fine);
    assert_eq!(away(HALT, VCPU).finding, Finding::Fine);
}

#[test]
fn a_stopped_vmm_is_no_steal_and_no_io() {
    let mut host = Host::default();
    for vcpu in [0, 1] {
        host.comes(0, vcpu);
        host.leaves(2 * SECOND, vcpu, false, INTERRUPT);
        host.push(
            4 * SECOND + 500 * MS,
            vcpu,
            What::SchedWakeup { waker_thread: 999 },
        );
        host.comes(4 * SECOND + 500 * MS, vcpu);
    }
    host.push(10 * SECOND, 0, What::KvmVcpuOnSpin);
    let (study, verdict) = host.judged(&facts());
    assert_eq!(verdict.finding, Finding::Stopped);
    share(&verdict, 25.0);
    assert_eq!(study.vms[&0].figures.longest_stop_ns, 2_500 * MS);
    assert_eq!(
        verdict
            .since_ns
            .map(|ns| (ns - BEGIN).abs_diff(2 * SECOND) <= 50 * MS),
        Some(true)
    );
    assert!(
        verdict.sentence.contains("was stopped for 2.5 s"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn one_vcpu_asleep_while_another_runs_is_no_stop() {
    let mut host = Host::default();
    host.comes(0, 0);
    host.comes(0, 1);
    host.leaves(2 * SECOND, 1, false, INTERRUPT);
    host.push(9 * SECOND, 1, What::SchedWakeup { waker_thread: 999 });
    host.push(10 * SECOND, 0, What::KvmVcpuOnSpin);
    assert_eq!(host.judged(&facts()).1.finding, Finding::Fine);
}

#[test]
fn where_pause_loop_exits_are_off_it_says_so() {
    let judged = |facts: &Facts| {
        let mut host = Host::default();
        for vcpu in [0, 1] {
            host.cycles((0, 10 * SECOND), vcpu, (3 * MS, 3 * MS), Away::Preempted);
        }
        host.judged(facts).1
    };
    assert_eq!(judged(&facts()).finding, Finding::Steal);
    let mut off = facts();
    off.kvm
        .parameters
        .insert("pause_filter_count".to_owned(), Some("0".to_owned()));
    let verdict = judged(&off);
    assert_eq!(
        (verdict.finding, verdict.share_percent),
        (Finding::Blind, None)
    );
    let says = "web-3: blind, pause-loop exits are off (kvm_amd pause_filter_count=0). Its vCPUs waited for a CPU for 50 %";
    assert!(verdict.sentence.starts_with(says), "{}", verdict.sentence);
    let mut intel = facts();
    intel.kvm.module = Some("kvm_intel".into());
    let parameters = [("ple_window", "4096"), ("ple_gap", "0")];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    intel.kvm.parameters.extend(parameters);
    assert!(judged(&intel).sentence.contains("kvm_intel ple_gap=0"));
    let mut unasked = facts();
    unasked.kinds.retain(|kind| kind != "pause_exit");
    assert!(
        judged(&unasked)
            .sentence
            .contains("pause-loop exits were not recorded")
    );
    let mut unknown = facts();
    unknown.kvm.module = None;
    assert_eq!(judged(&unknown).finding, Finding::Blind);
}

#[test]
fn without_events_nothing_is_said() {
    let study = study_events(&facts(), Naming::default(), []);
    assert!(verdicts(&facts(), &study).is_empty());
}
