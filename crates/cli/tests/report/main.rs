// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin report` on runs of the lab whose trouble is known, and what it refuses.

#[path = "../common/mod.rs"]
mod common;
mod papers;

use std::{fs, path::Path};

use common::{
    lab::{number, rows},
    unspin,
};
use serde_json::Value;

/// VMs of `vcpus` on two pCPUs; `work`: what a vCPU does.
fn scenario(count: u32, vcpus: u32, work: &str) -> String {
    format!(
        "name = \"planted\"\nduration = \"1s\"\nwarm_up = \"10ms\"\n\n[host]\ncpus = 2\nple_window_fixed = true\n\n\
         [[vm]]\ncount = {count}\nvcpus = {vcpus}\n{work}\n"
    )
}

/// Each trouble, its scenario, the finding, and the cause where it is certain.
fn planted() -> [(&'static str, String, &'static str, Option<&'static str>); 6] {
    let short =
        "user_work = { exponential = \"3000 loops\" }\nhold = { exponential = \"300 loops\" }";
    let held =
        "user_work = { exponential = \"10000 loops\" }\nhold = { exponential = \"30000 loops\" }";
    let long =
        "user_work = { exponential = \"10000 loops\" }\nhold = { exponential = \"1000000 loops\" }";
    let ticket = "lock = \"ticket\"";
    let private = "lock = \"ticket\"\nlocks = \"private\"";
    [
        (
            "waiter",
            scenario(2, 4, &format!("{ticket}\n{short}")),
            "preempted",
            None,
        ),
        (
            "holder",
            scenario(2, 4, &format!("lock = \"test_and_test_and_set\"\n{held}")),
            "preempted",
            Some("holder_preempted"),
        ),
        (
            "receiver",
            scenario(
                2,
                4,
                &format!("{private}\n{short}\nshootdown_every_iterations = 50"),
            ),
            "preempted",
            Some("call_kernel"),
        ),
        (
            "contention",
            scenario(1, 2, &format!("{ticket}\n{long}")),
            "contention",
            None,
        ),
        (
            "steal",
            scenario(2, 4, &format!("{private}\n{short}")),
            "steal",
            None,
        ),
        (
            "nothing",
            scenario(1, 2, &format!("{private}\n{short}")),
            "fine",
            None,
        ),
    ]
}

/// The lab's own count of spin time, percent of CPU time, by VM, and the recording.
fn run(folder: &Path, text: &str, seed: &str) -> (Vec<Value>, String) {
    let file = folder.join("planted.toml");
    fs::write(&file, text).expect("written");
    let into = folder.join("recording").to_string_lossy().into_owned();
    let file = file.to_string_lossy();
    let ended = unspin(&[
        "lab", "run", &file, "--seed", seed, "--record", &into, "--json",
    ]);
    (rows(&ended, "vm"), into)
}

#[test]
fn what_was_planted_is_found_and_its_spin_time_is_the_lab_s() {
    for (what, text, finding, cause) in planted() {
        for seed in ["1", "2"] {
            let folder = tempfile::tempdir().expect("a folder");
            let (lab, recording) = run(folder.path(), &text, seed);
            let page = folder
                .path()
                .join("page.html")
                .to_string_lossy()
                .into_owned();
            let mut verdicts = rows(
                &unspin(&["report", &recording, "--out", &page, "--json"]),
                "verdict",
            );
            verdicts.sort_by_key(|row| row["vm"].to_string());
            assert_eq!(verdicts.len(), lab.len(), "{what}");
            for (verdict, counted) in verdicts.iter().zip(&lab) {
                assert_eq!(verdict["finding"], finding, "{what} {seed}: {verdict}");
                if let Some(cause) = cause {
                    assert_eq!(verdict["cause"], cause, "{what} {seed}: {verdict}");
                }
                let spin =
                    100.0 * number(verdict, "spin_ns") as f64 / number(verdict, "cpu_ns") as f64;
                let truth = counted["spin_share_percent"].as_f64().expect("a share");
                // Waits below a window are not seen; of held locks with short waits that is most of them.
                let below = if what == "holder" { 35.0 } else { 12.0 };
                assert!(
                    spin <= truth + 2.0 && spin >= truth - below,
                    "{what} {seed}: {spin} of {truth}"
                );
            }
            assert!(fs::read_to_string(&page).expect("a page").len() <= 1 << 20);
        }
    }
}

#[test]
fn one_vm_can_be_asked_for_and_others_are_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    let steal = &planted()[4].1;
    let (_, recording) = run(folder.path(), steal, "1");
    let page = folder
        .path()
        .join("page.html")
        .to_string_lossy()
        .into_owned();
    let one = rows(
        &unspin(&[
            "report", &recording, "--out", &page, "--vm", "vm1", "--json",
        ]),
        "verdict",
    );
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["vm"], "vm1");
    unspin(&["report", &recording, "--out", &page, "--vm", "vm9"])
        .refused(2, &["there is no VM `vm9`", "near: vm"]);
    let redacted = unspin(&["report", &recording, "--out", &page, "--redact"]);
    assert!(
        redacted.out.contains("vm-1: this is steal only"),
        "{redacted:?}"
    );
    let explained = unspin(&["explain", &recording, "--vm", "vm1", "--json"]);
    assert!(rows(&explained, "vm").iter().all(|row| row["vm"] == "vm1"));
}

#[test]
fn what_cannot_be_read_or_written_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    unspin(&["report", &path("none")]).refused(1, &["none"]);
    let (_, recording) = run(folder.path(), &planted()[5].1, "1");
    let nowhere = path("no/such/folder/page.html");
    unspin(&["report", &recording, "--out", &nowhere])
        .refused(1, &["page.html: the page cannot be written"]);
    assert!(!folder.path().join("no").exists());
}
