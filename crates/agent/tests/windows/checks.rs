// SPDX-License-Identifier: MIT OR Apache-2.0
//! The module's refusals, and windows that are really in force: as the observer's pause-loop exits name them, from the VMCB.

use std::{ffi::CString, fs::File, io, os::fd::AsRawFd, path::Path, thread, time::Duration};
use unspin_testbed::check;

use unspin_agent::{
    EventMask, ObserveOptions, Observer, PleSource, WindowEpoch, WindowError, WindowOptions,
    WindowSteerer,
};
use unspin_events::What;
use unspin_policy::steering::{AppleNumbers, WindowPolicy};

use crate::vms::{loops, run_for, vm};

/// Where this boot has the module.
pub const MODULE: &str = "/modules/unspin_ple.ko";
const SYSFS: &str = "/sys/module/unspin_ple";

fn options(policy: WindowPolicy) -> WindowOptions {
    WindowOptions {
        module: PleSource::File(MODULE.into()),
        ..WindowOptions::new(policy)
    }
}

fn attach(policy: WindowPolicy) -> WindowSteerer {
    WindowSteerer::attach(&options(policy)).expect("windows can be set")
}

/// The kernel's answer to loading the module with these parameters.
fn insert(parameters: &str) -> io::Result<()> {
    let file = File::open(MODULE).expect("the boot brought it");
    let words = CString::new(parameters).expect("text");
    // SAFETY: an open descriptor, a terminated string and no flags.
    let result =
        unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), words.as_ptr(), 0) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Out again, once the kernel has let go of the hold of programs that are gone: a moment after their last descriptor is closed.
fn remove_when_free() {
    for _ in 0..100 {
        match remove() {
            Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => {
                thread::sleep(Duration::from_millis(20));
            }
            done => return done.expect("it is loaded"),
        }
    }
    panic!("somebody uses it");
}

fn remove() -> io::Result<()> {
    // SAFETY: a terminated string and a flag.
    let result = unsafe {
        libc::syscall(
            libc::SYS_delete_module,
            c"unspin_ple".as_ptr(),
            libc::O_NONBLOCK,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The parameters that the agent loads it with, as the loaded module shows them.
fn layout() -> Vec<(String, u32)> {
    let steerer = attach(WindowPolicy::Fixed(64));
    let folder = Path::new(SYSFS).join("parameters");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("it is loaded").flatten() {
        let text = std::fs::read_to_string(entry.path()).expect("readable");
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push((name, text.trim().parse().expect("a number")));
    }
    drop(steerer);
    found
}

check!(WINDOWS: "layout" => a_layout_that_is_not_this_kernels_is_refused);
/// One parameter wrong, missing or of the other vendor: EINVAL each time, and with all of them right it is taken.
fn a_layout_that_is_not_this_kernels_is_refused() {
    let right = layout();
    assert!(!Path::new(SYSFS).exists(), "who loaded it takes it out");
    let words = |layout: &[(String, u32)]| {
        let words: Vec<String> = layout
            .iter()
            .map(|(name, at)| format!("{name}={at}"))
            .collect();
        words.join(" ")
    };
    let refused = |parameters: &str| {
        let error = insert(parameters).expect_err(parameters);
        assert_eq!(error.raw_os_error(), Some(libc::EINVAL), "{parameters}");
    };
    refused("");
    let of_amd = right.iter().filter(|(_, at)| *at != 0);
    let names: Vec<String> = of_amd.map(|(name, _)| name.clone()).collect();
    assert_eq!(names.len(), 7, "{right:?}");
    for name in &names {
        for by in [4, 8] {
            let mut wrong = right.clone();
            let (_, at) = wrong
                .iter_mut()
                .find(|(other, _)| other == name)
                .expect("there");
            // The place of the VMCB's pointer is known to BTF alone: it is checked to be aligned and inside.
            *at = match name.as_str() {
                "svm_bytes" => 8,
                "svm_vmcb" | "svm_vmcb01" => *at + 4,
                _ => *at + by,
            };
            refused(&words(&wrong));
        }
    }
    let mut both = right.clone();
    for (name, at) in &mut both {
        if name == "vmx_bytes" {
            *at = 65_536;
        }
    }
    refused(&words(&both));
    insert(&words(&right)).expect("the right layout");
    // Loaded by somebody else with the same layout: taken, and left.
    drop(attach(WindowPolicy::Fixed(64)));
    assert!(Path::new(SYSFS).exists());
    remove_when_free();
}

/// The windows of pause-loop exits while `policy` is on, and its epochs. vCPUs keep what they had last.
fn seen(policy: WindowPolicy, milliseconds: u64) -> (Vec<u32>, Vec<WindowEpoch>) {
    let mut observer = Observer::attach(&ObserveOptions {
        events: EventMask::PAUSE_LOOPS,
        ..ObserveOptions::default()
    })
    .expect("it observes");
    let steerer = attach(policy);
    let mut epochs = Vec::new();
    thread::scope(|scope| {
        let vms = scope.spawn(|| run_for(milliseconds, vec![spinning()]));
        while !vms.is_finished() {
            thread::sleep(Duration::from_millis(10));
            epochs.extend(steerer.drain().expect("a ring"));
        }
    });
    let totals = steerer.totals().expect("a map");
    assert_eq!(
        (totals.refusals, totals.lost_epochs, totals.left_alone),
        (0, 0, 0)
    );
    let mut windows = Vec::new();
    observer
        .drain(&mut |event| {
            if let What::PauseExit { window, .. } = event.what {
                windows.push(window.expect("on AMD it is known"));
            }
        })
        .expect("events");
    assert_eq!(totals.exits, windows.len() as u64, "both see every exit");
    (windows, epochs)
}

/// Four vCPUs on two CPUs, one ticket lock: they spin most of the time.
fn spinning() -> unspin_scenario::Vm {
    unspin_scenario::Vm {
        user_work: loops(1_000),
        wakeup_every_iterations: 0,
        load_changes_every_ms: 0,
        ..vm(4)
    }
}

check!(WINDOWS: "fixed" => a_fixed_window_is_in_force_and_the_module_stays);
/// From each vCPU's first exit on; and nobody can take the module out meanwhile.
fn a_fixed_window_is_in_force_and_the_module_stays() {
    let held = attach(WindowPolicy::Fixed(64));
    let busy = remove().expect_err("a program holds it").raw_os_error();
    assert_eq!(busy, Some(libc::EWOULDBLOCK));
    drop(held);
    assert!(!Path::new(SYSFS).exists());
    let (windows, _) = seen(WindowPolicy::Fixed(100), 100);
    // Of each vCPU the first exit may be a pause-loop exit: that one had KVM's own window.
    let others = windows.iter().filter(|window| **window != 100).count();
    assert!(
        windows.len() > 200 && others <= 4,
        "{others} of {}",
        windows.len()
    );
    for (window, module) in [(15, None), (100, Some("/no/unspin_ple.ko"))] {
        let mut wrong = options(WindowPolicy::Fixed(window));
        if let Some(file) = module {
            wrong.module = PleSource::File(file.into());
        }
        let error = WindowSteerer::attach(&wrong).err().expect("refused");
        let says = matches!(
            error,
            WindowError::KvmMoves { .. } | WindowError::NoModule { .. }
        );
        assert!(says, "{error}");
    }
}

check!(WINDOWS: "apple" => apple_moves_a_vms_window_within_its_bounds);
fn apple_moves_a_vms_window_within_its_bounds() {
    let numbers = AppleNumbers {
        delta: 16,
        lower: 16,
        initial: 32,
        upper: 64,
    };
    let (windows, epochs) = seen(WindowPolicy::Apple(Some(numbers)), 300);
    let all = |window: u32| (16..=64).contains(&window);
    assert!(windows.iter().copied().all(all), "within the bounds");
    let of: Vec<u32> = epochs.iter().map(|epoch| epoch.window).collect();
    assert!(of.len() >= 3, "{of:?}: a round is three epochs");
    assert_eq!(of[..3], [32, 48, 16], "desired, more, less");
    for epoch in &epochs {
        assert_eq!((epoch.exits, epoch.vcpus), (1_000, 4), "{epoch:?}");
        assert!(
            epoch.cpu_ns > epoch.handling_ns && epoch.end_ns > epoch.begin_ns,
            "{epoch:?}"
        );
        // PAUSEs of this emulator take 40 to 1,000 ns; a share of the VM's time is below all of it.
        assert!((40_000..1_000_000).contains(&epoch.unit_ps), "{epoch:?}");
        assert!(
            (1..1_000_000).contains(&epoch.inefficiency_ppm),
            "{epoch:?}"
        );
        // No more CPU time than two CPUs have.
        assert!(
            epoch.cpu_ns <= 2 * (epoch.end_ns - epoch.begin_ns) + 8_000_000,
            "{epoch:?}"
        );
    }
    // The fourth epoch's window is the best of the three, or the desired one.
    if let [first, second, third, fourth, ..] = &epochs[..] {
        let least = [first, second, third];
        let least = least.iter().min_by_key(|epoch| epoch.inefficiency_ppm);
        assert_eq!(Some(fourth.window), least.map(|epoch| epoch.window));
    }
}

check!(WINDOWS: "kvms_rule" => kvms_rule_grows_and_goes_back);
fn kvms_rule_grows_and_goes_back() {
    let (windows, epochs) = seen(WindowPolicy::Kvm, 100);
    assert!(
        windows.contains(&16) && windows.contains(&32) && windows.contains(&64),
        "{windows:?}"
    );
    // 65,535 is the most: pause_filter_count_max (arch/x86/kvm/svm/svm.c, Linux 7.2).
    let is_kvms = |window: &u32| window.is_power_of_two() || *window == u32::from(u16::MAX);
    assert!(windows.iter().all(is_kvms), "{windows:?}");
    assert!(epochs.iter().all(|epoch| epoch.window == 0));
}
