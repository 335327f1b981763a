// SPDX-License-Identifier: MIT OR Apache-2.0
//! The real rivals on a real kernel: boots the testbed with this test binary as PID 1. Needs what `make setup` and `make rivals`
//! put into the cache: ignored unless UNSPIN_E2E=1; where the rivals are not built it says so and tests nothing.

use std::{
    fs,
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Trial};
use unspin_experiment::{
    Error, Session,
    rival::{Attached, Place, Rival, inputs},
};
use unspin_testbed::{
    Options, Qemu, cache_from_environment, check,
    self_test::{self, Checks},
};

fn said(file: &str) -> String {
    let text = fs::read_to_string(format!("/sys/kernel/sched_ext/{file}"));
    text.unwrap_or_default().trim().to_owned()
}

fn start(rival: Rival) -> Attached {
    let places = Place::all(&[rival]).expect("it was brought");
    Attached::start(&places[0], &Session::quiet())
        .unwrap_or_else(|error| panic!("{rival}: {error}"))
}

/// Processes whose name is that of a rival.
fn programs() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("procfs").flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|id: &u32| {
            let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            Rival::ALL.iter().any(|rival| rival.name() == name.trim())
        })
        .collect()
}

/// A thread's nice value (proc_pid_stat(5), field 19).
fn nice(id: &str) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it lives");
    let fields = stat.rsplit(") ").next().expect("behind the name");
    let nice = fields.split(' ').nth(16).expect("many fields");
    nice.parse().expect("a number")
}

check!(RIVALS: each_is_attached_seen_and_gone);
/// Under its own name, once, and the kernel's own scheduler is back afterwards, with no process left.
fn each_is_attached_seen_and_gone() {
    assert_eq!(said("state"), "disabled");
    for rival in Rival::ALL {
        let before: u64 = said("enable_seq").parse().expect("a number");
        let began = Instant::now();
        let mut attached = start(rival);
        let short = rival.name().trim_start_matches("scx_");
        println!(
            "  {rival}: `{}` after {} ms",
            said("root/ops"),
            began.elapsed().as_millis()
        );
        assert_eq!(said("state"), "enabled");
        assert!(said("root/ops").starts_with(short), "{}", said("root/ops"));
        assert_eq!(said("enable_seq"), (before + 1).to_string());
        // It loads before all others, and schedules beside them.
        let [id] = programs()[..] else {
            panic!("{:?}", programs())
        };
        assert_eq!(nice(&id.to_string()), 0);
        std::thread::sleep(Duration::from_millis(500));
        attached.still_attached().expect("it goes on");
        attached.end().expect("it goes");
        assert_eq!(
            (said("state").as_str(), said("root/ops").as_str()),
            ("disabled", "")
        );
        assert_eq!(programs(), Vec::<u32>::new());
    }
}

check!(RIVALS: one_that_is_killed_is_missed_and_the_kernel_schedules_again);
/// As when the kernel ejects it: what is measured then is not the rival.
fn one_that_is_killed_is_missed_and_the_kernel_schedules_again() {
    let mut attached = start(Rival::Bpfland);
    let [id] = programs()[..] else {
        panic!("{:?}", programs())
    };
    // SAFETY: takes plain integers; the child of `attached`, which waits for it later.
    assert_eq!(unsafe { libc::kill(id as i32, libc::SIGKILL) }, 0);
    let until = Instant::now() + Duration::from_secs(10);
    while said("state") != "disabled" {
        assert!(Instant::now() < until, "{}", said("state"));
        std::thread::sleep(Duration::from_millis(10));
    }
    let error = attached.still_attached().expect_err("it is gone");
    println!("  {error}");
    assert!(
        matches!(error, Error::Failed(_)) && error.to_string().contains("while it was measured")
    );
    // Another one has room.
    drop(attached);
    start(Rival::Lavd).end().expect("it goes");
}

fn main() {
    self_test::enter(&["RIVALS"], &[]);
    let boot = Trial::test("rivals_come_and_go", || {
        let cache = cache_from_environment().map_err(|error| error.to_string())?;
        let brought = match inputs(&Rival::ALL, &Options::new(cache)) {
            Ok(brought) => brought,
            Err(Error::Usage(missing)) => {
                self_test::not_tested(&missing.to_string());
                return Ok(());
            }
            Err(error) => return Err(error.to_string().into()),
        };
        let checks = Checks {
            boot: "RIVALS",
            only: None,
            qemu: Qemu::Stock,
            kvm_amd: "",
        };
        print!(
            "{}",
            checks.boot_with(|options| options.inputs.extend(brought))?
        );
        Ok(())
    });
    let boot = boot.with_ignored_flag(!Checks::wanted());
    libtest_mimic::run(&Arguments::from_args(), vec![boot]).exit();
}
