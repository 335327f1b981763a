// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host gives: KVM and its capabilities, the pause-loop parameters in force, the CPUs that vCPUs may use, and
//! the limits of this process.

pub(crate) mod clock;
pub(crate) mod cpuid;
pub(crate) mod other_vms;
pub(crate) mod pause_loop;

use std::{ffi::CStr, fs, io, mem::size_of, path::Path, sync::Arc};

use kvm_bindings::{
    CpuId, KVM_CAP_VCPU_ATTRIBUTES, KVM_CAP_X86_APIC_BUS_CYCLES_NS, KVM_CAP_X86_DISABLE_EXITS,
    KVM_MAX_CPUID_ENTRIES, KVM_X86_DISABLE_EXITS_HLT, KVM_X86_DISABLE_EXITS_PAUSE,
};
use kvm_ioctls::{Cap, Kvm};
use unspin_scenario::Scenario;

use crate::{Error, host::pause_loop::PauseLoop, pv_pages::PvPages};

/// KVM's only API version since 2.6.22 (Documentation/virt/kvm/api.rst, 4.1).
const KVM_API_VERSION: i32 = 12;

/// The APIC bus of a KVM guest ticks once a nanosecond unless told otherwise (APIC_BUS_CYCLE_NS_DEFAULT,
/// arch/x86/kvm/lapic.h, Linux 7.2).
const APIC_BUS_CYCLE_NS: u32 = 1;

/// KVM of this host, checked against a scenario.
pub struct Host {
    /// `/dev/kvm`.
    pub kvm: Kvm,
    /// What vCPUs are told, before their own ids.
    pub cpuid: CpuId,
    /// Rate of the guests' APIC timer at divide by 1.
    pub apic_timer_hz: u32,
    /// The pause-loop parameters in force, where there are any.
    pub pause_loop: Option<PauseLoop>,
    /// Whether a vCPU's TSC offset can be set.
    pub tsc_offset: bool,
    /// Where pv pages may lie instead of in guests' own memory.
    pub pv_pages: Option<Arc<PvPages>>,
}

impl Host {
    /// Opens KVM and checks that it can run the scenario.
    ///
    /// # Errors
    /// Each names what is missing or differs: `NoKvm`, `NoPermission`, `OpenKvm`, `OldKvm`, `MissingCapability`,
    /// `TooManyVcpus`, `PauseLoop`, `NoPauseLoop`, `TickRate`, `HostCpus`.
    pub fn open(scenario: &Scenario) -> Result<Host, Error> {
        let kvm = open_kvm(c"/dev/kvm")?;
        check_capabilities(&kvm, scenario)?;
        let cpuid = kvm
            .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
            .map_err(|error| Error::OpenKvm(error.into()))?;
        if let Some(capability) = cpuid::missing(cpuid.as_slice()) {
            return Err(missing(capability, "the micro guest uses it", "3.1"));
        }
        let pause_loop = PauseLoop::in_force(Path::new("/sys/module"));
        PauseLoop::check(pause_loop.as_ref(), &scenario.host)?;
        check_tick_rate(scenario, Path::new("/sys/module"))?;
        check_cpus(scenario)?;
        let cycle_ns = kvm.check_extension_raw(KVM_CAP_X86_APIC_BUS_CYCLES_NS.into());
        let cycle_ns = u32::try_from(cycle_ns).unwrap_or(0);
        Ok(Host {
            tsc_offset: kvm.check_extension_raw(KVM_CAP_VCPU_ATTRIBUTES.into()) > 0,
            apic_timer_hz: 1_000_000_000
                / if cycle_ns > 0 {
                    cycle_ns
                } else {
                    APIC_BUS_CYCLE_NS
                },
            kvm,
            cpuid,
            pause_loop,
            pv_pages: None,
        })
    }
}

fn open_kvm(path: &CStr) -> Result<Kvm, Error> {
    let kvm = Kvm::new_with_path(path).map_err(|error| match error.errno() {
        // ENODEV, ENXIO: the node is there, the driver is not.
        libc::ENOENT | libc::ENODEV | libc::ENXIO => Error::NoKvm,
        libc::EACCES | libc::EPERM => Error::NoPermission,
        _ => Error::OpenKvm(error.into()),
    })?;
    match kvm.get_api_version() {
        KVM_API_VERSION => Ok(kvm),
        // Not KVM at all.
        ..0 => Err(Error::OpenKvm(io::Error::last_os_error())),
        found => Err(Error::OldKvm { found }),
    }
}

fn missing(capability: &'static str, purpose: &'static str, since: &'static str) -> Error {
    Error::MissingCapability {
        capability,
        purpose,
        since,
    }
}

fn check_capabilities(kvm: &Kvm, scenario: &Scenario) -> Result<(), Error> {
    // Releases: the commits that added the constants to include/uapi/linux/kvm.h.
    let needed = [
        (
            Cap::UserMemory,
            "KVM_CAP_USER_MEMORY",
            "guest memory",
            "2.6.25",
        ),
        (
            Cap::SplitIrqchip,
            "KVM_CAP_SPLIT_IRQCHIP",
            "timers and IPIs",
            "4.4",
        ),
        (
            Cap::MpState,
            "KVM_CAP_MP_STATE",
            "starting all vCPUs at once",
            "2.6.25",
        ),
        (
            Cap::ImmediateExit,
            "KVM_CAP_IMMEDIATE_EXIT",
            "stopping vCPUs",
            "4.12",
        ),
    ];
    for (cap, name, purpose, since) in needed {
        if !kvm.check_extension(cap) {
            return Err(missing(name, purpose, since));
        }
    }
    let can_disable = kvm.check_extension_raw(KVM_CAP_X86_DISABLE_EXITS.into()) as u32;
    let disable = |wanted: bool, bit: u32, purpose| {
        if wanted && can_disable & bit == 0 {
            return Err(missing("KVM_CAP_X86_DISABLE_EXITS", purpose, "4.17"));
        }
        Ok(())
    };
    let any = |wanted: fn(&unspin_scenario::Vm) -> bool| scenario.vms.iter().any(wanted);
    disable(
        any(|vm| !vm.pause_exits),
        KVM_X86_DISABLE_EXITS_PAUSE,
        "pause_exits = false",
    )?;
    disable(
        any(|vm| !vm.halt_exits),
        KVM_X86_DISABLE_EXITS_HLT,
        "halt_exits = false",
    )?;
    let most = kvm.get_max_vcpus();
    match scenario.vms.iter().map(|vm| vm.vcpus).max() {
        Some(wanted) if wanted as usize > most => Err(Error::TooManyVcpus { wanted, most }),
        _ => Ok(()),
    }
}

/// Refuses a tick that KVM would slow down without a word (limit_periodic_timer_frequency, arch/x86/kvm/lapic.c).
fn check_tick_rate(scenario: &Scenario, modules: &Path) -> Result<(), Error> {
    let path = modules.join("kvm/parameters/min_timer_period_us");
    let Some(period_us) = read_number(&path).filter(|period| *period > 0) else {
        return Ok(());
    };
    let most = 1_000_000 / period_us;
    match scenario.vms.iter().map(|vm| vm.tick_hz).max() {
        Some(wanted) if wanted > most => Err(Error::TickRate { wanted, most }),
        _ => Ok(()),
    }
}

fn check_cpus(scenario: &Scenario) -> Result<(), Error> {
    let Some(wanted) = scenario.host.cpus else {
        return Ok(());
    };
    let available = allowed_below(wanted);
    if available < wanted {
        return Err(Error::HostCpus { wanted, available });
    }
    Ok(())
}

/// The number in a one-line file of sysfs; `None` if there is none.
pub fn read_number(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// How many of the CPUs 0..`end` the calling thread may use; `end` above CPU_SETSIZE (1,024) counts as that.
pub fn allowed_below(end: u32) -> u32 {
    // SAFETY: cpu_set_t is an array of integers, for which zero is a valid value: the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the size passed, which is that of `set`.
    let read = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    assert_eq!(read, 0, "sched_getaffinity of the calling thread");
    let end = (end as usize).min(libc::CPU_SETSIZE as usize);
    // SAFETY: CPU_ISSET indexes below CPU_SETSIZE.
    (0..end)
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .count() as u32
}

/// Confines the calling thread to the CPUs 0..`end` (1 to CPU_SETSIZE).
///
/// # Errors
/// The kernel's: EINVAL when none of them is there.
pub fn confine_to_first(end: u32) -> io::Result<()> {
    // SAFETY: as above.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in 0..(end as usize).min(libc::CPU_SETSIZE as usize) {
        // SAFETY: CPU_SET indexes below CPU_SETSIZE.
        unsafe { libc::CPU_SET(cpu, &mut set) };
    }
    // SAFETY: the kernel reads the size passed, which is that of `set`.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Descriptors beside those of VMs and vCPUs: standard streams, KVM, an observer's maps and links.
const OTHER_FILES: u64 = 256;

/// Raises the soft limit of open files, as far as the hard one goes: each VM and each vCPU is one. Too few show as
/// an error of the VM that found none left.
pub fn allow_open_files(scenario: &Scenario) {
    let needed = files_needed(scenario);
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` is a live rlimit for the kernel to fill in.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } != 0 || limit.rlim_cur >= needed
    {
        return;
    }
    limit.rlim_cur = needed.min(limit.rlim_max);
    // SAFETY: the kernel only reads `limit`.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
}

fn files_needed(scenario: &Scenario) -> u64 {
    let per_group = scenario
        .vms
        .iter()
        .map(|vm| u64::from(vm.count) * (1 + u64::from(vm.vcpus)));
    OTHER_FILES + per_group.sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_that_kvm_would_slow_down_is_refused() {
        let modules = tempfile::tempdir().expect("a temporary directory");
        let parameters = modules.path().join("kvm/parameters");
        fs::create_dir_all(&parameters).expect("it can be made");
        let scenario = |tick_hz| {
            let mut scenario = crate::machine::parameters::tests::any_scenario();
            scenario.vms[0].tick_hz = tick_hz;
            scenario
        };
        // A kernel without the limit.
        assert!(check_tick_rate(&scenario(10_000), modules.path()).is_ok());
        fs::write(parameters.join("min_timer_period_us"), "200\n").expect("it can be written");
        assert!(check_tick_rate(&scenario(5_000), modules.path()).is_ok());
        let refused = check_tick_rate(&scenario(5_001), modules.path()).expect_err("too fast");
        assert!(refused.to_string().contains("at most 5000"), "{refused}");
    }

    #[test]
    fn a_machine_without_kvm_is_told_what_to_do() {
        let absent = open_kvm(c"/nonexistent/kvm").expect_err("there is none");
        assert!(matches!(absent, Error::NoKvm), "{absent}");
        assert!(
            absent.to_string().contains("unspin testbed run"),
            "{absent}"
        );
        let other = open_kvm(c"/dev/null").expect_err("that is not KVM");
        assert!(matches!(other, Error::OpenKvm(_)), "{other}");
    }

    #[test]
    fn a_confined_thread_may_use_what_it_was_given() {
        let (before, inside) = std::thread::spawn(|| {
            let before = allowed_below(u32::MAX);
            confine_to_first(1).expect("CPU 0 is there");
            (before, allowed_below(u32::MAX))
        })
        .join()
        .expect("the thread ends");
        assert_eq!(inside, 1);
        assert!(before >= 1);
        assert_eq!(allowed_below(0), 0);
    }
}
