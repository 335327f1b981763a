// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real VMs: boots the testbed with this test binary as PID 1 and runs every check of `kvm/`, on a clock that does not
//! depend on this machine (icount), but for those that are about a thread for each CPU.
//!
//! Needs what `make setup` puts into the cache: ignored unless UNSPIN_E2E=1, which `make test` sets.

#[path = "kvm/calibration.rs"]
mod calibration;
#[path = "kvm/emulator.rs"]
mod emulator;
#[path = "kvm/exits.rs"]
mod exits;
#[path = "kvm/failures.rs"]
mod failures;
#[path = "kvm/support.rs"]
mod support;
#[path = "kvm/tasks.rs"]
mod tasks;
#[path = "kvm/work.rs"]
mod work;

use std::time::Duration;

use libtest_mimic::{Arguments, Trial};
use unspin_testbed::{Options, Qemu, self_test::Checks};

macro_rules! checks {
    ($($module:ident::$name:ident),* $(,)?) => {
        &[$((stringify!($name), $module::$name as fn())),*]
    };
}

fn main() {
    let by_icount: &'static [(&str, fn())] = checks![
        calibration::the_calibration_guest_does_what_it_is_asked,
        calibration::the_calibration_guest_sees_the_hosts_ticks,
        exits::without_pause_exits_spinning_stays_in_the_guest,
        exits::without_halt_exits_an_idle_vcpu_stays_in_the_guest,
        exits::shootdowns_are_answered_by_all_others_and_every_token_is_used,
        exits::private_locks_make_nobody_wait,
        failures::a_guest_that_goes_wrong_is_reported_and_takes_everybody_down,
        failures::an_interrupt_ends_a_run_soon,
        failures::a_guest_that_does_not_stop_is_taken_out_and_named,
        failures::vms_that_cannot_be_created_take_down_those_that_were,
        tasks::parked_waiters_are_kicked_also_where_the_host_refuses,
        tasks::every_task_does_its_iterations_with_every_kind_of_lock,
        tasks::workloads_do_what_they_are_called,
        tasks::a_page_that_goes_away_or_lies_harms_nobody,
        work::every_vcpu_does_its_iterations_and_says_so,
        work::the_log_has_one_record_per_acquisition_in_order,
        work::several_vms_run_for_the_time_asked_and_rates_come_from_the_window,
        work::a_small_vm_takes_less_than_2_mib,
        work::work_in_nanoseconds_is_calibrated,
        work::threads_stay_on_the_cpus_of_the_scenario,
        work::a_hundred_vms_start_and_stop,
    ];
    let by_threads: &'static [(&str, fn())] =
        checks![emulator::what_another_cpu_restores_harms_no_vm];
    let checks = |checks| Checks {
        checks,
        qemu: Qemu::Unspin,
        kvm_amd: "",
    };
    checks([by_icount, by_threads].concat().leak()).enter();
    let boot = |name: &str, checks: Checks, change: fn(&mut Options)| {
        let boot = Trial::test(name, move || {
            print!("{}", checks.boot_with(change)?);
            Ok(())
        });
        boot.with_ignored_flag(!Checks::wanted())
    };
    let trials = vec![
        boot(
            "every_check_passes_in_the_testbed",
            checks(by_icount),
            |_| (),
        ),
        boot(
            "every_check_passes_with_a_thread_for_each_cpu",
            checks(by_threads),
            |options| {
                options.deterministic = false;
                options.time_limit = Duration::from_secs(60);
            },
        ),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit();
}
