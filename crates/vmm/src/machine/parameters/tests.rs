// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;
use unspin_abi::LockKind;
use unspin_scenario::{Host, PvPageMemory, Shape, Workload};

fn scenario(length: Length, vm: Vm) -> Scenario {
    Scenario {
        name: "test".into(),
        seed: 7,
        length,
        warm_up_ns: 0,
        host: Host {
            cpus: None,
            ple_window: None,
            ple_gap: None,
            ple_window_fixed: false,
        },
        lab: None,
        vms: vec![vm],
    }
}

/// For tests of other modules.
pub fn any_scenario() -> Scenario {
    scenario(Length::Iterations(1), vm())
}

fn distribution(unit: WorkUnit, shape: Shape) -> Distribution {
    Distribution { unit, shape }
}

fn vm() -> Vm {
    Vm {
        count: 2,
        vcpus: 4,
        lock: LockKind::from_name("ticket").expect("there is one"),
        locks: LockSharing::Shared(3),
        user_work: distribution(WorkUnit::Loops, Shape::Constant(3000)),
        kernel_work: distribution(WorkUnit::Loops, Shape::Uniform { low: 0, high: 512 }),
        hold: distribution(WorkUnit::Nanoseconds, Shape::Constant(500)),
        shootdown_every_iterations: 100,
        wakeup_every_iterations: 50,
        load_changes_every_ms: 0,
        tick_hz: 250,
        pause_every_spins: 16,
        pause_exits: true,
        halt_exits: true,
        log_records: 1000,
        log_minimum_spins: 8,
        pv_page: false,
        pv_page_memory: PvPageMemory::Guest,
        help_after_spins: 400,
        tasks_per_vcpu: 1,
        workload: Workload::Iterations,
        reader_percent: 0,
        ecs_ablation: EcsAblation::None,
    }
}

const SURROUNDINGS: Surroundings = Surroundings {
    apic_timer_hz: 1_000_000_000,
    work_rate: Some(WorkRate {
        loops_per_ms: 2_000_000,
    }),
    tsc_hz: Some(2_000_000_000),
    fault: Fault::None,
};

#[test]
fn the_block_says_what_the_scenario_says() {
    let scenario = scenario(Length::DurationNs(1_000_000_000), vm());
    let block = build(&scenario, &scenario.vms[0], 0, SURROUNDINGS).expect("it is acceptable");
    assert_eq!(
        (block.magic, block.version),
        (abi::UNSPIN_GUEST_MAGIC, abi::UNSPIN_GUEST_VERSION)
    );
    assert_eq!(
        (block.vcpus, block.lock_kind, block.locks),
        (4, abi::UNSPIN_LOCK_ticket, 3)
    );
    assert_eq!(
        (block.iterations, block.stop, block.fault_injection),
        (0, 0, 0)
    );
    assert_eq!(
        (
            block.shootdown_every_iterations,
            block.wakeup_every_iterations
        ),
        (100, 50)
    );
    assert_eq!((block.pause_every_spins, block.tick_hz), (16, 250));
    assert_eq!((block.log_records, block.log_minimum_spins), (1000, 8));
    assert_eq!((block.pv_page, block.help_after_spins), (0, 400));
    assert_eq!(block.apic_timer_hz, 1_000_000_000);
    assert_eq!(block.user_work.quantile_loops, [3000; 256]);
    let uniform = block.kernel_work.quantile_loops;
    assert!(
        uniform.is_sorted() && uniform[0] <= 1 && uniform[255] >= 510,
        "{uniform:?}"
    );
    // 500 ns at 2 loops a nanosecond.
    assert_eq!(block.hold.quantile_loops, [1000; 256]);
}

#[test]
fn private_locks_and_iterations_have_their_own_encoding() {
    let mut private = vm();
    private.locks = LockSharing::Private;
    let scenario = scenario(Length::Iterations(12), private);
    let surroundings = Surroundings {
        fault: Fault::Triple,
        ..SURROUNDINGS
    };
    let block = build(&scenario, &scenario.vms[0], 0, surroundings).expect("it is acceptable");
    assert_eq!((block.locks, block.iterations), (0, 12));
    assert_eq!(block.fault_injection, abi::UNSPIN_FAULT_TRIPLE);
}

#[test]
fn every_vm_has_a_seed_of_its_own_and_the_same_one_each_time() {
    let length = Length::Iterations(1);
    let seed_of = |seed, number| {
        Scenario {
            seed,
            ..scenario(length, vm())
        }
        .vm_seed(number)
    };
    let seeds: std::collections::BTreeSet<u64> = (0..1000).map(|vm| seed_of(7, vm)).collect();
    assert_eq!(seeds.len(), 1000);
    assert_eq!(seed_of(7, 3), seed_of(7, 3));
    assert_ne!(seed_of(7, 3), seed_of(8, 3));
    // The published first output of splitmix64 from state 0.
    assert_eq!(seed_of(0, 0), 0xe220_a839_7b1d_cdaf);
}

#[test]
fn a_log_that_does_not_fit_is_refused_with_what_would() {
    let mut large = vm();
    large.log_records = 40_960;
    assert_eq!(checked_log_records(&large).expect("just fits"), 40_960);
    large.log_records += 1;
    let error = checked_log_records(&large)
        .expect_err("too many")
        .to_string();
    assert!(error.contains("40960 per vCPU fit"), "{error}");
}

#[test]
fn work_that_does_not_fit_in_32_bits_is_refused() {
    let mut long = vm();
    long.hold = distribution(WorkUnit::Nanoseconds, Shape::Constant(4_000_000_000));
    let scenario = scenario(Length::Iterations(1), long);
    let error = build(&scenario, &scenario.vms[0], 0, SURROUNDINGS).expect_err("too long");
    assert!(
        error.to_string().starts_with("hold: 4000000000 ns"),
        "{error}"
    );
}

#[test]
fn calibration_is_asked_for_only_when_something_is_in_nanoseconds() {
    let mut loops = vm();
    assert!(needs_work_rate(&scenario(
        Length::Iterations(1),
        loops.clone()
    )));
    loops.hold = distribution(WorkUnit::Loops, Shape::Constant(300));
    assert!(!needs_work_rate(&scenario(Length::Iterations(1), loops)));
}
