// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin lab from`: a recording becomes a scenario.

use std::{fs, path::Path};

use crate::common::{
    lab::{number, rows},
    unspin,
};
use unspin_events::{
    Event, GuestMode, What,
    facts::{Facts, KvmFacts},
};
use unspin_recording::{Ended, Options, Recording};

/// Two vCPUs that take slices of a millisecond on one pCPU: 100 us of work, then waits of one window of 10 us, again and again.
fn recording(folder: &Path) {
    let mut events = Vec::new();
    let mut time_ns = 1_000_000;
    for slice in 0..100u64 {
        let vcpu = (slice % 2) as u16;
        let thread = 100 + slice as u32 % 2;
        let at = |time_ns, what| Event {
            time_ns,
            vm: Some(0),
            vcpu: Some(vcpu),
            thread,
            cpu: 3,
            what,
        };
        let previous_thread = 101 - slice as u32 % 2;
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
    recording.finish(Ended::Finished, None).expect("room");
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
        .finish(Ended::Finished, None)
        .expect("room");
    unspin(&["lab", "from", &empty]).refused(1, &["no vCPU appears"]);
}
