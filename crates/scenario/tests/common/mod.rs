// SPDX-License-Identifier: MIT OR Apache-2.0
//! What several test files need: a valid scenario, and any scenario at all.
#![allow(dead_code)]

use proptest::prelude::*;
use unspin_abi::LockKind;
use unspin_scenario::{
    Distribution, EcsAblation, Host, HostNoise, LabEcs, LabGroups, LabSettings, LabTopology,
    LabVendor, Length, LockSharing, NoiseRates, NoiseSource, PvPageMemory, Scenario, Shape, Vm,
    WorkUnit, Workload, limits::*,
};

/// The shortest valid scenario.
pub const MINIMAL: &str =
    "duration = \"1s\"\n\n[[vm]]\nvcpus = 2\nlock = \"ticket\"\nhold = \"300 loops\"\n";

fn distribution() -> impl Strategy<Value = Distribution> {
    let unit = prop_oneof![Just(WorkUnit::Loops), Just(WorkUnit::Nanoseconds)];
    let shape = prop_oneof![
        (0..=WORK_MAX_NS).prop_map(Shape::Constant),
        (1..=WORK_MAX_NS).prop_map(|mean| Shape::Exponential { mean }),
        (0..=WORK_MAX_NS, 0..=WORK_MAX_NS).prop_map(|(a, b)| Shape::Uniform {
            low: a.min(b),
            high: a.max(b),
        }),
    ];
    (unit, shape).prop_map(|(unit, shape)| Distribution { unit, shape })
}

fn time() -> impl Strategy<Value = Distribution> {
    distribution().prop_map(|given| Distribution {
        unit: WorkUnit::Nanoseconds,
        ..given
    })
}

fn host_noise() -> impl Strategy<Value = HostNoise> {
    let source = || {
        let source = (NOISE_EVERY_MIN_NS..=NOISE_EVERY_MAX_NS, time());
        let source = source.prop_map(|(every_ns, lasts)| NoiseSource { every_ns, lasts });
        proptest::option::of(source)
    };
    let rates = (source(), source(), source(), time()).prop_map(|rates| NoiseRates {
        interrupts: rates.0,
        bound_threads: rates.1,
        unbound_threads: rates.2,
        vcpu_start: rates.3,
    });
    prop_oneof![
        Just(HostNoise::Off),
        Just(HostNoise::Idle),
        Just(HostNoise::Busy),
        rates.prop_map(|rates| HostNoise::Rates(Box::new(rates))),
    ]
}

const WORKLOADS: [Workload; 5] = [
    Workload::Iterations,
    Workload::ReadersWriters,
    Workload::Interrupts,
    Workload::PingPong,
    Workload::ReadAFile,
];

fn vm() -> impl Strategy<Value = Vm> {
    let locks = prop_oneof![
        Just(LockSharing::Private),
        (1..=LOCKS_MAX).prop_map(LockSharing::Shared)
    ];
    (
        (1u32..=100, 1..=VCPUS_MAX, 0..LockKind::all().count(), locks),
        (distribution(), distribution(), distribution()),
        (
            any::<u32>(),
            any::<u32>(),
            0..=TICK_HZ_MAX,
            1..=PAUSE_EVERY_MAX,
        ),
        (any::<[bool; 3]>(), 0u32..=2_560, any::<u32>(), any::<u32>()),
    )
        .prop_map(|(size, work, every, rest)| Vm {
            count: size.0,
            vcpus: size.1,
            lock: LockKind::all().nth(size.2).expect("below the count"),
            locks: size.3,
            user_work: work.0,
            kernel_work: work.1,
            hold: work.2,
            shootdown_every_iterations: if size.1 > 1 { every.0 } else { 0 },
            wakeup_every_iterations: if size.1 > 1 { every.1 } else { 0 },
            load_changes_every_ms: match WORKLOADS[rest.2 as usize % 5] {
                Workload::Iterations => every.2,
                _ => 0,
            },
            tick_hz: every.2,
            pause_every_spins: every.3,
            pause_exits: rest.0[0],
            halt_exits: rest.0[1],
            log_records: rest.1,
            log_minimum_spins: rest.2,
            pv_page: rest.0[2],
            pv_page_memory: [PvPageMemory::Guest, PvPageMemory::Map]
                [(rest.0[2] && rest.1 % 2 == 1) as usize],
            help_after_spins: rest.3,
            tasks_per_vcpu: match size.1 > 1 && every.1 > 0 {
                true => 1,
                false => 1 + rest.1 % (64 / size.1).min(8),
            },
            workload: WORKLOADS[rest.2 as usize % 5],
            reader_percent: rest.3 % 101,
            ecs_ablation: [EcsAblation::None, EcsAblation::NoSave][rest.3 as usize % 2],
        })
}

fn host() -> impl Strategy<Value = Host> {
    (
        proptest::option::of(1..=CPUS_MAX),
        proptest::option::of(1..=PLE_MAX),
        proptest::option::of(1..=PLE_MAX),
        any::<bool>(),
    )
        .prop_map(|(cpus, ple_window, ple_gap, ple_window_fixed)| Host {
            cpus,
            ple_window,
            ple_gap,
            ple_window_fixed,
        })
}

fn lab(groups: usize) -> impl Strategy<Value = LabSettings> {
    let word = || proptest::option::of("[A-Za-z0-9._+=,/-]{1,128}");
    let topology = (1u32..=8, 1u32..=8, 1u32..=8, 1u32..=8);
    let pins = proptest::collection::btree_set(0..CPUS_MAX, 1..20);
    let each = move |present| if present { groups } else { 0 };
    let lists = any::<[bool; 2]>().prop_flat_map(move |present| {
        (
            proptest::collection::vec(1..=WEIGHT_MAX, each(present[0])),
            proptest::collection::vec(pins.clone(), each(present[1])),
        )
    });
    (
        (word(), word(), word(), word(), word()),
        proptest::option::of(topology),
        any::<[bool; 8]>(),
        (
            0..=HALT_POLL_MAX_NS,
            0..=CPU_HOGS_MAX,
            0..=FACTS_AGE_MAX_NS,
            0..=PPM_MAX,
            proptest::option::of(1..=FACTS_AGE_MAX_NS),
            (
                1..=GUEST_TASKS_MAX,
                any::<u32>(),
                proptest::option::of(1..=FACTS_AGE_MAX_NS),
            ),
            prop::sample::select(&[LabEcs::Off, LabEcs::Paper, LabEcs::GiveBack][..]),
            host_noise(),
        ),
        lists,
        proptest::collection::btree_map("[a-z0-9_]{1,30}", 0..=COST_MAX, 0..5),
    )
        .prop_map(
            |(names, topology, flags, numbers, lists, costs)| LabSettings {
                scheduler: names.0,
                policy: names.1,
                topology: topology.map(|(sockets, caches, cores, threads)| LabTopology {
                    sockets,
                    caches,
                    cores,
                    threads,
                }),
                vendor: if flags[0] {
                    LabVendor::Amd
                } else {
                    LabVendor::Intel
                },
                window_control: names.2,
                spin_count: names.4,
                candidates: names.3,
                ignore_reschedules: flags[1],
                ecs: numbers.6,
                facts_age_ns: numbers.2,
                lost_ppm: numbers.3,
                tick_only: flags[3],
                poll_period_ns: numbers.4,
                halt_poll_ns: numbers.0,
                guest_tasks: numbers.5.0,
                page_fault_every_iterations: numbers.5.1,
                page_fetch_ns: numbers.5.2,
                async_page_faults: flags[4],
                pv_tlb_flush: flags[5],
                pv_sched_yield: flags[6],
                pv_send_ipi: flags[7],
                cpu_hogs: numbers.1,
                host_noise: numbers.7,
                skew_tick: flags[1] != flags[2],
                groups: if flags[2] {
                    LabGroups::Vm
                } else {
                    LabGroups::Vcpu
                },
                weights: lists.0,
                pins: lists
                    .1
                    .into_iter()
                    .map(|cpus| cpus.into_iter().collect())
                    .collect(),
                costs,
            },
        )
}

/// Any scenario that can be.
pub fn scenario() -> impl Strategy<Value = Scenario> {
    let length = prop_oneof![
        (1..=DURATION_MAX_NS, any::<u64>())
            .prop_map(|(ns, warm_up)| (Length::DurationNs(ns), warm_up % ns)),
        (1..=u32::MAX).prop_map(|iterations| (Length::Iterations(iterations), 0)),
    ];
    (
        "[A-Za-z0-9._-]{1,64}",
        0..=SEED_MAX,
        length,
        host(),
        proptest::collection::vec(vm(), 1..6)
            .prop_flat_map(|vms| (proptest::option::of(lab(vms.len())), Just(vms))),
    )
        .prop_map(
            |(name, seed, (length, warm_up_ns), host, (lab, vms))| Scenario {
                name,
                seed,
                length,
                warm_up_ns,
                host,
                lab,
                vms,
            },
        )
}

/// The key of `MINIMAL` that most tests replace.
pub const HOLD: &str = "hold = \"300 loops\"";

/// `MINIMAL` with one piece replaced, and what must come of it.
pub fn refused(from: &str, to: &str, place: (usize, usize), message: &str, allowed: &str) {
    assert!(MINIMAL.contains(from), "{from}");
    let text = MINIMAL.replacen(from, to, 1);
    let error = Scenario::parse(&text, "s.toml").expect_err(&text);
    let plain = error.plain();
    assert!(plain.contains(message), "{plain}\nlacks {message}");
    assert!(plain.contains(allowed), "{plain}\nlacks {allowed}");
    assert_eq!((error.line(), error.column()), place, "{plain}");
    assert!(plain.starts_with(&format!("s.toml:{}:{}: ", place.0, place.1)));
    assert!(!plain.contains('\n'));
}
