// SPDX-License-Identifier: MIT OR Apache-2.0
//! The module `unspin_ple` (kmod/): found, loaded with the layout of the KVM that runs, taken out again.

use std::{
    ffi::{CStr, CString},
    fs::{self, File},
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{WindowError, layout::Layout};
use crate::kernel::requirements;

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
}
