// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which commands will work with a kernel that is installed on this machine and does not run.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use unspin_report::row;

use super::kernel::{KernelFit, ProgramRow, fit};
use crate::Error;

/// Commands, and the BPF objects that each loads.
const COMMANDS: [(&str, &[&str]); 3] = [
    ("serve", &["watch", "observe"]),
    ("steer", &["steer", "useful_time"]),
    ("record", &["observe"]),
];

row! {
    "kernel_commands", ["doctor"];
    /// Whether a command will work with a kernel (`doctor --release`).
    pub struct KernelCommandRow {
        /// The command.
        pub command: &'static str = ("unspin", Text),
        /// KVM's module, or `none`.
        pub module: &'static str = ("KVM for", Text),
        /// BPF programs of it that find all that they need.
        pub fit: usize = ("programs that fit", Count),
        /// All that it has, those included that it leaves out where the kernel has no use for them.
        pub programs: usize = ("of", Count),
        /// What the others lack, with commas between.
        pub missing: String = ("lacking", Text),
    }
}

/// How the kernel of that release, installed below `root`, fits.
///
/// # Errors
/// When none of that release is installed, or it cannot be read.
pub fn installed(root: &Path, release: &str) -> Result<KernelFit, Error> {
    let copy = copied(root, release)?;
    fit(copy.path())
}

/// Kernel and modules of KVM in a folder as [`fit`] wants it: what is packed is unpacked there and not beside the system's.
fn copied(root: &Path, release: &str) -> Result<tempfile::TempDir, Error> {
    let modules = root.join("lib/modules").join(release);
    let images = [
        root.join("boot").join(format!("vmlinuz-{release}")),
        modules.join("vmlinuz"),
    ];
    let Some(image) = images.iter().find(|image| image.is_file()) else {
        return Err(Error::Usage(format!(
            "--release {release}: no such kernel is installed: neither {} nor {} is there",
            images[0].display(),
            images[1].display()
        )));
    };
    let folder = tempfile::tempdir().map_err(anyhow::Error::from)?;
    let copy = |from: &Path, to: &Path| {
        let copied = fs::copy(from, to).map(drop);
        copied.with_context(|| format!("copying {}", from.display()))
    };
    copy(image, &folder.path().join("vmlinuz"))?;
    let into = folder.path().join("modules");
    fs::create_dir(&into).map_err(anyhow::Error::from)?;
    for module in kvm_modules(&modules.join("kernel/arch/x86/kvm")) {
        copy(&module, &into.join(module.file_name().unwrap_or_default()))?;
    }
    Ok(folder)
}

/// `kvm.ko.xz`, `kvm-amd.ko` and the like; none where KVM is built in.
fn kvm_modules(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let of_kvm = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split(".ko").next().unwrap_or_default();
        ["kvm", "kvm-amd", "kvm-intel"].contains(&stem)
    };
    files.filter(of_kvm).collect()
}

/// What each command that loads programs has of them, for each module of KVM.
pub fn commands(programs: &[ProgramRow]) -> Vec<KernelCommandRow> {
    let mut modules: Vec<&'static str> = programs.iter().map(|row| row.module).collect();
    modules.dedup();
    let rows = modules.into_iter().flat_map(|module| {
        COMMANDS.map(|(command, objects)| {
            let of_command =
                |row: &&ProgramRow| row.module == module && objects.contains(&row.object);
            let all: Vec<_> = programs.iter().filter(of_command).collect();
            let lacking = all.iter().filter(|row| !row.fits);
            let mut missing: Vec<&str> = lacking.flat_map(|row| row.missing.split(", ")).collect();
            missing.sort_unstable();
            missing.dedup();
            KernelCommandRow {
                command,
                module,
                fit: all.iter().filter(|row| row.fits).count(),
                programs: all.len(),
                missing: missing.join(", "),
            }
        })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: &str = "7.2-test";

    #[test]
    fn a_kernel_is_found_where_distributions_put_it() {
        for image in ["boot/vmlinuz-7.2-test", "lib/modules/7.2-test/vmlinuz"] {
            let root = tempfile::tempdir().expect("a folder");
            let kvm = root.path().join("lib/modules/7.2-test/kernel/arch/x86/kvm");
            fs::create_dir_all(&kvm).expect("made");
            fs::create_dir_all(root.path().join("boot")).expect("made");
            fs::write(root.path().join(image), "kernel").expect("written");
            for name in ["kvm.ko.xz", "kvm-amd.ko", "kvm-intel.ko.zst", "other.ko"] {
                fs::write(kvm.join(name), name).expect("written");
            }
            let copy = copied(root.path(), RELEASE).expect("a kernel");
            let kernel = fs::read_to_string(copy.path().join("vmlinuz"));
            assert_eq!(kernel.expect("copied"), "kernel");
            let modules = fs::read_dir(copy.path().join("modules")).expect("a folder");
            let mut names: Vec<_> = modules.flatten().map(|file| file.file_name()).collect();
            names.sort();
            assert_eq!(names, ["kvm-amd.ko", "kvm-intel.ko.zst", "kvm.ko.xz"]);
        }
    }

    #[test]
    fn one_that_is_not_installed_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let refused = copied(root.path(), RELEASE).err();
        let says = refused.expect("refused").to_string();
        assert!(says.contains("boot/vmlinuz-7.2-test"), "{says}");
    }

    #[test]
    fn each_command_has_its_programs() {
        let row = |object, module, missing: &str| ProgramRow {
            object,
            program: "p".into(),
            module,
            relocations: 0,
            functions: 0,
            fits: missing.is_empty(),
            missing: missing.into(),
            guarded: String::new(),
        };
        let rows = commands(&[
            row("watch", "kvm_amd", ""),
            row("observe", "kvm_amd", "b, a"),
            row("steer", "kvm_amd", "a"),
            row("useful_time", "kvm_intel", ""),
        ]);
        let said = |command: &str, module: &str| {
            let mut rows = rows.iter();
            let row = rows.find(|row| (row.command, row.module) == (command, module));
            let row = row.expect("a row");
            (row.fit, row.programs, row.missing.clone())
        };
        assert_eq!(said("serve", "kvm_amd"), (1, 2, "a, b".into()));
        assert_eq!(said("steer", "kvm_amd"), (0, 1, "a".into()));
        assert_eq!(said("steer", "kvm_intel"), (1, 1, String::new()));
        assert_eq!(said("record", "kvm_intel"), (0, 0, String::new()));
    }
}
