// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is looked for: the running kernel's abilities, the testbed in the cache, the compiler.

use std::{fs, io, path::Path, process::Command};

use unspin_agent::HostCapabilities;
use unspin_testbed::Qemu;
use unspin_vmm::PauseLoop;

use super::Check;

const TESTBED: &str = "`unspin testbed run -- ...` has it on any machine";

/// Every check, in the order in which one depends on the other.
pub fn checks() -> Vec<Check> {
    let host = unspin_agent::capabilities();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut checks = vec![
        root(&host),
        device(
            fs::File::options()
                .read(true)
                .write(true)
                .open("/dev/kvm")
                .err(),
        ),
        hardware(&host, &cpuinfo, Path::new("/sys/module/kvm_pvm").exists()),
        pause_loop(PauseLoop::in_force(Path::new("/sys/module"))),
        btf(&host),
        bpf(&host),
        observe(&host),
        sched_ext(&host),
        sched_ext_functions(&host),
        thread_slices(&host),
    ];
    checks.extend(emulators());
    checks.push(clang());
    checks
}

fn root(host: &HostCapabilities) -> Check {
    if host.root {
        return Check::ok("root", "effective user is root");
    }
    Check::limited(
        "root",
        "effective user is not root",
        "VMs need access to /dev/kvm, BPF programs need root: run with sudo; the testbed needs neither",
    )
}

fn device(refusal: Option<io::Error>) -> Check {
    const NAME: &str = "/dev/kvm";
    match refusal {
        None => Check::ok(NAME, "can be opened"),
        Some(error) if error.kind() == io::ErrorKind::NotFound => Check::missing(
            NAME,
            "is not there",
            format!(
                "load kvm_amd or kvm_intel (`modprobe kvm_amd`); without virtualisation extensions: {TESTBED}"
            ),
        ),
        Some(error) => Check::missing(
            NAME,
            error.to_string(),
            "run as root, or join the group that owns /dev/kvm (often `kvm`)",
        ),
    }
}

/// Which KVM: with SVM or VMX, or one that emulates by page tables alone.
fn hardware(host: &HostCapabilities, cpuinfo: &str, page_tables: bool) -> Check {
    const NAME: &str = "KVM hardware";
    let flags = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("flags"))
        .unwrap_or("");
    let has = |flag: &str| flags.split_whitespace().any(|word| word == flag);
    let extension = match (has("svm"), has("vmx")) {
        (true, _) => "AMD SVM",
        (_, true) => "Intel VMX",
        _ => "no virtualisation extensions",
    };
    match host.kvm_hardware {
        Some("amd") => Check::ok(NAME, format!("kvm_amd, {extension}")),
        Some(_) => Check::limited(
            NAME,
            format!("kvm_intel, {extension}"),
            "unspin is written for Intel as well, but has only been tested on AMD",
        ),
        None if page_tables => Check::limited(
            NAME,
            format!("kvm_pvm, {extension}: KVM emulated by page tables"),
            format!(
                "VMs run, but without pause-loop exits and with other costs: measure nothing here; {TESTBED}"
            ),
        ),
        None if host.kvm => Check::limited(
            NAME,
            format!("neither kvm_amd nor kvm_intel is loaded, {extension}"),
            format!("`modprobe kvm_amd` or `modprobe kvm_intel`; {TESTBED}"),
        ),
        None => Check::missing(
            NAME,
            format!("no KVM, {extension}"),
            format!("a kernel with KVM (CONFIG_KVM) and a processor with SVM or VMX; {TESTBED}"),
        ),
    }
}

fn pause_loop(in_force: Option<PauseLoop>) -> Check {
    const NAME: &str = "pause-loop exits";
    match in_force {
        Some(found) if found.window > 0 && found.gap > 0 => Check::ok(
            NAME,
            format!(
                "{}: window {}, gap {}, grow {}, shrink {}",
                found.module, found.window, found.gap, found.grow, found.shrink
            ),
        ),
        Some(found) => Check::missing(
            NAME,
            format!(
                "{}: window {}, gap {}",
                found.module, found.window, found.gap
            ),
            format!(
                "the module was loaded with 0, or the processor has no pause filter; {TESTBED}"
            ),
        ),
        None => Check::missing(NAME, "neither kvm_amd nor kvm_intel is loaded", TESTBED),
    }
}

fn btf(host: &HostCapabilities) -> Check {
    if host.btf {
        return Check::ok("BTF", "/sys/kernel/btf/vmlinux");
    }
    Check::missing(
        "BTF",
        "/sys/kernel/btf/vmlinux is not there or cannot be read",
        "a kernel with CONFIG_DEBUG_INFO_BTF, as Debian's are",
    )
}

fn bpf(host: &HostCapabilities) -> Check {
    if host.bpf_loadable {
        return Check::ok("BPF", "a trial program could be loaded");
    }
    let advice = if host.root {
        "a kernel with CONFIG_BPF_SYSCALL and no lockdown"
    } else {
        "run as root"
    };
    Check::missing("BPF", "a trial program was refused", advice)
}

fn observe(host: &HostCapabilities) -> Check {
    match &host.observe_error {
        None => Check::ok("observing KVM", "every hook is there"),
        Some(error) => Check::missing("observing KVM", "not possible", error.clone()),
    }
}

fn sched_ext(host: &HostCapabilities) -> Check {
    if host.sched_ext {
        let state = host.sched_ext_state.as_deref().unwrap_or("unknown");
        return Check::ok("sched_ext", format!("Linux {}, state {state}", host.kernel));
    }
    Check::missing(
        "sched_ext",
        format!("Linux {} has none", host.kernel),
        format!("Linux 6.12 or later with CONFIG_SCHED_CLASS_EXT (Debian: 7.2); {TESTBED}"),
    )
}

fn thread_slices(host: &HostCapabilities) -> Check {
    const NAME: &str = "slices of threads";
    if host.thread_slices {
        return Check::ok(NAME, "`unspin tune` can give them");
    }
    Check::missing(
        NAME,
        format!("Linux {} has none", host.kernel),
        "Linux 6.12 or later (Debian 13)",
    )
}

fn sched_ext_functions(host: &HostCapabilities) -> Check {
    const NAME: &str = "sched_ext in BTF";
    let total = unspin_agent::SCHED_EXT_FUNCTIONS.len();
    let lacking = host.sched_ext_missing.len();
    if lacking == 0 {
        return Check::ok(
            NAME,
            format!("all {total} kernel functions that unspin calls"),
        );
    }
    if !host.sched_ext {
        return Check::missing(NAME, "no sched_ext", TESTBED);
    }
    Check::missing(
        NAME,
        format!(
            "{lacking} of {total} kernel functions cannot be called: {}",
            host.sched_ext_missing.join(", ")
        ),
        format!(
            "a kernel whose BTF is complete: Debian's of forky or sid (7.2, +deb14); not 7.2.12+deb13; {TESTBED}"
        ),
    )
}

/// Both emulators and the kernel, as `make setup` leaves them in the cache.
fn emulators() -> Vec<Check> {
    let names = [
        ("QEMU (stock)", Qemu::Stock),
        ("QEMU (window honoured)", Qemu::Unspin),
    ];
    let cache = match unspin_testbed::cache_from_environment() {
        Ok(cache) => cache,
        Err(error) => {
            return vec![Check::missing(
                "testbed",
                "no cache folder",
                error.to_string(),
            )];
        }
    };
    names
        .into_iter()
        .map(
            |(name, qemu)| match unspin_testbed::Machine::find(&cache, qemu) {
                Ok(machine) => Check::ok(
                    name,
                    format!(
                        "{}, kernel {}",
                        machine.emulator.program().display(),
                        machine.kernel_version
                    ),
                ),
                Err(_) if qemu == Qemu::Stock => Check::limited(
                    name,
                    "not built",
                    "only some of the project's own checks need it: `make test` builds it",
                ),
                Err(error) => Check::missing(name, "not set up", error.to_string()),
            },
        )
        .collect()
}

/// The compiler that building unspin needs, and steering by a policy of one's own.
fn clang() -> Check {
    const NAME: &str = "clang";
    let chosen = std::env::var("UNSPIN_CLANG").ok();
    let candidates = chosen
        .iter()
        .map(String::as_str)
        .chain(["clang-19", "clang"]);
    let version = |name: &str| {
        let output = Command::new(name).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().next()?.to_owned();
        output.status.success().then(|| format!("{name}: {line}"))
    };
    match candidates.into_iter().find_map(version) {
        Some(found) => Check::ok(NAME, found),
        None => Check::limited(
            NAME,
            "not found",
            "only needed to build unspin and for user policies (steer --policy ./NAME.c): \
             `apt-get install clang-19`, or `make setup`",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    fn host() -> HostCapabilities {
        HostCapabilities {
            kernel: "7.2".into(),
            root: true,
            btf: true,
            bpf_loadable: true,
            kvm: true,
            kvm_hardware: Some("amd"),
            observe_error: None,
            sched_ext: true,
            sched_ext_state: Some("disabled".into()),
            sched_ext_missing: Vec::new(),
            thread_slices: true,
        }
    }

    #[test]
    fn which_kvm() {
        let amd = hardware(&host(), "flags\t\t: fpu svm\n", false);
        assert_eq!(
            (amd.status, amd.found.as_str()),
            (Status::Ok, "kvm_amd, AMD SVM")
        );
        let intel = HostCapabilities {
            kvm_hardware: Some("intel"),
            ..host()
        };
        assert_eq!(
            hardware(&intel, "flags : vmx\n", false).status,
            Status::Limited
        );
        let neither = HostCapabilities {
            kvm_hardware: None,
            ..host()
        };
        let emulated = hardware(&neither, "flags : fpu\n", true);
        assert_eq!(emulated.status, Status::Limited);
        assert!(emulated.found.contains("page tables"), "{}", emulated.found);
        let none = HostCapabilities {
            kvm: false,
            ..neither
        };
        assert_eq!(hardware(&none, "", false).status, Status::Missing);
    }

    #[test]
    fn a_device_that_cannot_be_opened() {
        assert_eq!(device(None).status, Status::Ok);
        let gone = device(Some(io::ErrorKind::NotFound.into()));
        assert!(
            gone.advice
                .is_some_and(|advice| advice.contains("modprobe"))
        );
        let refused = device(Some(io::ErrorKind::PermissionDenied.into()));
        assert!(
            refused
                .advice
                .is_some_and(|advice| advice.contains("run as root"))
        );
    }

    #[test]
    fn a_window_of_zero_is_none() {
        let found = PauseLoop {
            module: "kvm_amd",
            window: 3000,
            gap: 128,
            grow: 2,
            shrink: 0,
            window_max: 65535,
        };
        assert_eq!(pause_loop(Some(found)).status, Status::Ok);
        assert_eq!(
            pause_loop(Some(PauseLoop { window: 0, ..found })).status,
            Status::Missing
        );
        assert_eq!(
            pause_loop(Some(PauseLoop { gap: 0, ..found })).status,
            Status::Missing
        );
        assert_eq!(pause_loop(None).status, Status::Missing);
    }

    #[test]
    fn missing_kernel_functions_are_named() {
        let lacking = HostCapabilities {
            sched_ext_missing: vec!["scx_bpf_kick_cpu"],
            ..host()
        };
        let check = sched_ext_functions(&lacking);
        assert_eq!(check.status, Status::Missing);
        let lacks_one = format!("1 of {} ", unspin_agent::SCHED_EXT_FUNCTIONS.len());
        assert!(check.found.starts_with(&lacks_one) && check.found.contains("scx_bpf_kick_cpu"));
        assert_eq!(sched_ext_functions(&host()).status, Status::Ok);
        let older = HostCapabilities {
            thread_slices: false,
            ..host()
        };
        assert_eq!(thread_slices(&older).status, Status::Missing);
        assert_eq!(thread_slices(&host()).status, Status::Ok);
    }
}
