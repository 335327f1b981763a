// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab run`: what it prints and refuses. Nothing here needs KVM or the testbed.

use std::{fs, path::Path};

use crate::common::{
    folder,
    lab::{LAB_SCENARIO, number, rows},
    scenario, unspin,
};

#[test]
fn a_run_accounts_for_all_time_and_repeats() {
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    let run = || unspin(&["lab", "run", &file, "--json"]);
    let first = run();
    let whole = rows(&first, "run");
    assert_eq!(number(&whole[0], "simulated_ns"), 20_000_000);
    assert_eq!(number(&whole[0], "window_ns"), 15_000_000);
    let events: u64 = rows(&first, "event")
        .iter()
        .map(|row| number(row, "events"))
        .sum();
    assert_eq!(number(&whole[0], "events"), events);
    let vcpus = rows(&first, "vcpu");
    assert_eq!(vcpus.len(), 4);
    for vcpu in &vcpus {
        let parts = ["running_ns", "runnable_ns", "halted_ns"].map(|key| number(vcpu, key));
        assert_eq!(parts.iter().sum::<u64>(), 20_000_000, "{vcpu}");
        assert!(number(vcpu, "operations") > 0);
    }
    let taken: u64 = vcpus.iter().map(|row| number(row, "lock_waits")).sum();
    let counted = rows(&first, "event");
    let counted = counted
        .iter()
        .find(|row| row["kind"] == "lock taken")
        .expect("locks");
    assert_eq!(number(counted, "events"), taken);
    for cpu in rows(&first, "cpu") {
        assert_eq!(
            number(&cpu, "busy_ns") + number(&cpu, "idle_ns"),
            20_000_000
        );
    }
    let second = run();
    for table in ["vm", "vcpu", "cpu"] {
        assert_eq!(rows(&first, table), rows(&second, table));
    }
    let other = unspin(&["lab", "run", &file, "--json", "--seed", "4"]);
    assert_ne!(rows(&first, "vcpu"), rows(&other, "vcpu"));
}

#[test]
fn a_trace_changes_nothing_and_is_written() {
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    let trace = folder.path().join("t.pftrace").display().to_string();
    let plain = unspin(&["lab", "run", &file, "--json"]);
    let traced = unspin(&["lab", "run", &file, "--json", "--trace", &trace]);
    for table in ["vm", "vcpu", "cpu"] {
        assert_eq!(rows(&plain, table), rows(&traced, table));
    }
    let bytes = fs::read(&trace).expect("a trace");
    // A packet of a trace is field 1, bytes (perfetto/trace/trace.proto).
    assert_eq!(bytes[0], 0x0a);
    assert!(bytes.len() > 10_000, "{}", bytes.len());
}

#[test]
fn every_scheduler_and_policy_runs() {
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    for set in [
        "lab.scheduler=cfs-3.5",
        "lab.scheduler=eevdf-6.6",
        "lab.scheduler=credit",
        "lab.scheduler=gang",
        "lab.scheduler=steer",
        "lab.groups=vcpu",
        "lab.weights=[300]",
        "lab.pins=[\"1\"]",
        "lab.cpu_hogs=2",
        "lab.host_noise=busy",
        "lab.skew_tick=true",
        "lab.vendor=intel",
        "lab.topology=1x2x1x2",
        "lab.window_control=off",
        "lab.ecs=paper",
        "lab.guest_tasks=3",
        "lab.page_fault_every_iterations=20",
        "lab.pv_tlb_flush=true",
        "lab.costs.switch_ns=5000",
    ] {
        let ended = unspin(&[
            "lab",
            "run",
            &file,
            "--json",
            "--set",
            "lab.host_noise=off",
            "--set",
            set,
            "--set",
            "vm.pv_page=true",
        ]);
        let done: u64 = rows(&ended, "vcpu")
            .iter()
            .map(|row| number(row, "operations"))
            .sum();
        assert!(done > 0, "{set}");
        if set.contains("off") {
            assert_eq!(number(&rows(&ended, "vm")[0], "pause_exits"), 0, "{set}");
        }
        if set.contains("pins") {
            assert_eq!(number(&rows(&ended, "cpu")[0], "switches"), 0, "{set}");
        }
    }
}

#[test]
fn weights_share_the_cpus() {
    let text = "duration = \"400ms\"\n[host]\ncpus = 1\n[lab]\nweights = [300, 100]\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\n\
                hold = \"100us\"\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\nhold = \"100us\"\n";
    let folder = folder(text);
    let vcpus = rows(
        &unspin(&["lab", "run", &scenario(&folder), "--json"]),
        "vcpu",
    );
    let shares: Vec<u64> = vcpus.iter().map(|row| number(row, "running_ns")).collect();
    let percent = shares[0] * 100 / (shares[0] + shares[1]);
    assert!((73..=77).contains(&percent), "{shares:?}");
}

#[test]
fn what_the_lab_does_not_have_is_refused_before_anything_runs() {
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    for (set, pieces) in [
        ("lab.scheduler=cfs-9", &["lab.scheduler", "cfs-5.6"][..]),
        ("lab.scheduler=cfs-5.6+lag-credit", &["lag-credit"]),
        (
            "lab.policy=loan",
            &["lab.policy", "set lab.scheduler = \"steer\""],
        ),
        ("lab.candidates=best", &["lab.candidates", "strict"]),
        ("lab.window_control=ple", &["lab.window_control", "apple"]),
        (
            "lab.costs.swich_ns=1",
            &["lab.costs", "swich_ns", "switch_ns"],
        ),
        ("lab.costs.exit_ns=0", &["exit_ns cannot be 0"]),
        ("lab.costs.smt_speed=1025", &["smt_speed", "1 to 1024"]),
        ("lab.pins=[\"2\"]", &["no pCPU 2"]),
        ("vm.vcpus=65", &["from 1 to 64"]),
        ("vm.count=1001", &["from 1 to 1000"]),
        ("lab.colour=1", &["no such key"]),
    ] {
        unspin(&["lab", "run", &file, "--set", set]).refused(2, pieces);
        let out = folder.path().join("never");
        let out = out.to_string_lossy();
        unspin(&["lab", "sweep", &file, "--out", &out, "--set", set]).refused(2, pieces);
        assert!(!Path::new(&*out).exists(), "{set}");
    }
    let large = [
        "--set",
        "vm.count=1000",
        "--set",
        "vm.vcpus=64",
        "--set",
        "host.cpus=4096",
    ];
    let large: Vec<&str> = ["lab", "run", &file].into_iter().chain(large).collect();
    unspin(&large).refused(2, &["more than the"]);
}

#[test]
fn a_model_that_cannot_go_on_ends_with_a_diagnosis() {
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    // Ticks come more often than a switch takes: nobody ever gets to run.
    let line = [
        "lab",
        "run",
        &file,
        "--set",
        "iterations=10",
        "--set",
        "lab.costs.switch_ns=1000000000",
    ];
    let pieces = [
        "seed 3",
        "makes no progress at",
        "4 vCPUs are not done",
        "VM 0 vCPU 0",
    ];
    unspin(&line).refused(1, &pieces);
    let out = folder.path().join("out").to_string_lossy().into_owned();
    let mut swept = line;
    swept[1] = "sweep";
    unspin(&[&swept[..], &["--out", &out]].concat()).refused(1, &pieces);
    let trace = folder
        .path()
        .join("t.pftrace")
        .to_string_lossy()
        .into_owned();
    unspin(&[&line[..], &["--trace", &trace]].concat()).refused(1, &pieces);
    assert!(fs::metadata(&trace).expect("a trace").len() > 1_000);
}
