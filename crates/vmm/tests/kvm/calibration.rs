// SPDX-License-Identifier: MIT OR Apache-2.0
//! The guest that `unspin lab calibrate` times.
use unspin_scenario::Host;
use unspin_testbed::check;
use unspin_vmm::calibration::{CalibrationVm, Program};

const HOST: Host = Host {
    cpus: None,
    ple_window: None,
    ple_gap: None,
    ple_window_fixed: false,
};

check!(KVM: the_calibration_guest_does_what_it_is_asked);
pub fn the_calibration_guest_does_what_it_is_asked() {
    let mut vm = CalibrationVm::create(&HOST, 2, 1, true).expect("it can be created");
    // The least of three: a tick of the host within a run of 20 exits is half of it.
    let mut cycles = |program, count| {
        let mut once = || vm.time(program, count).expect("it runs").cycles;
        once().min(once()).min(once())
    };
    for (program, few, many) in [
        (Program::Work, 20_000, 80_000),
        (Program::Add, 10_000, 40_000),
        (Program::Cpuid, 20, 80),
        (Program::Hypercall, 20, 80),
        (Program::Wbinvd, 20, 80),
    ] {
        let (few, many) = (cycles(program, few), cycles(program, many));
        assert!(
            many > 3 * few && many < 5 * few,
            "{program:?}: {few} and {many} cycles"
        );
    }
    let [cpuid, send, interrupt, halt] = [
        Program::Cpuid,
        Program::Send,
        Program::Interrupt,
        Program::Halt,
    ]
    .map(|program| cycles(program, 50));
    assert!(
        cpuid < send && send < interrupt && interrupt < halt,
        "{cpuid} {send} {interrupt} {halt}"
    );
    assert!(cycles(Program::Nothing, 20_000) < cycles(Program::Add, 20_000));
    // KVM moves the window: nobody knows how many exits there were.
    assert_eq!(vm.pauses_per_exit(), None);
    vm.load_and_put(5).expect("each comes back at once");
    let both = vm
        .together(2, Program::Work, 10_000, || (), || 7)
        .expect("they run");
    assert!(
        both.len() == 2
            && both
                .iter()
                .all(|(took, seven)| took.cycles > 0 && *seven == 7)
    );
}

check!(KVM: the_calibration_guest_sees_the_hosts_ticks);
pub fn the_calibration_guest_sees_the_hosts_ticks() {
    let mut vm = CalibrationVm::create(&HOST, 1, 65_536, false).expect("it can be created");
    let took = vm.time(Program::Gaps, 1_000_000).expect("it runs");
    assert!(
        took.gaps > 0 && took.cycles >= 4_000 * took.gaps,
        "{took:?}"
    );
}
