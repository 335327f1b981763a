// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scheduler needs of the kernel, and what may be in its way: other schedulers, CPUs isolated at boot, and cgroups with a
//! CPU quota that lie too deep. Under sched_ext the kernel enforces no quota (`ops.cgroup_set_bandwidth()` only tells): the scheduler
//! does, in the cgroups that it counts apart.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use libbpf_rs::{MapHandle, ProgramType, libbpf_sys, query::MapInfoIter};
use unspin_policy::mechanics::DEEPEST_GROUP;

use super::SteerError;
use crate::{
    SCHED_EXT_FUNCTIONS,
    kernel::{
        btf::KernelBtf,
        requirements::{self, Capabilities},
    },
};

const STATE: &str = "/sys/kernel/sched_ext/state";
const NAME: &str = "/sys/kernel/sched_ext/root/ops";

/// Since Linux 7.1.
const NEEDED_BY_ONLY_VMS: &str = "scx_bpf_dsq_reenq";

/// # Errors
/// The first thing that is missing or in the way, in the order in which a user would mend it.
pub(super) fn check() -> Result<(), SteerError> {
    let kernel = requirements::release();
    if !Path::new(STATE).exists() {
        return Err(SteerError::NoSchedExt { kernel });
    }
    // The BTF of KVM's modules can be had with CAP_SYS_ADMIN only.
    if let Some(missing) = Capabilities::own().missing_for_observing(true) {
        return Err(SteerError::NotPermitted { missing });
    }
    let btf = KernelBtf::vmlinux().ok_or(crate::Error::NoBtf)?;
    let functions = missing_of(&|name| btf.callable(name));
    if !functions.is_empty() {
        return Err(SteerError::MissingFunctions { kernel, functions });
    }
    let arguments = fs::read_to_string("/proc/cmdline").unwrap_or_default();
    if let Some(argument) = isolates_at_boot(&arguments) {
        return Err(SteerError::IsolatedAtBoot {
            argument: argument.to_owned(),
        });
    }
    check_alone()
}

/// How long a scheduler may take to go, or to say its name: one that goes is waited for, as after `systemctl restart`.
const PATIENCE: Duration = Duration::from_secs(2);

/// # Errors
/// [`SteerError::OtherScheduler`]: one is attached, or still was after 2 s.
pub(super) fn check_alone() -> Result<(), SteerError> {
    let read = |file| fs::read_to_string(file).map(|text| text.trim().to_owned());
    let state = until(
        || read(STATE).unwrap_or_default(),
        |state| state != "disabling",
    );
    if state == "disabled" {
        return Ok(());
    }
    // It has one a moment after it is being attached.
    let name = until(
        || read(NAME),
        |name| name.is_ok() || read(STATE).is_ok_and(|state| state == "disabled"),
    );
    let name = name.unwrap_or_else(|_| "?".to_owned());
    Err(SteerError::OtherScheduler { name, state })
}

/// The same, where the kernel need not have sched_ext.
///
/// # Errors
/// As [`check_alone`].
pub(crate) fn check_no_other_scheduler() -> Result<(), SteerError> {
    match Path::new(STATE).exists() {
        true => check_alone(),
        false => Ok(()),
    }
}

/// What `look` gives once it is `done`, or after [`PATIENCE`].
fn until<T>(look: impl Fn() -> T, done: impl Fn(&T) -> bool) -> T {
    let began = Instant::now();
    loop {
        let seen = look();
        if done(&seen) || began.elapsed() > PATIENCE {
            return seen;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// # Errors
/// [`SteerError::NotOnlyVms`] where the kernel does not let programs call what only [`super::SteerOptions::only_vms`] needs.
pub(super) fn check_only_vms() -> Result<(), SteerError> {
    let btf = KernelBtf::vmlinux().ok_or(crate::Error::NoBtf)?;
    if btf.callable(NEEDED_BY_ONLY_VMS) {
        return Ok(());
    }
    Err(SteerError::NotOnlyVms {
        kernel: requirements::release(),
        function: NEEDED_BY_ONLY_VMS,
    })
}

/// Whether the scheduler that is attached is ours; the kernel appends a version to its name.
pub(super) fn ours_is_attached() -> bool {
    let name = fs::read_to_string(NAME).unwrap_or_default();
    name.starts_with("unspin")
}

/// Whether BPF may write into processes, as it does to tell guests: not where the kernel is locked down for integrity
/// (LOCKDOWN_BPF_WRITE_USER, kernel/trace/bpf_trace.c, Linux 7.2). In doubt, it may: then the kernel refuses the programs.
pub(crate) fn writes_memory() -> bool {
    // Of a type that has the same helpers as our programs, but can be tried.
    ProgramType::RawTracepoint
        .is_helper_supported(libbpf_sys::BPF_FUNC_probe_write_user)
        .unwrap_or(true)
}

/// Whether that kernel lets programs load its memory without a call: bpf_rdonly_cast() of no type, since Linux 6.17
/// (kernel/bpf/verifier.c). In doubt, not.
pub(super) fn reads_directly(release: &str) -> bool {
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let (major, minor) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    (major, minor) >= (6, 17)
}

/// The argument by which the kernel takes CPUs out of its scheduling domains (kernel/sched/isolation.c, Linux 7.2: flags
/// before the CPUs, `domain` when there is none). sched_ext refuses to attach then (kernel/sched/ext/ext.c,
/// scx_root_enable_workfn()).
fn isolates_at_boot(arguments: &str) -> Option<&str> {
    let domain = |list: &str| {
        let first = list.split(',').next().unwrap_or("");
        first.starts_with(|c: char| c.is_ascii_digit())
            || list.split(',').any(|word| word == "domain")
    };
    let mut words = arguments.split_whitespace();
    words.rfind(|word| word.strip_prefix("isolcpus=").is_some_and(domain))
}

fn missing_of(has: &dyn Fn(&str) -> bool) -> Vec<&'static str> {
    SCHED_EXT_FUNCTIONS
        .into_iter()
        .filter(|name| !has(name))
        .collect()
}

/// A hierarchy, the file that holds the quota there, and what it begins with when there is none.
struct Hierarchy {
    root: PathBuf,
    file: &'static str,
    unlimited: &'static str,
}

/// # Errors
/// [`SteerError::Quotas`] with every cgroup that has one and counts as its parent: more than [`DEEPEST_GROUP`] levels below the root.
pub(super) fn check_quotas() -> Result<(), SteerError> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut cgroups = Vec::new();
    for hierarchy in hierarchies(&mounts) {
        collect(&hierarchy, &hierarchy.root, 0, &mut cgroups);
    }
    cgroups.sort();
    if cgroups.is_empty() {
        return Ok(());
    }
    Err(SteerError::Quotas { cgroups })
}

fn hierarchies(mounts: &str) -> Vec<Hierarchy> {
    let of = |line: &str| {
        let mut words = line.split(' ');
        let (_, root, kind, options) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let (file, unlimited) = match kind {
            "cgroup2" => ("cpu.max", "max"),
            "cgroup" if options.split(',').any(|option| option == "cpu") => {
                ("cpu.cfs_quota_us", "-1")
            }
            _ => return None,
        };
        Some(Hierarchy {
            root: root.into(),
            file,
            unlimited,
        })
    };
    mounts.lines().filter_map(of).collect()
}

/// Adds the folders below `folder`, which lies so many levels below the root, that have a quota and lie too deep. One that goes
/// away meanwhile has none.
fn collect(hierarchy: &Hierarchy, folder: &Path, depth: u32, cgroups: &mut Vec<String>) {
    if depth > DEEPEST_GROUP {
        let quota = fs::read_to_string(folder.join(hierarchy.file));
        if quota.is_ok_and(|quota| quota.split_whitespace().next() != Some(hierarchy.unlimited)) {
            cgroups.push(folder.display().to_string());
        }
    }
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(hierarchy, &entry.path(), depth + 1, cgroups);
        }
    }
}

/// Maps of that name and size, the youngest last: those of a scheduler that has just gone may still be there. None when no
/// scheduler of ours is attached.
pub(crate) fn running_maps(name: &str, size: usize) -> Vec<MapHandle> {
    if !ours_is_attached() {
        return Vec::new();
    }
    MapInfoIter::default()
        .filter(|map| map.name.to_string_lossy() == name && map.value_size == size as u32)
        .filter_map(|map| MapHandle::from_map_id(map.id).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_that_read_directly_are_told() {
        for release in [
            "6.17.0",
            "7.2.12+deb14-cloud-amd64",
            "6.18.44-fc-v595",
            "7.0-rc1",
        ] {
            assert!(reads_directly(release), "{release}");
        }
        for release in ["6.12.9-1", "6.16.99", "5.17.1", "6", "", "deb14"] {
            assert!(!reads_directly(release), "{release}");
        }
    }

    #[test]
    fn isolation_at_boot_is_seen() {
        let seen = |arguments| isolates_at_boot(arguments);
        assert_eq!(
            seen("quiet isolcpus=1-3,5 nohz_full=1"),
            Some("isolcpus=1-3,5")
        );
        assert_eq!(
            seen("isolcpus=managed_irq,domain,2"),
            Some("isolcpus=managed_irq,domain,2")
        );
        assert_eq!(seen("isolcpus=managed_irq,2 nohz_full=1\n"), None);
        assert_eq!(seen(""), None);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(missing_of(&|_| true).is_empty());
        let poor = ["scx_bpf_create_dsq", "scx_bpf_kick_cpu"];
        let functions = missing_of(&|name| !poor.contains(&name));
        assert_eq!(functions, poor);
        let kernel = "7.2.12+deb13".to_owned();
        let said = SteerError::MissingFunctions { kernel, functions }.to_string();
        assert!(
            said.contains("cannot call scx_bpf_create_dsq, scx_bpf_kick_cpu: "),
            "{said}"
        );
    }

    #[test]
    fn both_hierarchies_are_known() {
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n\
                      cgroup /v1/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\ncgroup /v1/memory cgroup rw,memory 0 0\n";
        let found: Vec<(PathBuf, &str)> = hierarchies(mounts)
            .into_iter()
            .map(|hierarchy| (hierarchy.root, hierarchy.file))
            .collect();
        assert_eq!(
            found,
            [
                ("/sys/fs/cgroup".into(), "cpu.max"),
                ("/v1/cpu,cpuacct".into(), "cpu.cfs_quota_us")
            ]
        );
    }

    #[test]
    fn quotas_that_lie_too_deep_are_found() {
        let root = tempfile::tempdir().expect("a folder");
        let mut folder = root.path().to_owned();
        for depth in 1..=DEEPEST_GROUP + 2 {
            folder.push(depth.to_string());
            fs::create_dir(&folder).expect("a folder");
            let quota = if depth == DEEPEST_GROUP + 2 {
                "max 100000\n"
            } else {
                "50000 100000\n"
            };
            fs::write(folder.join("cpu.max"), quota).expect("a file");
        }
        let hierarchy = Hierarchy {
            root: root.path().into(),
            file: "cpu.max",
            unlimited: "max",
        };
        let mut cgroups = Vec::new();
        collect(&hierarchy, root.path(), 0, &mut cgroups);
        let deepest = folder.parent().expect("the one above");
        assert_eq!(cgroups, [deepest.display().to_string()]);
    }
}
