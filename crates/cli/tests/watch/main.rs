// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin serve` and `top` of a recording, without root and without KVM: the metrics as a reader of Prometheus' sees them, the
//! socket, and the end.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/serve.rs"]
mod serve;

use std::{
    fs,
    io::Write,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use common::{as_nobody, cache, ended, folder, unspin};
use serde_json::Value;
use serve::{Serve, recording};

/// What Prometheus' own parsers find, one line a sample: name, labels, value.
fn parsed(text: &str, format: &str) -> Vec<Value> {
    let python = cache().join("python/bin/python");
    assert!(
        python.exists(),
        "{} is missing: `make setup` makes it",
        python.display()
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch/parse_metrics.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(format)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(text.as_bytes()).expect("read");
    drop(input);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{format}: not valid\n{text}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Replaces the name of a VM in a recording's facts.
fn rename(recording: &Path, name: &str) {
    let path = recording.join("recording.json");
    let mut manifest: Value =
        serde_json::from_slice(&fs::read(&path).expect("there")).expect("JSON");
    let vms = manifest.get_mut("vms").expect("VMs");
    vms[0]["name"] = name.into();
    fs::write(&path, serde_json::to_vec(&manifest).expect("JSON")).expect("written");
}

#[test]
fn metrics_of_a_recording_are_valid_whatever_vms_are_called() {
    let home = folder("");
    let recording = recording(home.path());
    let hostile = "web\" } 1\\ {x=\"";
    rename(&recording, hostile);
    let serve = Serve::start(&recording, &home.path().join("w.sock"));
    for (accept, format) in [
        ("application/openmetrics-text", "openmetrics"),
        ("*/*", "text"),
    ] {
        let answer = serve.get("/metrics", accept);
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let samples = parsed(body, format);
        let spin: Vec<&Value> = samples
            .iter()
            .filter(|sample| sample["name"] == "unspin_vm_spin_seconds_total")
            .collect();
        let names: Vec<&str> = spin
            .iter()
            .filter_map(|sample| sample["labels"]["vm"].as_str())
            .collect();
        assert_eq!(names, [hostile, "vm1"], "{spin:?}");
        assert!(
            spin.iter()
                .all(|sample| sample["value"].as_f64() > Some(0.0))
        );
        // Events do not say how slices ended.
        let lost = "unspin_vm_slices_lost_total";
        assert!(samples.iter().all(|sample| sample["name"] != lost));
    }
    assert!(serve.get("/health", "*/*").ends_with("\r\n\r\nok\n"));
    assert_eq!(serve.terminate(), Some(0));
    assert!(!home.path().join("w.sock").exists());
}

#[test]
fn top_asks_a_serve_without_rights_of_its_own() {
    let home = folder("");
    let socket = home.path().join("w.sock");
    let serve = Serve::start(&recording(home.path()), &socket);
    let socket = socket.to_string_lossy().into_owned();
    let ended = as_nobody(&home, &["top", "--once", "--json", "--socket", &socket]);
    assert_eq!(ended.status, 0, "{ended:#?}");
    let object: Value = serde_json::from_str(&ended.out).expect("JSON");
    let rows = object["rows"].as_array().expect("rows");
    let of = |table: &str| rows.iter().filter(|row| row["table"] == table).count();
    assert_eq!((of("vm"), of("vcpu")), (2, 8), "{rows:#?}");
    assert!(of("blame") > 0, "{rows:#?}");
    for row in rows.iter().filter(|row| row["table"] == "vm") {
        assert!(row["spin_percent"].as_f64() > Some(10.0), "{row}");
        assert_eq!(row["slices_lost_per_second"], Value::Null, "{row}");
    }
    let table = as_nobody(&home, &["top", "--once", "--socket", &socket]);
    assert!(table.out.contains("VMs by the CPU time"), "{table:#?}");
    assert_eq!(serve.terminate(), Some(0));
    as_nobody(&home, &["top", "--once", "--socket", &socket])
        .refused(1, &["start `unspin serve`, or run this as root", "w.sock"]);
}

/// What systemd is told (sd_notify(3)): when it is ready, that it is alive, that it ends.
#[test]
fn a_service_manager_is_told() {
    let home = folder("");
    let recording = recording(home.path());
    let notify = home.path().join("notify.sock");
    let socket = UnixDatagram::bind(&notify).expect("a socket");
    let limit = Some(Duration::from_secs(60));
    socket.set_read_timeout(limit).expect("a limit");
    let mut command = Command::new(common::UNSPIN);
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--socket", "-"])
        .args(["--duration", "2s", "--recording"])
        .arg(&recording)
        .env("NOTIFY_SOCKET", &notify)
        .env("WATCHDOG_USEC", "400000")
        .env_remove("WATCHDOG_PID");
    // Read meanwhile, as a manager does: a socket that is full keeps whoever writes waiting.
    let reader = thread::spawn(move || {
        let mut told = Vec::new();
        let mut bytes = [0; 1024];
        while told
            .last()
            .is_none_or(|text: &String| !text.contains("STOPPING=1"))
        {
            let length = socket.recv(&mut bytes).expect("a message");
            told.push(String::from_utf8_lossy(&bytes[..length]).into_owned());
        }
        told
    });
    let ended = ended(&mut command);
    assert_eq!(ended.status, 0, "{ended:#?}");
    let told = reader.join().expect("it was told all");
    assert!(
        told[0].contains("READY=1") && told[0].contains("STATUS=metrics at http://127.0.0.1:"),
        "{told:?}"
    );
    // Every 200 ms for 2 s; a busy machine may leave some out, and none may come twice.
    let alive = told.iter().filter(|text| text.contains("WATCHDOG=1"));
    assert!((3..=11).contains(&alive.count()), "{told:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    unspin(&["top"]).refused(2, &["no terminal", "--once"]);
    unspin(&["top", "--json"]).refused(2, &["--json is for --once"]);
    unspin(&["top", "--once", "--interval", "0s"]).refused(2, &["0 lets nothing run"]);
    unspin(&["serve", "--recording", "/nonexistent"]).refused(1, &["/nonexistent"]);
    unspin(&["serve", "--listen", "nonsense"]).refused(2, &["--listen", "nonsense"]);
    let home = folder("");
    let recording = recording(home.path());
    let recording = recording.to_string_lossy();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    unspin(&[
        "serve",
        "--recording",
        &recording,
        "--socket",
        "-",
        "--listen",
        &address,
    ])
    .refused(1, &[&address, "nobody can listen there"]);
    fs::write(home.path().join("file"), "").expect("written");
    let file = home.path().join("file").to_string_lossy().into_owned();
    unspin(&[
        "serve",
        "--recording",
        &recording,
        "--socket",
        &file,
        "--listen",
        "127.0.0.1:0",
    ])
    .refused(1, &[&file, "something that is no socket"]);
}
