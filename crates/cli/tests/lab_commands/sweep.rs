// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab sweep`: the same bytes with any number of workers, after kills, and never of damaged files.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::common::{
    UNSPIN, folder,
    lab::{LAB_SCENARIO, number, rows},
    scenario,
};

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
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    let bytes = |workers: &str| {
        let out = folder.path().join(workers);
        let line = [&GRID[..], &["--workers", workers]].concat();
        let ended = crate::common::ended(&mut sweep(&file, &out, &line));
        assert_eq!(rows(&ended, "cell").len(), 24);
        assert_eq!(number(&rows(&ended, "sweep")[0], "run"), 24);
        assert_eq!(names(&out), ["hashes.jsonl", "sweep.parquet"]);
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
    let again = crate::common::ended(&mut sweep(&file, &folder.path().join("1"), &GRID));
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
    let folder = folder(LAB_SCENARIO);
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
    let reference = crate::common::ended(&mut sweep(&file, &whole, &grid));
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
    let ended = crate::common::ended(&mut sweep(&file, &killed, &grid));
    let row = &rows(&ended, "sweep")[0];
    assert_eq!(
        (number(row, "kept"), number(row, "run")),
        (finished, 60 - finished)
    );
    assert_eq!(names(&killed), ["hashes.jsonl", "sweep.parquet"]);
    let read = |out: &Path| fs::read(out.join("sweep.parquet")).expect("the file");
    assert_eq!(read(&whole), read(&killed));
}

#[test]
fn a_damaged_or_foreign_file_is_refused_before_anything_runs() {
    let folder = folder(LAB_SCENARIO);
    let file = scenario(&folder);
    let out = folder.path().join("out");
    let grid = ["--set", "vm.vcpus=2..3"];
    assert_eq!(
        crate::common::ended(&mut sweep(&file, &out, &grid)).status,
        0
    );
    let merged = out.join("sweep.parquet");
    let whole = fs::read(&merged).expect("the file");
    for place in [0, 1, 4, whole.len() / 2, whole.len() - 9, whole.len() - 1] {
        fs::write(&merged, &whole[..place]).expect("written");
        let cut = crate::common::ended(&mut sweep(&file, &out, &grid));
        cut.refused(2, &["sweep.parquet", "damaged", "remove it"]);
        let mut changed = whole.clone();
        changed[place] ^= 0x10;
        fs::write(&merged, &changed).expect("written");
        let changed = crate::common::ended(&mut sweep(&file, &out, &grid));
        changed.refused(2, &["sweep.parquet", "damaged"]);
    }
    fs::write(&merged, &whole).expect("written");
    let other = crate::common::ended(&mut sweep(&file, &out, &["--set", "vm.vcpus=2..4"]));
    other.refused(2, &["of another sweep", "name another folder"]);
    fs::write(out.join("notes.txt"), "mine").expect("written");
    let foreign = crate::common::ended(&mut sweep(&file, &out, &grid));
    foreign.refused(2, &["`notes.txt`", "name another folder"]);
    assert_eq!(fs::read(&merged).expect("still there"), whole);
}
