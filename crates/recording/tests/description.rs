// SPDX-License-Identifier: MIT OR Apache-2.0
//! `recording.json` as it stands on the disk: a change of it is a change of the format.

mod common;

use std::{collections::BTreeMap, fs};

use common::switch;
use unspin_events::{
    Event, What,
    facts::{BeginTime, Facts, IpiSight, KvmFacts, ScenarioFacts, TaskFacts, VcpuFacts, VmFacts},
    vm_identity::{VmIdentity, VmKind},
};
use unspin_recording::{Ended, Options, Recorded, Recording};

fn facts() -> Facts {
    let parameters = [
        ("avic", Some("N")),
        ("pause_filter_count", Some("3000")),
        ("pause_filter_thresh", None),
    ];
    Facts {
        commit: "0123456789ab".into(),
        machine: "testbed: QEMU, 2 CPUs, Linux 7.2".into(),
        begin: BeginTime {
            monotonic_ns: 5_000_000_000,
            unix_ns: 1_795_000_000_000_000_000,
        },
        end_monotonic_ns: Some(6_000_000_000),
        kvm: KvmFacts {
            module: Some("kvm_amd".into()),
            parameters: parameters
                .map(|(name, value)| (name.into(), value.map(Into::into)))
                .into(),
        },
        ipi: IpiSight {
            blind: Some("kvm_amd avic=Y".into()),
        },
        kinds: vec!["switch_in".into(), "pause_exit".into()],
        scenario: Some(ScenarioFacts {
            name: "ground-truth".into(),
            sha256: "ab".repeat(32),
            seed: 1,
        }),
        vms: vec![VmFacts {
            vm: 0,
            process: Some(100),
            process_start_ticks: Some(4_321),
            comm: Some("qemu-system-x86".into()),
            identity: VmIdentity {
                kind: VmKind::Kubevirt,
                name: Some("debian".into()),
                uuid: Some("26fbbddd-86b1-4977-8715-564ff5bcff56".into()),
                namespace: Some("default".into()),
                ..VmIdentity::default()
            },
            guest_features: None,
            vcpus: vec![VcpuFacts {
                vcpu: 0,
                thread: 101,
                first_ns: 5_000_000_001,
                last_ns: 5_999_999_999,
            }],
        }],
        tasks: vec![TaskFacts {
            thread: 77,
            process: Some(70),
            comm: "kworker/0:1".into(),
            first_seen_ns: 5_000_000_002,
            start_ticks: Some(12),
        }],
        left_out: 0,
        missed_runs: Some(0),
        unobserved_exits: None,
        lost: BTreeMap::new(),
    }
}

#[test]
fn every_field_stands_in_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recording =
        Recording::create(folder.path(), facts(), Options::default()).expect("empty");
    let lost = Event {
        what: What::Lost {
            events: 3,
            lost_kind: 4,
        },
        ..switch(5_000_000_003, 0)
    };
    recording.append(&[lost]).expect("room");
    recording.finish(Ended::Interrupted, None).expect("room");
    let text = fs::read_to_string(folder.path().join("recording.json")).expect("there");
    assert_eq!(text, EXPECTED);
    let recorded = Recorded::open(folder.path()).expect("a recording");
    let mut expected = facts();
    expected.lost.insert("pause_exit".into(), 3);
    assert_eq!(*recorded.facts(), expected);
    assert_eq!(recorded.manifest().events, 1);
    assert_eq!(
        recorded.problems(),
        ["events were lost while recording: pause_exit 3"]
    );
}

const EXPECTED: &str = r#"{
  "schema_version": 2,
  "events_version": 2,
  "ended": "interrupted",
  "ended_because": null,
  "events": 1,
  "unwritten_events": 0,
  "commit": "0123456789ab",
  "machine": "testbed: QEMU, 2 CPUs, Linux 7.2",
  "begin": {
    "monotonic_ns": 5000000000,
    "unix_ns": 1795000000000000000
  },
  "end_monotonic_ns": 6000000000,
  "kvm": {
    "module": "kvm_amd",
    "parameters": {
      "avic": "N",
      "pause_filter_count": "3000",
      "pause_filter_thresh": null
    }
  },
  "ipi": {
    "blind": "kvm_amd avic=Y"
  },
  "kinds": [
    "switch_in",
    "pause_exit"
  ],
  "scenario": {
    "name": "ground-truth",
    "sha256": "abababababababababababababababababababababababababababababababab",
    "seed": 1
  },
  "vms": [
    {
      "vm": 0,
      "process": 100,
      "process_start_ticks": 4321,
      "comm": "qemu-system-x86",
      "kind": "kubevirt",
      "name": "debian",
      "uuid": "26fbbddd-86b1-4977-8715-564ff5bcff56",
      "id": null,
      "namespace": "default",
      "pod_uid": null,
      "name_problem": null,
      "guest_features": null,
      "vcpus": [
        {
          "vcpu": 0,
          "thread": 101,
          "first_ns": 5000000001,
          "last_ns": 5999999999
        }
      ]
    }
  ],
  "tasks": [
    {
      "thread": 77,
      "process": 70,
      "comm": "kworker/0:1",
      "first_seen_ns": 5000000002,
      "start_ticks": 12
    }
  ],
  "left_out": 0,
  "missed_runs": 0,
  "unobserved_exits": null,
  "lost": {
    "pause_exit": 3
  }
}
"#;
