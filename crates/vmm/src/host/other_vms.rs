// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which other VMs run on this host: what holds an open KVM VM, whatever its name.

use std::{fs, io, path::Path};

/// How many KVM VMs other processes hold open. Without root only those of the same user are seen.
///
/// # Errors
/// When /proc cannot be read.
pub fn count_other_vms() -> io::Result<usize> {
    let own = std::process::id().to_string();
    let mut vms = 0;
    for process in fs::read_dir("/proc")?.flatten() {
        let name = process.file_name();
        let name = name.to_string_lossy();
        if name.bytes().all(|byte| byte.is_ascii_digit()) && name != own {
            vms += open_vms(&process.path().join("fd"));
        }
    }
    Ok(vms)
}

/// Descriptors in this folder that are KVM VMs (`kvm_dev_ioctl_create_vm` names the file "kvm-vm", virt/kvm/kvm_main.c);
/// a process that has ended or may not be looked at has none.
fn open_vms(descriptors: &Path) -> usize {
    let Ok(entries) = fs::read_dir(descriptors) else {
        return 0;
    };
    let target = |entry: fs::DirEntry| fs::read_link(entry.path()).ok();
    entries
        .flatten()
        .filter_map(target)
        .filter(|target| target.as_os_str() == "anon_inode:kvm-vm")
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_counted_by_what_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, target) in [
            ("3", "anon_inode:kvm-vm"),
            ("4", "anon_inode:kvm-vcpu:0"),
            ("5", "/dev/kvm"),
        ] {
            std::os::unix::fs::symlink(target, folder.path().join(name)).expect("a link");
        }
        assert_eq!(open_vms(folder.path()), 1);
        assert_eq!(open_vms(Path::new("/nonexistent")), 0);
    }
}
