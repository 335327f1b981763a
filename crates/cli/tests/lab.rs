// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab`: what its commands print, refuse and keep. Nothing here needs KVM or the testbed.

mod common;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use common::{Ended, UNSPIN, folder, scenario, unspin};
use serde_json::Value;
use unspin_events::{
    Event, GuestMode, What,
    facts::{Facts, KvmFacts},
};
use unspin_recording::{Ended as RecordingEnded, Options, Recording};

const SCENARIO: &str = "seed = 3\nduration = \"20ms\"\nwarm_up = \"5ms\"\n\n[host]\ncpus = 2\nple_gap = 65535\n\n\
    [[vm]]\nvcpus = 4\nlock = \"ticket\"\nhold = { exponential = \"500ns\" }\nuser_work = { exponential = \"3us\" }\n";

#[track_caller]
fn rows(ended: &Ended, table: &str) -> Vec<Value> {
    assert_eq!(ended.status, 0, "{ended:#?}");
    let object: Value = serde_json::from_str(&ended.out).expect("one JSON object");
    let rows = object["rows"].as_array().expect("rows");
    let ours = rows.iter().filter(|row| row["table"] == table);
    ours.cloned().collect()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {row}"))
}

#[test]
fn a_run_accounts_for_all_time_and_repeats() {
    let folder = folder(SCENARIO);
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
    let folder = folder(SCENARIO);
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
    let folder = folder(SCENARIO);
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
        "lab.burners=2",
        "lab.vendor=intel",
        "lab.topology=1x2x1x2",
        "lab.window_control=off",
        "lab.ecs=paper",
        "lab.guest_tasks=3",
        "lab.page_fault_every_turns=20",
        "lab.pv_tlb_flush=true",
        "lab.costs.switch_ns=5000",
    ] {
        let ended = unspin(&[
            "lab",
            "run",
            &file,
            "--json",
            "--set",
            set,
            "--set",
            "vm.hints=true",
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
    let folder = folder(SCENARIO);
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
fn a_comparison_pairs_by_seed() {
    let folder = folder(SCENARIO);
    let file = scenario(&folder);
    let line = [
        "lab",
        "compare",
        &file,
        "--seeds",
        "5",
        "--policy",
        "scheduler=eevdf-7.2,off",
        "--json",
    ];
    let compared = |workers: &str| unspin(&[&line[..], &["--workers", workers]].concat());
    let ended = compared("2");
    let policies = rows(&ended, "policy");
    let names: Vec<_> = policies
        .iter()
        .map(|row| row["policy"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["stock", "scheduler=eevdf-7.2", "off", "ideal"]);
    // The default named is the default.
    assert_eq!(policies[1]["ratio_to_stock"], 1.0);
    assert_eq!(policies[1]["gap_closed"], 0.0);
    assert_eq!(policies[2]["verdict"], "lower");
    assert_eq!(policies[2]["harm"], "harm");
    assert_eq!(policies[3]["verdict"], "higher");
    assert!(policies[0]["ratio_to_stock"].is_null());
    let seeds: Vec<u64> = rows(&ended, "sample")
        .iter()
        .map(|row| number(row, "seed"))
        .collect();
    assert_eq!(seeds, [[3, 4, 5, 6, 7]; 4].concat());
    assert_eq!(rows(&compared("1"), "sample"), rows(&ended, "sample"));
    let constant = unspin(&[
        "lab",
        "compare",
        &file,
        "--seeds",
        "2",
        "--policy",
        "off",
        "--set",
        "vm.hold=1us",
        "--set",
        "vm.user_work=2us",
        "--set",
        "vm.kernel_work=0s",
    ]);
    assert!(
        constant.out.contains("this scenario draws nothing"),
        "{constant:#?}"
    );
    for (policy, piece) in [
        ("best", "there is no policy `best`"),
        ("lag-credit=1", "there is no policy"),
        ("scheduler=cfs-9", "no host scheduler"),
    ] {
        let line = ["lab", "compare", &file, "--policy", policy];
        unspin(&line).refused(2, &[piece]);
    }
}

/// The policy of that answer to every question.
fn own(answer: &str) -> String {
    let functions = ["yield", "slice_end", "look"].map(|event| {
        format!(
            "UNSPIN_PURE struct unspin_decision mine_on_{event}(const struct unspin_facts *facts, struct unspin_policy_state *state)\n\
             {{\n\treturn unspin_decide({answer}, 0);\n}}\n"
        )
    });
    format!(
        "#include <unspin/policy/contract.h>\n{}UNSPIN_PURE void mine_on_turn(const struct unspin_facts *facts, struct \
         unspin_policy_state *state)\n{{\n}}\n",
        functions.concat()
    )
}

#[test]
fn a_policy_of_a_users_own_decides() {
    let folder = folder(SCENARIO);
    let file = scenario(&folder);
    let path = folder.path().join("mine.c");
    let path = path.to_string_lossy();
    let policies = format!("none,{path},{path}:loan");
    let compared = |answer: &str| {
        fs::write(&*path, own(answer)).expect("written");
        let line = [
            "lab", "compare", &file, "--seeds", "3", "--json", "--policy", &policies,
        ];
        let samples = rows(&unspin(&line), "sample");
        let of = |policy: &str| -> Vec<f64> {
            let ours = samples.iter().filter(|row| row["policy"] == policy);
            ours.map(|row| row["operations_per_second"].as_f64().expect("a rate"))
                .collect()
        };
        [of("none"), of(&path), of(&format!("{path}:loan"))]
    };
    // Who refuses everything is `none`, whatever stands behind him.
    let [none, refuses, before_loan] = compared("UNSPIN_REFUSE");
    assert_eq!((&refuses, &before_loan), (&none, &none));
    // Who passes leaves it to the others.
    let [_, passes, before_loan] = compared("UNSPIN_PASS");
    assert_ne!(before_loan, none);
    assert_ne!(passes, none);
    fs::write(&*path, "no C\n").expect("written");
    let line = ["lab", "compare", &file, "--policy", &path];
    unspin(&line).refused(2, &["does not compile", "mine.c"]);
    fs::write(&*path, own("getpid()")).expect("written");
    unspin(&line).refused(2, &["does not compile"]);
    let out = folder.path().join("out");
    let set = format!("lab.policy={path}");
    let refused = common::ended(&mut sweep(
        &file,
        &out,
        &["--set", "lab.scheduler=steer", "--set", &set],
    ));
    refused.refused(2, &["`lab compare` takes such files"]);
}

fn sweep(file: &str, out: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(UNSPIN);
    command.args(["lab", "sweep", file, "--json", "--out"]);
    command.arg(out).args(more);
    command
}

const GRID: [&str; 6] = [
    "--set",
    "vm.vcpus=2..5",
    "--set",
    "lab.scheduler=eevdf-7.2,cfs-5.6,credit",
    "--seeds",
    "2",
];

fn names(out: &Path) -> Vec<String> {
    let entries = fs::read_dir(out).expect("a folder");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
    let mut names: Vec<_> = entries
        .map(|entry| name(entry).to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn a_sweep_gives_the_same_bytes_with_any_number_of_workers() {
    let folder = folder(SCENARIO);
    let file = scenario(&folder);
    let bytes = |workers: &str| {
        let out = folder.path().join(workers);
        let line = [&GRID[..], &["--workers", workers]].concat();
        let ended = common::ended(&mut sweep(&file, &out, &line));
        assert_eq!(rows(&ended, "cell").len(), 24);
        assert_eq!(number(&rows(&ended, "sweep")[0], "run"), 24);
        assert_eq!(names(&out), ["sweep.parquet"]);
        fs::read(out.join("sweep.parquet")).expect("the file")
    };
    let one = bytes("1");
    assert_eq!(one, bytes("4"));
    let text = String::from_utf8_lossy(&one);
    for piece in [
        "unspin.commit",
        "unspin.scenario_sha256",
        "unspin.seed",
        "vm.vcpus=2|3|4|5",
    ] {
        assert!(text.contains(piece), "{piece}");
    }
    // What is complete is not run again.
    let again = common::ended(&mut sweep(&file, &folder.path().join("1"), &GRID));
    assert_eq!(number(&rows(&again, "sweep")[0], "run"), 0);
    assert_eq!(rows(&again, "cell").len(), 24);
}

/// Waits until there are so many cells; false: it ended before.
fn cells(out: &Path, child: &mut Child, least: usize) -> bool {
    let begin = Instant::now();
    loop {
        let cells = fs::read_dir(out).map_or(0, |entries| {
            let names = entries.flatten().map(|entry| entry.file_name());
            names
                .filter(|name| name.to_string_lossy().ends_with("0.parquet"))
                .count()
        });
        if cells * 10 >= least {
            return true;
        }
        if child.try_wait().expect("our child").is_some() {
            return false;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(120),
            "no cell in two minutes"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_sweep_goes_on_with_nothing_lost_or_doubled() {
    let folder = folder(SCENARIO);
    let file = scenario(&folder);
    let [whole, killed]: [PathBuf; 2] = ["whole", "killed"].map(|name| folder.path().join(name));
    let grid = [
        "--set",
        "vm.vcpus=2..4",
        "--set",
        "duration=40ms",
        "--seeds",
        "20",
        "--workers",
        "2",
    ];
    let reference = common::ended(&mut sweep(&file, &whole, &grid));
    assert_eq!(rows(&reference, "cell").len(), 60);
    let mut child = sweep(&file, &killed, &grid)
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let killed_within = cells(&killed, &mut child, 10);
    child.kill().expect("SIGKILL");
    child.wait().expect("our child");
    assert!(killed_within, "it was done before it was killed");
    let finished = names(&killed)
        .iter()
        .filter(|name| name.ends_with(".parquet"))
        .count() as u64;
    assert!((1..60).contains(&finished), "{finished}");
    // What a kill in the middle of a write leaves.
    fs::write(killed.join("cell-000059.parquet.partial"), b"PAR1").expect("written");
    let ended = common::ended(&mut sweep(&file, &killed, &grid));
    let row = &rows(&ended, "sweep")[0];
    assert_eq!(
        (number(row, "kept"), number(row, "run")),
        (finished, 60 - finished)
    );
    assert_eq!(names(&killed), ["sweep.parquet"]);
    let read = |out: &Path| fs::read(out.join("sweep.parquet")).expect("the file");
    assert_eq!(read(&whole), read(&killed));
}

#[test]
fn a_damaged_or_foreign_file_is_refused_before_anything_runs() {
    let folder = folder(SCENARIO);
    let file = scenario(&folder);
    let out = folder.path().join("out");
    let grid = ["--set", "vm.vcpus=2..3"];
    assert_eq!(common::ended(&mut sweep(&file, &out, &grid)).status, 0);
    let merged = out.join("sweep.parquet");
    let whole = fs::read(&merged).expect("the file");
    for place in [0, 1, 4, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        fs::write(&merged, &whole[..place]).expect("written");
        let cut = common::ended(&mut sweep(&file, &out, &grid));
        cut.refused(2, &["sweep.parquet", "damaged", "remove it"]);
        let mut changed = whole.clone();
        changed[place] ^= 0x10;
        fs::write(&merged, &changed).expect("written");
        let changed = common::ended(&mut sweep(&file, &out, &grid));
        changed.refused(2, &["sweep.parquet", "damaged"]);
    }
    fs::write(&merged, &whole).expect("written");
    let other = common::ended(&mut sweep(&file, &out, &["--set", "vm.vcpus=2..4"]));
    other.refused(2, &["of another sweep", "name another folder"]);
    fs::write(out.join("notes.txt"), "mine").expect("written");
    let foreign = common::ended(&mut sweep(&file, &out, &grid));
    foreign.refused(2, &["`notes.txt`", "name another folder"]);
    assert_eq!(fs::read(&merged).expect("still there"), whole);
}

/// Two vCPUs that take turns of a millisecond on one pCPU: 100 us of work, then waits of one window of 10 us, again and again.
fn recording(folder: &Path) {
    let mut events = Vec::new();
    let mut time_ns = 1_000_000;
    for turn in 0..100u64 {
        let vcpu = (turn % 2) as u16;
        let thread = 100 + turn as u32 % 2;
        let at = |time_ns, what| Event {
            time_ns,
            vm: Some(0),
            vcpu: Some(vcpu),
            thread,
            cpu: 3,
            what,
        };
        let previous_thread = 101 - turn as u32 % 2;
        let in_ = What::SwitchIn {
            previous_thread,
            previous_vm: Some(0),
        };
        events.push(at(time_ns, in_));
        for _ in 0..9 {
            time_ns += 110_000;
            events.push(at(
                time_ns,
                What::PauseExit {
                    guest_rip: Some(7),
                    mode: Some(GuestMode::Kernel),
                    window: Some(200),
                    inside_ns: 110_000,
                    other_exits: 1,
                    interrupt_exits: 0,
                },
            ));
            events.push(at(
                time_ns,
                What::PauseExit {
                    guest_rip: Some(7),
                    mode: Some(GuestMode::Kernel),
                    window: Some(200),
                    inside_ns: 10_000,
                    other_exits: 0,
                    interrupt_exits: 0,
                },
            ));
        }
        time_ns += 10_000;
        events.push(at(
            time_ns,
            What::SwitchOut {
                next_thread: previous_thread,
                next_vm: Some(0),
                runnable: true,
                preempt: true,
                mode: Some(GuestMode::User),
                exit_code: None,
                guest_rip: None,
            },
        ));
    }
    let parameter = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
    let facts = Facts {
        machine: "EPYC, 4 CPUs, Linux 6.12.3".into(),
        kvm: KvmFacts {
            module: Some("kvm_amd".into()),
            parameters: [
                parameter("pause_filter_count", "200"),
                parameter("pause_filter_thresh", "65535"),
                parameter("pause_filter_count_grow", "1"),
                parameter("pause_filter_count_shrink", "1"),
            ]
            .into(),
        },
        ..Facts::default()
    };
    let mut recording =
        Recording::create(folder, facts, Options::default()).expect("an empty folder");
    recording.append(&events).expect("room");
    recording
        .finish(RecordingEnded::Finished, None)
        .expect("room");
}

#[test]
fn a_recording_becomes_a_scenario_that_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let recorded = folder.path().join("recorded");
    recording(&recorded);
    let recorded = recorded.to_string_lossy();
    let ended = unspin(&["lab", "from", &recorded]);
    assert_eq!(ended.status, 0, "{ended:#?}");
    for piece in [
        "\ncpus = 1\n",
        "\nple_window = 200\nple_gap = 65535\nple_window_fixed = true\n",
        "\nscheduler = \"eevdf-6.12\"\n",
        "\nvcpus = 2\n",
        "Assumed: every wait",
        "duration = \"100000000ns\"",
    ] {
        assert!(ended.out.contains(piece), "{piece}\n{}", ended.out);
    }
    let file = folder.path().join("from.toml");
    let file = file.to_string_lossy();
    let written = unspin(&["lab", "from", &recorded, "--out", &file]);
    assert_eq!(
        (written.status, written.out.as_str()),
        (0, ""),
        "{written:#?}"
    );
    assert_eq!(fs::read_to_string(&*file).expect("written"), ended.out);
    unspin(&["lab", "from", &recorded, "--out", &file]).refused(2, &["from.toml"]);
    let run = unspin(&["lab", "run", &file, "--json", "--duration", "50ms"]);
    assert!(
        rows(&run, "vcpu")
            .iter()
            .all(|vcpu| number(vcpu, "operations") > 0)
    );
    let empty = folder.path().join("empty").to_string_lossy().into_owned();
    Recording::create(Path::new(&empty), Facts::default(), Options::default())
        .expect("an empty folder")
        .finish(RecordingEnded::Finished, None)
        .expect("room");
    unspin(&["lab", "from", &empty]).refused(1, &["no vCPU appears"]);
}

#[test]
fn a_model_that_cannot_go_on_ends_with_a_diagnosis() {
    let folder = folder(SCENARIO);
    let file = scenario(&folder);
    // Ticks come more often than a switch takes: nobody ever gets to run.
    let line = [
        "lab",
        "run",
        &file,
        "--set",
        "turns=10",
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
