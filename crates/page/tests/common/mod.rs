// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings made by hand.

use unspin_analysis::{
    Source,
    verdict::{study::study, words::verdicts},
    waits::spin_locations::Naming,
};
use unspin_events::{
    Event, GuestMode, KIND_NAMES, What,
    facts::{Facts, VmFacts},
    vm_identity::VmIdentity,
};
use unspin_page::{Moment, page, redact};
use unspin_recording::{Ended, Options, Recording};

/// What is planted: VMs of these names whose vCPUs take turns on the pCPUs and spin now and then.
pub struct Planted {
    pub names: Vec<String>,
    pub vcpus: u16,
    pub cpus: u16,
    pub events: usize,
    pub length_ns: u64,
}

impl Default for Planted {
    fn default() -> Planted {
        Planted {
            names: vec!["web-3".into(), "db-1".into()],
            vcpus: 2,
            cpus: 2,
            events: 4_000,
            length_ns: 2_000_000_000,
        }
    }
}

/// A recording on the disk.
pub struct OnDisk(tempfile::TempDir);

impl OnDisk {
    /// Its page.
    pub fn page(&self, redacted: bool) -> String {
        let mut source = Source::open(&self.0.path().join("recording")).expect("a recording");
        let study = study(&mut source, Naming::default());
        if redacted {
            redact(&mut source.facts);
        }
        let verdicts = verdicts(&source.facts, &study);
        let moment = Moment::of(&mut source, &study, &verdicts);
        page(&source, &study, &verdicts, moment.as_ref(), "0123456789ab").expect("a page")
    }
}

/// Writes it.
pub fn planted(planted: &Planted) -> OnDisk {
    let folder = tempfile::tempdir().expect("a folder");
    let mut facts = Facts {
        machine: "two CPUs made by hand".into(),
        kinds: KIND_NAMES.iter().map(|name| (*name).to_owned()).collect(),
        ..Facts::default()
    };
    facts.kvm.module = Some("kvm_amd".into());
    let window = ("pause_filter_count".to_owned(), Some("3000".to_owned()));
    facts.kvm.parameters.extend([window]);
    let named = planted.names.iter().zip(0u32..).map(|(name, vm)| VmFacts {
        vm,
        identity: VmIdentity {
            name: Some(name.clone()),
            ..VmIdentity::default()
        },
        ..VmFacts::default()
    });
    facts.vms = named.collect();
    let path = folder.path().join("recording");
    let mut recording = Recording::create(&path, facts, Options::default()).expect("room");
    let events = events(planted);
    for batch in events.chunks(4_096) {
        recording.append(batch).expect("room");
    }
    recording.finish(Ended::Finished, None).expect("room");
    OnDisk(folder)
}

/// Round after round each pCPU gets the next vCPU of all; each third round it makes a pause-loop exit.
fn events(planted: &Planted) -> Vec<Event> {
    let all = planted.names.len() as u64 * u64::from(planted.vcpus);
    if all == 0 {
        return Vec::new();
    }
    let cpus = u64::from(planted.cpus).min(all);
    let rounds = planted.events as u64 * 2 / (5 * cpus);
    let mut events = Vec::with_capacity(planted.events + 1_000);
    for round in 0..rounds {
        for cpu in 0..cpus {
            let vcpu = |round: u64| {
                let number = (round * cpus + cpu) % all;
                (
                    (number / u64::from(planted.vcpus)) as u32,
                    (number % u64::from(planted.vcpus)) as u16,
                    number as u32 + 1,
                )
            };
            let time_ns = 1 + planted.length_ns * round / rounds + cpu;
            let (vm, own, thread) = vcpu(round);
            let event = |time_ns, (vm, vcpu, thread), what| Event {
                time_ns,
                vm: Some(vm),
                vcpu: Some(vcpu),
                thread,
                cpu: cpu as u16,
                what,
            };
            if round > 0 {
                let (before_vm, before_vcpu, before_thread) = vcpu(round - 1);
                let out = What::SwitchOut {
                    next_thread: thread,
                    next_vm: Some(vm),
                    runnable: true,
                    preempt: true,
                    mode: Some(GuestMode::Kernel),
                    exit_code: Some(0x60),
                    guest_rip: Some(0x5_0000),
                };
                events.push(event(time_ns, (before_vm, before_vcpu, before_thread), out));
            }
            let came = What::SwitchIn {
                previous_thread: 7,
                previous_vm: None,
            };
            events.push(event(time_ns, (vm, own, thread), came));
            if round % 2 == 0 {
                let exit = What::PauseExit {
                    guest_rip: Some(0x2000),
                    mode: Some(GuestMode::Kernel),
                    window: Some(3_000),
                    inside_ns: 40_000,
                    other_exits: 0,
                    interrupt_exits: 0,
                };
                events.push(event(time_ns + 41_000, (vm, own, thread), exit));
            }
        }
    }
    events.sort_by_key(|event| event.time_ns);
    events
}
