// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cgroups with a CPU quota. Under sched_ext the kernel enforces none (`ops.cgroup_set_bandwidth()` only tells), so a
//! host that has one is not taken over.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::SteerError;

/// A hierarchy, the file that holds the quota there, and what it begins with when there is none.
struct Hierarchy {
    root: PathBuf,
    file: &'static str,
    unlimited: &'static str,
}

/// # Errors
/// [`SteerError::Quotas`] with every cgroup that has one.
pub(super) fn check() -> Result<(), SteerError> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut cgroups = Vec::new();
    for hierarchy in hierarchies(&mounts) {
        collect(&hierarchy, &hierarchy.root, &mut cgroups);
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

/// Adds the folders at and below `folder` that have a quota. One that goes away meanwhile has none.
fn collect(hierarchy: &Hierarchy, folder: &Path, cgroups: &mut Vec<String>) {
    let quota = fs::read_to_string(folder.join(hierarchy.file));
    if quota.is_ok_and(|quota| quota.split_whitespace().next() != Some(hierarchy.unlimited)) {
        cgroups.push(folder.display().to_string());
    }
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(hierarchy, &entry.path(), cgroups);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_quota_below_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, quota) in [
            ("a", "max 100000\n"),
            ("a/b", "50000 100000\n"),
            ("c", "max 1\n"),
        ] {
            let cgroup = folder.path().join(name);
            fs::create_dir(&cgroup).expect("a folder");
            fs::write(cgroup.join("cpu.max"), quota).expect("a file");
        }
        let hierarchy = Hierarchy {
            root: folder.path().into(),
            file: "cpu.max",
            unlimited: "max",
        };
        let mut cgroups = Vec::new();
        collect(&hierarchy, folder.path(), &mut cgroups);
        assert_eq!(cgroups, [folder.path().join("a/b").display().to_string()]);
    }
}
