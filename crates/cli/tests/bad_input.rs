// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bad input: one clear message, a non-zero status, nothing on standard output.

mod common;

use std::process::Command;

use common::{SCENARIO, ended, folder, scenario, unspin};

/// `vm run` of SCENARIO with one piece replaced.
fn run_with(from: &str, to: &str) -> common::Ended {
    assert!(SCENARIO.contains(from));
    let folder = folder(&SCENARIO.replace(from, to));
    unspin(&["vm", "run", &scenario(&folder)])
}

#[test]
fn a_lock_that_does_not_exist() {
    run_with("\"ticket\"", "\"futex\"").refused(
        2,
        &[
            "s.toml:5:8: there is no lock `futex`",
            "`test_and_set`",
            "`test_and_test_and_set`",
            "`ticket`",
            "`preemptable_ticket`",
        ],
    );
    unspin(&["bench", "threads", "--lock", "futex"]).refused(
        2,
        &["--lock futex: there is no such lock", "preemptable_ticket"],
    );
}

#[test]
fn zero_vcpus_and_65() {
    for (number, said) in [("0", "cannot be 0"), ("65", "cannot be 65")] {
        run_with("vcpus = 2", &format!("vcpus = {number}")).refused(
            2,
            &["s.toml:4:9: `vcpus`", said, "a whole number from 1 to 64"],
        );
        let folder = folder(SCENARIO);
        let set = format!("vm.vcpus={number}");
        unspin(&["vm", "run", &scenario(&folder), "--set", &set])
            .refused(2, &[&format!("with --set {set}"), said, "from 1 to 64"]);
    }
}

#[test]
fn other_scenarios_that_cannot_be() {
    run_with("vcpus", "vcpu").refused(
        2,
        &["unknown key `vcpu` in [[vm]]", "did you mean `vcpus`?"],
    );
    run_with("iterations = 100", "duration = \"0s\"")
        .refused(2, &["`duration` cannot be 0s", "from 1ns"]);
    run_with("iterations = 100", "duration = 5").refused(2, &["`duration` cannot be 5", "\"2s\""]);
    run_with("\"300 loops\"", "\"300\"").refused(2, &["`300` has no unit"]);
    unspin(&["vm", "run", "/nonexistent/s.toml"]).refused(
        2,
        &["/nonexistent/s.toml: the scenario cannot be read: No such file"],
    );
    let folder = folder(SCENARIO);
    unspin(&[
        "scenario",
        "check",
        &scenario(&folder),
        "--set",
        "vm.cpus=1",
    ])
    .refused(2, &["--set vm.cpus=1: there is no such key"]);
    unspin(&[
        "scenario",
        "check",
        &scenario(&folder),
        "--duration",
        "5 parsecs",
    ])
    .refused(2, &["`parsecs` is not a unit of time"]);
}

#[test]
fn wrong_command_lines() {
    unspin(&[]).refused(2, &["Usage"]);
    unspin(&["fly"]).refused(2, &["unrecognized subcommand 'fly'"]);
    unspin(&["vm", "run"]).refused(2, &["<SCENARIO>"]);
    unspin(&["testbed", "run"]).refused(2, &["<COMMAND>"]);
    unspin(&["testbed", "run", "--time-limit", "5", "--", "true"]).refused(2, &["has no unit"]);
    unspin(&["bench", "threads", "--repeat", "0"]).refused(2, &["--repeat"]);
    unspin(&[
        "bench",
        "threads",
        "--lock",
        "ticket",
        "--baselines",
        "futex",
    ])
    .refused(2, &["--baselines futex", "glibc_mutex"]);
    unspin(&["bench", "threads", "--baselines", "all"]).refused(2, &["--lock"]);
    unspin(&["bench", "threads", "--hold", "fast"]).refused(2, &["--hold"]);
    unspin(&["bench", "threads", "s.toml", "--matrix", "quick"]).refused(2, &["--matrix"]);
    unspin(&["bench", "vm", "--lock", "futex"]).refused(2, &["--lock futex", "qspinlock"]);
    unspin(&["bench", "vm", "--vms", "0"]).refused(2, &["--vms"]);
    unspin(&["bench", "vm", "--vcpus", "65"]).refused(2, &["--vcpus"]);
    unspin(&["bench", "vm", "--hold", "fast"]).refused(2, &["--hold"]);
    unspin(&["bench", "vm", "--set", "iterations=5"]).refused(2, &["duration, not iterations"]);
    unspin(&["bench", "ecs", "--threads", "65"]).refused(2, &["65"]);
    let folder = folder(SCENARIO);
    let off = ["--events", "/dev/null", "--observe", "off"];
    unspin(&[&["vm", "run", &scenario(&folder)], &off[..]].concat())
        .refused(2, &["--events needs BPF programs"]);
}

#[test]
fn no_kvm() {
    let folder = folder(SCENARIO);
    common::in_an_empty_world(&folder, &["vm", "run", "s.toml"])
        .refused(1, &["no /dev/kvm", "unspin testbed run", "unspin doctor"]);
}

#[test]
fn no_root() {
    let folder = folder(SCENARIO);
    // Where anybody may use KVM, the run goes on without being observed; elsewhere it says how to get there.
    let ended = common::as_nobody(&folder, &["vm", "run", "s.toml", "--observe", "on"]);
    ended.refused(1, &["KVM cannot be observed on this host"]);
    let kvm = std::fs::metadata("/dev/kvm")
        .map(|m| std::os::unix::fs::PermissionsExt::mode(&m.permissions()));
    if kvm.is_ok_and(|mode| mode & 0o006 == 0) {
        common::as_nobody(&folder, &["vm", "run", "s.toml", "--observe", "off"])
            .refused(1, &["/dev/kvm refuses this user", "run as root"]);
    }
}

#[test]
fn a_testbed_that_is_not_set_up() {
    let folder = folder(SCENARIO);
    let testbed = |arguments: &[&str]| {
        let mut command = Command::new(common::UNSPIN);
        command.args(["testbed", "run"]).args(arguments);
        ended(command.env("UNSPIN_CACHE", folder.path()))
    };
    testbed(&["--", "true"]).refused(1, &["the testbed is not set up", "make setup"]);
    testbed(&["--cpus", "65", "--", "true"]).refused(1, &["65 CPUs", "1 to 64"]);
    // A scenario is read before anything boots.
    let set = [
        "--",
        "unspin",
        "vm",
        "run",
        &scenario(&folder),
        "--set",
        "vm.vcpus=65",
    ];
    testbed(&set).refused(2, &["`vcpus` cannot be 65", "from 1 to 64"]);
    testbed(&["--", "unspin", "vm", "walk"]).refused(2, &["unrecognized subcommand 'walk'"]);
}

#[test]
fn linux_guests_that_cannot_be() {
    unspin(&["vm", "linux", "--features", "nopvspin,pvspin"]).refused(2, &["exclude each other"]);
    unspin(&["vm", "linux", "--features", "vee22"]).refused(2, &["vee21, stock"]);
    unspin(&["vm", "linux", "--limit", "0s"]).refused(2, &["lets nothing run"]);
    let policies = ["vm", "linux-policies"];
    for (words, says) in [
        (["--shapes", "2x"], "VMs x vCPUs"),
        (
            ["--loads", "torture"],
            "hackbench, calls, make, mmaps, ebizzy",
        ),
        (["--policy", "lend"], "`lend`"),
        (["--policy", "apple"], "leave `apple` to `unspin steer`"),
    ] {
        unspin(&[&policies[..], &words].concat()).refused(2, &[says]);
    }
    let too_small = "testbed run --memory-mib 600 -- unspin vm linux --vms 2";
    unspin(&too_small.split(' ').collect::<Vec<_>>()).refused(2, &["--memory-mib 1124"]);
    let database = "testbed run --memory-mib 900 -- unspin vm linux --vms 2 --load pgbench";
    unspin(&database.split(' ').collect::<Vec<_>>()).refused(2, &["--memory-mib 1636"]);
}

#[test]
fn only_vms_is_for_our_scheduler() {
    let only_vms = ["steer", "--only-vms"];
    unspin(&[&only_vms[..], &["--dry-run", "--policy", "loan"]].concat())
        .refused(2, &["exclude each other"]);
    for window in ["apple", "window=200"] {
        unspin(&[&only_vms[..], &["--policy", window]].concat())
            .refused(2, &["--only-vms is for our scheduler", window]);
    }
}

#[test]
fn a_vm_that_is_steered_wrongly() {
    // Any process may become a VM's.
    let own = std::process::id();
    for (vm, says) in [
        ("no-such-vm=loan".to_owned(), "there is no VM `no-such-vm`"),
        (format!("{own}=lone"), "there is no policy `lone`"),
        ("7=window=200".to_owned(), "pause-loop windows"),
        ("7=./mine.c".to_owned(), "say the policy's name"),
    ] {
        unspin(&["steer", "--vm", &vm]).refused(2, &[says]);
    }
    let [loan, ecs] = ["loan", "ecs"].map(|policy| format!("{own}={policy}"));
    unspin(&["steer", "--vm", &loan, "--vm", &ecs]).refused(2, &["two policies for one VM"]);
    unspin(&["policy", "reset"]).refused(2, &["--vm <VM>"]);
    for command in [
        &["policy", "reset"][..],
        &["policy", "set", "loan"],
        &["tune"],
    ] {
        let line = [command, &["--vm", "no-such-vm"]].concat();
        unspin(&line).refused(2, &["there is no VM `no-such-vm`"]);
    }
}

#[test]
fn a_host_that_cannot_be_measured_so() {
    for (words, says) in [
        ("--sample 0s", "lets nothing run"),
        ("--loads pipe", "`pipe` is no load"),
        ("--policy apple", "leave `apple` to `unspin steer`"),
        (
            "--policy loan --policy window=200",
            "`bench host` does not set pause-loop windows",
        ),
        ("--policy ./a.c --policy ./b.c", "room for one user policy"),
    ] {
        let line: Vec<&str> = ["bench", "host"]
            .into_iter()
            .chain(words.split(' '))
            .collect();
        unspin(&line).refused(2, &[says]);
    }
}

#[test]
fn a_canary_that_would_show_nothing() {
    for (words, says) in [
        ("--pairs 1", "--pairs: 2 at least"),
        ("--sample 1s", "--sample: 4 s at least"),
        ("--probe-timeout 0s", "lets nothing run"),
        ("--policy apple", "leave `apple` to `unspin steer`"),
        ("--policy tune", "`unspin tune` does"),
        ("--max-useful-loss 100", "above 0 and below 100"),
        ("--max-sleeper-rise 1", "a factor above 1"),
        (
            "--report /nonexistent/report",
            "--report /nonexistent/report: ",
        ),
    ] {
        let line: Vec<&str> = ["canary"].into_iter().chain(words.split(' ')).collect();
        unspin(&line).refused(2, &[says]);
    }
}

#[test]
fn a_dump_that_would_be_written_over_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let there = folder.path().join("there");
    std::fs::write(&there, "kept").expect("written");
    let dump = |file: &str| unspin(&["steer", "--duration", "1ms", "--dump", file]);
    dump(there.to_str().expect("UTF-8")).refused(2, &["it is there already"]);
    assert_eq!(std::fs::read_to_string(&there).expect("there"), "kept");
    dump("/nonexistent/dump").refused(2, &["its folder is not there"]);
}

#[test]
fn without_the_programs_of_linux_guests_set_up_is_named() {
    let mut command = Command::new(common::UNSPIN);
    command
        .args(["vm", "linux"])
        .env("UNSPIN_CACHE", "/nonexistent")
        .env_remove("UNSPIN_TESTBED");
    ended(&mut command).refused(1, &["/nonexistent/linux-guest", "`make setup`"]);
}

#[test]
fn a_recording_of_which_nothing_can_be_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("UTF-8");
    for command in ["explain", "outcomes", "threshold"] {
        unspin(&[command, path]).refused(1, &["no recording"]);
        unspin(&[command, "/nonexistent"]).refused(1, &["/nonexistent", "No such file"]);
    }
    std::fs::write(folder.path().join("events-000000.parquet"), "PAR1 cut off").expect("written");
    for command in ["explain", "outcomes", "threshold"] {
        unspin(&[command, path]).refused(1, &["no event of it can be read", "events-000000"]);
    }
}
