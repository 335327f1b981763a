// SPDX-License-Identifier: MIT OR Apache-2.0
//! What our programs need of the running kernel and of the caller's rights, and what of it is missing.

use std::fs;

use crate::{
    Error,
    kernel::btf::{KernelBtf, Kind},
};

/// Release of the running kernel, as `uname -r` prints it.
pub(crate) fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// Effective capabilities of this process; bit numbers of `include/uapi/linux/capability.h`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capabilities(u64);

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

impl Capabilities {
    /// Of this process; none when /proc cannot be read.
    pub(crate) fn own() -> Capabilities {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Capabilities::parse(&status)
    }

    fn parse(status: &str) -> Capabilities {
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("CapEff:"))
            .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
        Capabilities(mask.unwrap_or(0))
    }

    fn has(self, bit: u32) -> bool {
        self.0 & (1 << bit) != 0
    }

    /// What is missing for loading our programs. The BTF of modules can be had with CAP_SYS_ADMIN only
    /// (`kernel/bpf/syscall.c`, `bpf_btf_get_fd_by_id()`).
    pub(crate) fn missing_for_observing(self, kvm_is_module: bool) -> Option<&'static str> {
        if self.has(CAP_SYS_ADMIN) {
            None
        } else if kvm_is_module {
            Some("CAP_SYS_ADMIN")
        } else if !self.has(CAP_BPF) {
            Some("CAP_BPF")
        } else if !self.has(CAP_PERFMON) {
            Some("CAP_PERFMON")
        } else {
            None
        }
    }
}

/// What a program needs: kind, name, and the module it is in (`vmlinux`: the kernel itself).
type Need = (Kind, &'static str, &'static str);

/// Observing.
const NEEDED: [Need; 9] = [
    (Kind::Typedef, "kvm_exit", "kvm"),
    (Kind::Typedef, "kvm_entry", "kvm"),
    (Kind::Function, "kvm_vcpu_on_spin", "kvm"),
    (Kind::Function, "kvm_destroy_vm", "kvm"),
    (Kind::Function, "yield_to", "vmlinux"),
    (Kind::Function, "register_fprobe_ips", "vmlinux"), // CONFIG_FPROBE: kprobe.multi programs
    (Kind::Typedef, "sched_switch", "vmlinux"),
    (Kind::Typedef, "sched_wakeup", "vmlinux"),
    (Kind::Typedef, "sched_process_exit", "vmlinux"),
];

/// Windows of pause-loop exits.
const NEEDED_FOR_WINDOWS: [Need; 4] = [
    (Kind::Typedef, "kvm_exit", "kvm"),
    (Kind::Typedef, "kvm_entry", "kvm"),
    (Kind::Function, "kvm_destroy_vm", "kvm"),
    (Kind::Typedef, "sched_switch", "vmlinux"),
];

/// Guests' spin thresholds.
const NEEDED_FOR_THRESHOLDS: [Need; 5] = [
    (Kind::Typedef, "kvm_exit", "kvm"),
    (Kind::Typedef, "kvm_entry", "kvm"),
    (Kind::Typedef, "kvm_hypercall", "kvm"),
    (Kind::Function, "kvm_destroy_vm", "kvm"),
    (Kind::Typedef, "sched_switch", "vmlinux"),
];

/// Useful time of VMs.
const NEEDED_FOR_USEFUL_TIME: [Need; 2] = [
    (Kind::Typedef, "kvm_exit", "kvm"),
    (Kind::Typedef, "kvm_entry", "kvm"),
];

/// Watching; without function tracing it does not see yields, and that is said.
const NEEDED_FOR_WATCHING: [Need; 4] = [
    (Kind::Typedef, "kvm_exit", "kvm"),
    (Kind::Typedef, "kvm_entry", "kvm"),
    (Kind::Function, "kvm_destroy_vm", "kvm"),
    (Kind::Typedef, "sched_process_exit", "vmlinux"),
];

/// A dry run; without function tracing it does not see yields, and that is said.
const NEEDED_FOR_DRY_RUN: [Need; 4] = [
    (Kind::Typedef, "kvm_entry", "kvm"),
    (Kind::Typedef, "kvm_hypercall", "kvm"),
    (Kind::Typedef, "sched_switch", "vmlinux"),
    (Kind::Typedef, "sched_process_exit", "vmlinux"),
];

/// Checks that all that the observer's programs need is there and that the caller may load them.
///
/// # Errors
/// The first thing that is missing, in the order in which a user would mend it.
pub(crate) fn check() -> Result<(), Error> {
    check_for(&NEEDED)
}

/// The same for those of a dry run.
pub(crate) fn check_for_dry_run() -> Result<(), Error> {
    check_for(&NEEDED_FOR_DRY_RUN)
}

/// The same for those that set windows.
pub(crate) fn check_for_windows() -> Result<(), Error> {
    check_for(&NEEDED_FOR_WINDOWS)
}

/// The same for those that set thresholds.
pub(crate) fn check_for_thresholds() -> Result<(), Error> {
    check_for(&NEEDED_FOR_THRESHOLDS)
}

/// The same for those that measure useful time.
pub(crate) fn check_for_useful_time() -> Result<(), Error> {
    check_for(&NEEDED_FOR_USEFUL_TIME)
}

/// The same for those that watch; and that there can be VMs, where KVM is built into the kernel.
pub(crate) fn check_for_watching() -> Result<(), Error> {
    check_for(&NEEDED_FOR_WATCHING)?;
    // The folder is there in containers that have no device.
    let there = ["/dev/kvm", "/sys/class/misc/kvm"].map(|path| fs::exists(path).unwrap_or(false));
    match there {
        [false, false] => Err(Error::NoKvmDevice),
        _ => Ok(()),
    }
}

/// Whether returns of yield_to() can be seen here: kretprobe.multi programs need CONFIG_FPROBE.
pub(crate) fn sees_yields() -> bool {
    let functions = ["yield_to", "register_fprobe_ips"];
    KernelBtf::vmlinux().is_some_and(|kernel| {
        functions
            .iter()
            .all(|name| kernel.has(name, Kind::Function))
    })
}

fn check_for(needed: &[Need]) -> Result<(), Error> {
    let vmlinux = KernelBtf::vmlinux().ok_or(Error::NoBtf)?;
    let module = KernelBtf::module("kvm");
    let built_in = vmlinux.has("btf_trace_kvm_exit", Kind::Typedef);
    let kvm = match (&module, built_in) {
        (Some(module), _) => Some(module),
        (None, true) => Some(&vmlinux),
        (None, false) => None,
    };
    let in_kvm = kvm.map(|kvm| |name: &str, kind| kvm.has(name, kind));
    find_missing(
        needed,
        Capabilities::own(),
        built_in,
        &|name, kind| vmlinux.has(name, kind),
        in_kvm.as_ref().map(|has| has as &Has<'_>),
    )
}

/// Whether there is an entry of that name and kind.
type Has<'a> = dyn Fn(&str, Kind) -> bool + 'a;

fn find_missing(
    needed: &[Need],
    capabilities: Capabilities,
    kvm_built_in: bool,
    in_vmlinux: &Has<'_>,
    in_kvm: Option<&Has<'_>>,
) -> Result<(), Error> {
    let in_kvm = in_kvm.ok_or(Error::KvmNotLoaded)?;
    if let Some(missing) = capabilities.missing_for_observing(!kvm_built_in) {
        return Err(Error::NotPermitted { missing });
    }
    for (kind, name, module) in needed.iter().copied() {
        let has = if module == "kvm" { in_kvm } else { in_vmlinux };
        let (what, there) = match kind {
            Kind::Typedef => ("tracepoint", has(&format!("btf_trace_{name}"), kind)),
            Kind::Function => ("function", has(name, kind)),
            Kind::Struct => ("struct", has(name, kind)),
        };
        if !there {
            return Err(Error::Missing {
                what,
                name,
                module,
                kernel: release(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_status_file() {
        let all = Capabilities::parse("Name:\tx\nCapEff:\t000001ffffffffff\n");
        assert_eq!(all.missing_for_observing(true), None);
        let none = Capabilities::parse("CapEff:\t0000000000000000\n");
        assert_eq!(none.missing_for_observing(true), Some("CAP_SYS_ADMIN"));
        assert_eq!(none.missing_for_observing(false), Some("CAP_BPF"));
        let bpf = Capabilities::parse("CapEff:\t0000008000000000\n");
        assert_eq!(bpf.missing_for_observing(false), Some("CAP_PERFMON"));
        let both = Capabilities::parse("CapEff:\t000000c000000000\n");
        assert_eq!(both.missing_for_observing(false), None);
        assert_eq!(both.missing_for_observing(true), Some("CAP_SYS_ADMIN"));
        assert_eq!(
            Capabilities::parse("nonsense").missing_for_observing(true),
            Some("CAP_SYS_ADMIN")
        );
    }

    const ALL: Capabilities = Capabilities(u64::MAX);

    #[test]
    fn what_is_missing_is_named_and_where() {
        let everything = |_: &str, _| true;
        assert!(find_missing(&NEEDED, ALL, false, &everything, Some(&everything)).is_ok());
        let error = find_missing(&NEEDED, ALL, false, &everything, None).expect_err("no kvm");
        assert!(error.to_string().contains("modprobe kvm_amd"), "{error}");
        let error = find_missing(
            &NEEDED,
            Capabilities(0),
            false,
            &everything,
            Some(&everything),
        );
        let error = error.expect_err("not permitted").to_string();
        assert!(error.contains("root") && error.contains("sudo"), "{error}");
        for (kind, name, module) in NEEDED {
            let wanted = match kind {
                Kind::Typedef => format!("btf_trace_{name}"),
                Kind::Function | Kind::Struct => name.to_owned(),
            };
            let lacking = |asked: &str, _| asked != wanted;
            let result = match module {
                "kvm" => find_missing(&NEEDED, ALL, false, &everything, Some(&lacking)),
                _ => find_missing(&NEEDED, ALL, false, &lacking, Some(&everything)),
            };
            let error = result.expect_err("one is missing").to_string();
            let said = format!("`{name}` in the BTF of {module}");
            assert!(error.contains(&said), "{error}");
        }
    }
}
