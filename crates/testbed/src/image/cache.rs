// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds kernel, modules and emulator in the cache folder that `make setup` fills.

use std::path::{Path, PathBuf};

use crate::boot::{bochs::BochsFiles, qemu::QemuFiles};
use crate::error::Error;
use crate::image::{kernel_image, unpacked};
use crate::options::{Options, Qemu, Vendor};

/// The oldest kernel the testbed accepts: the first with `CONFIG_SCHED_CLASS_EXT`.
pub const MINIMUM_KERNEL: (u32, u32) = (6, 12);

/// The modules that make `/dev/kvm`, each after those it needs, and whether a kernel may lack it (`ccp` is a module of
/// the generic kernel only; the cloud kernel is built without).
fn module_names(vendor: Vendor) -> &'static [(&'static str, bool)] {
    match vendor {
        Vendor::Amd => &[
            ("irqbypass", true),
            ("ccp", false),
            ("kvm", true),
            ("kvm-amd", true),
        ],
        Vendor::Intel => &[("irqbypass", true), ("kvm", true), ("kvm-intel", true)],
    }
}

const SETUP: &str = "make setup";

/// A kernel module in the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleFile {
    /// Its name as `/sys/module` has it: with underscores.
    pub name: String,
    /// Its file, `.ko` or `.ko.xz`.
    pub path: PathBuf,
}

/// An emulator and what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmulatorFiles {
    /// Of an AMD machine.
    Qemu(QemuFiles),
    /// Of an Intel machine.
    Bochs(BochsFiles),
}

impl EmulatorFiles {
    fn find(cache: &Path, vendor: Vendor, qemu: Qemu) -> Result<Self, Error> {
        if vendor == Vendor::Intel {
            let folder = cache.join("bochs/current");
            let files = BochsFiles { folder };
            for part in files.parts() {
                let what = "Bochs, the emulator of the Intel machine,";
                existing_by(part, what, vendor.set_up_by())?;
            }
            return Ok(Self::Bochs(files));
        }
        let emulator = cache.join("qemu/current");
        Ok(Self::Qemu(QemuFiles {
            program: existing(emulator.join("bin").join(qemu.file_name()), "the emulator")?,
            firmware: existing(emulator.join("share"), "the emulator's firmware")?,
        }))
    }

    /// The emulator's program.
    pub fn program(&self) -> PathBuf {
        match self {
            Self::Qemu(files) => files.program.clone(),
            Self::Bochs(files) => files.program(),
        }
    }
}

/// Everything the testbed needs from the cache, found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The emulator.
    pub emulator: EmulatorFiles,
    /// The kernel's bzImage.
    pub vmlinuz: PathBuf,
    /// The kernel's version, such as `7.2.12+deb14-cloud-amd64`.
    pub kernel_version: String,
    /// The modules in loading order.
    pub modules: Vec<ModuleFile>,
}

/// The cache folder: `UNSPIN_CACHE`, else `XDG_CACHE_HOME/unspin`, else `HOME/.cache/unspin`.
///
/// # Errors
/// [`Error::NoCache`] when none of the three is set.
pub fn cache_from_environment() -> Result<PathBuf, Error> {
    cache_from(|name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    })
}

fn cache_from(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, Error> {
    variable("UNSPIN_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|folder| folder.join("unspin")))
        .or_else(|| variable("HOME").map(|folder| folder.join(".cache/unspin")))
        .ok_or(Error::NoCache)
}

impl Machine {
    /// Looks for everything of an AMD machine below `cache`.
    ///
    /// # Errors
    /// [`Error::NotSetUp`] naming the first thing missing, [`Error::KernelTooOld`].
    pub fn find(cache: &Path, qemu: Qemu) -> Result<Self, Error> {
        Self::with_kernel(cache, Vendor::Amd, qemu, &cache.join("kernel/current"))
    }

    /// Looks for everything of an Intel machine below `cache`.
    ///
    /// # Errors
    /// As [`Machine::find`].
    pub fn find_intel(cache: &Path) -> Result<Self, Error> {
        let kernel = cache.join("kernel/current");
        Self::with_kernel(cache, Vendor::Intel, Qemu::Unspin, &kernel)
    }

    /// What these options ask for: perhaps with the kernel of another folder, laid out as set-up does it: `vmlinuz` and
    /// `modules/`, in a folder called after its release.
    ///
    /// # Errors
    /// As [`Machine::find`].
    pub fn for_options(options: &Options) -> Result<Self, Error> {
        let current = options.cache.join("kernel/current");
        let kernel = options.kernel.as_deref().unwrap_or(&current);
        Self::with_kernel(&options.cache, options.vendor, options.qemu, kernel)
    }

    fn with_kernel(cache: &Path, vendor: Vendor, qemu: Qemu, kernel: &Path) -> Result<Self, Error> {
        let kernel = existing(kernel.into(), "the kernel")?;
        let kernel = kernel.canonicalize().map_err(|source| Error::File {
            doing: "resolving",
            path: kernel,
            source,
        })?;
        let kernel_version = kernel
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        check_version(&kernel_version)?;
        let vmlinuz = existing(kernel.join("vmlinuz"), "the kernel's image")?;
        let machine = Self {
            emulator: EmulatorFiles::find(cache, vendor, qemu)?,
            vmlinuz,
            kernel_version,
            modules: find_modules(&kernel.join("modules"), vendor)?,
        };
        Ok(machine)
    }
}

fn existing(path: PathBuf, what: &str) -> Result<PathBuf, Error> {
    existing_by(path, what, SETUP)
}

/// The path, if something is there; else that `command` puts it there.
fn existing_by(path: PathBuf, what: &str, command: &'static str) -> Result<PathBuf, Error> {
    if path.exists() {
        Ok(path)
    } else {
        Err(Error::NotSetUp {
            what: what.into(),
            path,
            command,
        })
    }
}

fn check_version(version: &str) -> Result<(), Error> {
    let mut numbers = version
        .split(['.', '-', '+'])
        .map(|part| part.parse::<u32>().ok());
    let found = (
        numbers.next().flatten().unwrap_or(0),
        numbers.next().flatten().unwrap_or(0),
    );
    if found >= MINIMUM_KERNEL {
        return Ok(());
    }
    let minimum = format!("{}.{}", MINIMUM_KERNEL.0, MINIMUM_KERNEL.1);
    Err(Error::KernelTooOld {
        found: version.into(),
        minimum,
    })
}

/// A kernel's files as they are to be read: nothing in them is compressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackedKernel {
    /// The ELF file inside vmlinuz.
    pub vmlinux: PathBuf,
    /// KVM's modules, those that there are.
    pub modules: Vec<ModuleFile>,
}

/// Unpacks the kernel of a folder laid out as set-up does it, beside the packed files.
///
/// # Errors
/// [`Error::NotSetUp`] without a vmlinuz, [`Error::File`] when something cannot be read, written or unpacked.
pub fn unpacked_kernel(folder: &Path) -> Result<UnpackedKernel, Error> {
    let vmlinuz = existing(folder.join("vmlinuz"), "the kernel's image")?;
    let mut files = Vec::new();
    collect(&folder.join("modules"), &mut files);
    let mut modules = Vec::new();
    for name in ["kvm", "kvm-amd", "kvm-intel"] {
        let wanted = [format!("{name}.ko.xz"), format!("{name}.ko")];
        let named = |wanted: &String| files.iter().find(|file| file.ends_with(wanted));
        if let Some(path) = wanted.iter().find_map(named) {
            modules.push(ModuleFile {
                name: name.replace('-', "_"),
                path: unpacked::module(path)?,
            });
        }
    }
    Ok(UnpackedKernel {
        vmlinux: kernel_image::bootable(&vmlinuz)?,
        modules,
    })
}

fn find_modules(folder: &Path, vendor: Vendor) -> Result<Vec<ModuleFile>, Error> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let mut modules = Vec::new();
    for &(name, required) in module_names(vendor) {
        // The packed file first: the other may be the copy that an earlier run unpacked.
        let wanted = [format!("{name}.ko.xz"), format!("{name}.ko")];
        let named = |wanted: &String| files.iter().find(|file| file.ends_with(wanted));
        let file = wanted.iter().find_map(named);
        match file {
            Some(path) => modules.push(ModuleFile {
                name: name.replace('-', "_"),
                path: path.clone(),
            }),
            None if required => {
                return Err(Error::NotSetUp {
                    what: format!("the kernel module {name}"),
                    path: folder.into(),
                    command: SETUP,
                });
            }
            None => {}
        }
    }
    Ok(modules)
}

/// Adds every file below `folder`; a folder that cannot be read counts as empty and shows as a missing module.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(version: &str) -> tempfile::TempDir {
        let cache = tempfile::tempdir().expect("a temporary folder");
        let kernel = cache.path().join("kernel").join(version);
        for file in [
            "vmlinuz",
            "modules/a/kvm.ko.xz",
            "modules/a/kvm-amd.ko.xz",
            "modules/b/irqbypass.ko",
        ] {
            let path = kernel.join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folder");
            std::fs::write(path, "").expect("file");
        }
        std::os::unix::fs::symlink(version, cache.path().join("kernel/current")).expect("link");
        std::fs::create_dir_all(cache.path().join("qemu/key/share")).expect("folder");
        std::fs::create_dir_all(cache.path().join("qemu/key/bin")).expect("folder");
        std::fs::write(cache.path().join("qemu/key/bin/qemu-stock"), "").expect("file");
        std::os::unix::fs::symlink("key", cache.path().join("qemu/current")).expect("link");
        cache
    }

    #[test]
    fn a_full_cache_is_found_with_modules_in_loading_order() {
        let cache = filled("7.2.12+deb14-cloud-amd64");
        let machine = Machine::find(cache.path(), Qemu::Stock).expect("complete");
        assert_eq!(machine.kernel_version, "7.2.12+deb14-cloud-amd64");
        let names: Vec<_> = machine
            .modules
            .iter()
            .map(|module| module.name.as_str())
            .collect();
        assert_eq!(names, ["irqbypass", "kvm", "kvm_amd"]);
    }

    #[test]
    fn a_packed_module_goes_before_its_unpacked_copy() {
        let cache = filled("7.2.12");
        let folder = cache.path().join("kernel/current/modules/a");
        std::fs::write(folder.join("kvm.ko"), "").expect("file");
        let machine = Machine::find(cache.path(), Qemu::Stock).expect("complete");
        assert!(machine.modules[1].path.ends_with("a/kvm.ko.xz"));
    }

    #[test]
    fn what_is_missing_is_named_with_the_command_that_helps() {
        for (gone, said) in [
            ("kernel/current", "the kernel is"),
            ("kernel/current/vmlinuz", "image"),
            ("kernel/current/modules/a/kvm-amd.ko.xz", "kvm-amd"),
            ("qemu/current/bin/qemu-stock", "emulator"),
        ] {
            let cache = filled("7.2.12");
            std::fs::remove_file(cache.path().join(gone)).expect("there");
            let message = Machine::find(cache.path(), Qemu::Stock)
                .expect_err("incomplete")
                .to_string();
            assert!(
                message.contains(said) && message.contains("`make setup`"),
                "{gone}: {message}"
            );
        }
        let nothing =
            Machine::find(Path::new("/nonexistent"), Qemu::Unspin).expect_err("nothing there");
        assert!(nothing.to_string().contains("make setup"));
    }

    #[test]
    fn an_intel_machine_has_another_emulator_and_another_module() {
        let cache = filled("7.2.12");
        let error = |cache: &Path| {
            let missing = Machine::find_intel(cache).expect_err("incomplete");
            missing.to_string()
        };
        let message = error(cache.path());
        assert!(message.contains("Bochs") && message.contains("`make intel`"));
        let folder = cache.path().join("bochs/current");
        for part in (BochsFiles { folder }).parts() {
            std::fs::create_dir_all(part).expect("folder");
        }
        let message = error(cache.path());
        assert!(message.contains("kvm-intel") && message.contains("`make setup`"));
        let module = "kernel/current/modules/a/kvm-intel.ko.xz";
        std::fs::write(cache.path().join(module), "").expect("file");
        let machine = Machine::find_intel(cache.path()).expect("complete");
        let names = machine.modules.iter().map(|module| module.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["irqbypass", "kvm", "kvm_intel"]);
        Machine::find(cache.path(), Qemu::Stock).expect("the other is there as before");
    }

    #[test]
    fn an_old_kernel_is_refused_with_both_versions() {
        for version in ["6.11.9-amd64", "5.10.0", "6", "nonsense"] {
            let message = Machine::find(filled(version).path(), Qemu::Stock)
                .expect_err("old")
                .to_string();
            assert!(
                message.contains(version)
                    && message.contains("6.12")
                    && message.contains("make setup"),
                "{message}"
            );
        }
        for version in ["6.12.0", "6.12+x", "7.2.12+deb14-cloud-amd64", "10.0-rc1"] {
            Machine::find(filled(version).path(), Qemu::Stock).expect(version);
        }
    }

    #[test]
    fn the_cache_folder_follows_the_environment() {
        let with = |set: &'static [(&str, &str)]| {
            cache_from(|name| {
                set.iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| PathBuf::from(value))
            })
        };
        assert_eq!(
            with(&[("UNSPIN_CACHE", "/a"), ("HOME", "/h")]).expect("set"),
            Path::new("/a")
        );
        assert_eq!(
            with(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]).expect("set"),
            Path::new("/x/unspin")
        );
        assert_eq!(
            with(&[("HOME", "/h")]).expect("set"),
            Path::new("/h/.cache/unspin")
        );
        assert!(matches!(with(&[]), Err(Error::NoCache)));
    }
}
