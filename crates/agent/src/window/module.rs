// SPDX-License-Identifier: MIT OR Apache-2.0
//! The module `unspin_ple` (kmod/): found, loaded with the layout of the KVM that runs, taken out again; and that layout: where
//! KVM keeps the window, by its BTF.

use std::{
    ffi::{CStr, CString},
    fmt,
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    time::Duration,
};

use super::WindowError;
use crate::kernel::{btf::KernelBtf, requirements};

const NAME: &str = "unspin_ple";
const C_NAME: &CStr = c"unspin_ple";
/// 20 ms apart.
const REMOVAL_TRIES: u32 = 50;

/// The module, loaded. Who loaded it takes it out.
#[derive(Debug)]
pub(super) struct PleModule {
    ours: bool,
}

/// Where the module is looked for on this host: where modules of users' own are installed.
pub fn module_path() -> PathBuf {
    Path::new("/lib/modules")
        .join(requirements::release())
        .join("extra/unspin_ple.ko")
}

/// Whether it is loaded, or installed.
pub(super) fn is_here() -> bool {
    Path::new("/sys/module").join(NAME).is_dir() || module_path().is_file()
}

impl PleModule {
    /// Loaded from that file, unless it is there already with the same layout.
    pub(super) fn load(file: &Path, layout: &Layout) -> Result<PleModule, WindowError> {
        let parameters = Path::new("/sys/module").join(NAME).join("parameters");
        if parameters.is_dir() {
            return match agrees(&parameters, layout) {
                true => Ok(PleModule { ours: false }),
                false => Err(WindowError::OtherLayout),
            };
        }
        let module = File::open(file).map_err(|source| WindowError::NoModule {
            path: file.into(),
            kernel: requirements::release(),
            source,
        })?;
        let words = CString::new(layout.to_string()).expect("names and digits");
        // SAFETY: an open descriptor, a terminated string and no flags; the kernel reads no other memory of ours.
        let result = unsafe {
            libc::syscall(
                libc::SYS_finit_module,
                module.as_raw_fd(),
                words.as_ptr(),
                0,
            )
        };
        if result < 0 {
            return Err(WindowError::Refused {
                path: file.into(),
                source: io::Error::last_os_error(),
            });
        }
        Ok(PleModule { ours: true })
    }
}

/// Whether every parameter is what it was loaded with.
fn agrees(parameters: &Path, layout: &Layout) -> bool {
    layout.0.iter().all(|(name, at)| {
        let loaded = fs::read_to_string(parameters.join(name));
        loaded.is_ok_and(|loaded| loaded.trim() == at.to_string())
    })
}

impl Drop for PleModule {
    /// After the programs that call it. The kernel lets go of their hold a moment after their last descriptor is closed; a
    /// failure (another's programs use it too) leaves it loaded, which harms nobody.
    fn drop(&mut self) {
        for _ in 0..if self.ours { REMOVAL_TRIES } else { 0 } {
            // SAFETY: a terminated string and a flag.
            let result = unsafe {
                libc::syscall(libc::SYS_delete_module, C_NAME.as_ptr(), libc::O_NONBLOCK)
            };
            if result == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Whose virtualisation, and its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// `kvm_amd`.
    Amd,
    /// `kvm_intel`.
    Intel,
}

impl Vendor {
    /// The module's name.
    pub(super) fn module(self) -> &'static str {
        match self {
            Vendor::Amd => "kvm_amd",
            Vendor::Intel => "kvm_intel",
        }
    }
}

/// A parameter of the module, and the field that it is about: a struct and a path, empty for the struct's size.
type Field = (&'static str, &'static str, &'static [&'static str]);

const COMMON: [Field; 2] = [
    ("vcpu_bytes", "kvm_vcpu", &[]),
    ("vcpu_pid", "kvm_vcpu", &["pid"]),
];
const AMD: [Field; 5] = [
    ("svm_bytes", "vcpu_svm", &[]),
    ("svm_vmcb", "vcpu_svm", &["vmcb"]),
    ("svm_vmcb01", "vcpu_svm", &["vmcb01", "ptr"]),
    (
        "vmcb_filter_count",
        "vmcb",
        &["control", "pause_filter_count"],
    ),
    ("vmcb_clean", "vmcb", &["control", "clean"]),
];
const INTEL: [Field; 3] = [
    ("vmx_bytes", "vcpu_vmx", &[]),
    ("vmx_window", "vcpu_vmx", &["ple_window"]),
    ("vmx_window_dirty", "vcpu_vmx", &["ple_window_dirty"]),
];

/// The module's parameters, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout(pub(super) Vec<(&'static str, u32)>);

impl Layout {
    /// Of the running kernel.
    pub(super) fn read(vendor: Vendor) -> Result<Layout, WindowError> {
        let btf = KernelBtf::module(vendor.module()).ok_or(WindowError::NoKvmBtf {
            module: vendor.module(),
        })?;
        Layout::of(&btf, vendor)
    }

    /// By that BTF. The common part comes from the vendor's module too: what it was built against.
    pub(super) fn of(btf: &KernelBtf, vendor: Vendor) -> Result<Layout, WindowError> {
        let own: &[Field] = match vendor {
            Vendor::Amd => &AMD,
            Vendor::Intel => &INTEL,
        };
        let fields = COMMON.iter().chain(own);
        let found = fields.map(|(parameter, name, path)| {
            let at = match path {
                [] => btf.struct_bytes(name),
                path => btf.field_offset(name, path),
            };
            at.map(|at| (*parameter, at))
                .ok_or_else(|| WindowError::NoField {
                    module: vendor.module(),
                    field: [&[*name], *path].concat().join("."),
                })
        });
        Ok(Layout(found.collect::<Result<_, _>>()?))
    }
}

impl fmt::Display for Layout {
    /// As the module takes them.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self
            .0
            .iter()
            .map(|(name, at)| format!("{name}={at}"))
            .collect();
        out.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_is_there_has_to_agree() {
        let folder = tempfile::tempdir().expect("a folder");
        let layout = Layout(vec![("vcpu_bytes", 7000), ("vcpu_pid", 80)]);
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("room");
        };
        write("vcpu_bytes", "7000\n");
        assert!(!agrees(folder.path(), &layout), "one is missing");
        write("vcpu_pid", "80\n");
        assert!(agrees(folder.path(), &layout));
        write("vcpu_pid", "88\n");
        assert!(!agrees(folder.path(), &layout));
    }

    #[test]
    fn without_the_module_it_is_said_how_to_get_it() {
        let layout = Layout(Vec::new());
        let error = PleModule::load(Path::new("/no/unspin_ple.ko"), &layout).expect_err("no file");
        let said = error.to_string();
        assert!(
            said.contains("make ple-module") && said.contains("/no/unspin_ple.ko"),
            "{said}"
        );
    }

    #[test]
    fn a_layout_is_the_modules_parameters() {
        let layout = Layout(vec![("vcpu_bytes", 7000), ("vcpu_pid", 80)]);
        assert_eq!(layout.to_string(), "vcpu_bytes=7000 vcpu_pid=80");
    }

    #[test]
    fn a_field_that_is_not_there_is_named() {
        let Some(btf) = KernelBtf::vmlinux() else {
            return;
        };
        assert_eq!(btf.field_offset("list_head", &["next"]), Some(0));
        assert_eq!(btf.field_offset("list_head", &["prev"]), Some(8));
        assert_eq!(btf.struct_bytes("list_head"), Some(16));
        assert_eq!(btf.field_offset("list_head", &["nobody"]), None);
        assert_eq!(btf.field_offset("unspin_no_struct", &["next"]), None);
        assert_eq!(
            btf.field_offset("list_head", &["next", "prev"]),
            None,
            "behind a pointer"
        );
    }
}
