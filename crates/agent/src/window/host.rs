// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the KVM that is loaded does with windows by itself: nothing, or no policy can be in force.

use std::{fs, path::Path};

use super::{Vendor, WindowError};

/// Multiplying and dividing by it leaves a window alone (`__grow_ple_window()`, arch/x86/kvm/x86.h, Linux 7.2).
const MOVES_NOTHING: u32 = 1;

/// The parameters of one of KVM's modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KvmWindow {
    pub(super) vendor: Vendor,
    /// The window of a new vCPU; at switches KVM raises any to this.
    pub(super) base: u32,
    /// Largest that the hardware takes.
    pub(super) max: u32,
    grow: u32,
    shrink: u32,
}

/// Names of the parameters: base, grow, shrink, and the widest window.
const fn names(vendor: Vendor) -> ([&'static str; 3], u32) {
    match vendor {
        Vendor::Amd => (
            [
                "pause_filter_count",
                "pause_filter_count_grow",
                "pause_filter_count_shrink",
            ],
            0xffff, // The VMCB's field has 16 bits.
        ),
        Vendor::Intel => (
            ["ple_window", "ple_window_grow", "ple_window_shrink"],
            u32::MAX - 1,
        ),
    }
}

impl KvmWindow {
    /// As loaded; `modules` is /sys/module.
    pub(super) fn of(modules: &Path) -> Result<KvmWindow, WindowError> {
        let vendor = [Vendor::Amd, Vendor::Intel]
            .into_iter()
            .find(|vendor| modules.join(vendor.module()).is_dir())
            .ok_or(WindowError::NoKvm)?;
        let ([base, grow, shrink], max) = names(vendor);
        let read = |name: &str| {
            let path = modules.join(vendor.module()).join("parameters").join(name);
            let number = fs::read_to_string(path).ok()?.trim().parse::<u32>().ok();
            number.or(None)
        };
        match (read(base), read(grow), read(shrink)) {
            (Some(base), Some(grow), Some(shrink)) => Ok(KvmWindow {
                vendor,
                base,
                max,
                grow,
                shrink,
            }),
            _ => Err(WindowError::NoPauseLoops {
                module: vendor.module(),
            }),
        }
    }

    /// Whether a policy whose windows go from `lowest` to `highest` can be in force.
    pub(super) fn check(&self, lowest: u32, highest: u32) -> Result<(), WindowError> {
        let module = self.vendor.module();
        if self.base == 0 {
            return Err(WindowError::NoPauseLoops { module });
        }
        // A base of 1 would make KVM add and subtract the 1 instead (the same function: `modifier < base`).
        let moves = self.grow != MOVES_NOTHING || self.shrink != MOVES_NOTHING || self.base < 2;
        if moves || lowest < self.base {
            let ([base, grow, shrink], _) = names(self.vendor);
            return Err(WindowError::KvmMoves {
                module,
                parameters: format!("{base}={} {grow}=1 {shrink}=1", lowest.max(2)),
            });
        }
        if highest > self.max {
            return Err(WindowError::TooWide { max: self.max });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(
        vendor: Vendor,
        values: [&str; 3],
    ) -> (tempfile::TempDir, Result<KvmWindow, WindowError>) {
        let folder = tempfile::tempdir().expect("a folder");
        let parameters = folder.path().join(vendor.module()).join("parameters");
        fs::create_dir_all(&parameters).expect("room");
        for (name, value) in names(vendor).0.iter().zip(values) {
            fs::write(parameters.join(name), format!("{value}\n")).expect("room");
        }
        let window = KvmWindow::of(folder.path());
        (folder, window)
    }

    #[test]
    fn a_kvm_that_leaves_windows_alone_is_taken() {
        for (vendor, most) in [(Vendor::Amd, 65_535), (Vendor::Intel, u32::MAX - 1)] {
            let (_folder, window) = host(vendor, ["375", "1", "1"]);
            let window = window.expect("parameters");
            assert_eq!((window.vendor, window.base), (vendor, 375));
            assert!(window.check(375, most).is_ok());
            let wide = window
                .check(375, u32::MAX)
                .expect_err("too wide")
                .to_string();
            assert!(wide.contains(&most.to_string()), "{wide}");
        }
    }

    #[test]
    fn one_that_moves_them_is_refused_with_what_to_load_it_with() {
        for values in [
            ["3000", "2", "0"],
            ["200", "1", "0"],
            ["200", "2", "1"],
            ["201", "1", "1"],
            ["1", "1", "1"],
        ] {
            let (_folder, window) = host(Vendor::Amd, values);
            let error = window
                .expect("parameters")
                .check(200, 200)
                .expect_err("moves");
            let said = error.to_string();
            let words =
                "pause_filter_count=200 pause_filter_count_grow=1 pause_filter_count_shrink=1";
            assert!(said.contains(words), "{said}");
        }
        let (_folder, none) = host(Vendor::Amd, ["0", "1", "1"]);
        assert!(none.expect("parameters").check(200, 200).is_err());
        let (_folder, broken) = host(Vendor::Amd, ["x", "1", "1"]);
        assert!(broken.is_err());
        let empty = tempfile::tempdir().expect("a folder");
        assert!(matches!(
            KvmWindow::of(empty.path()),
            Err(WindowError::NoKvm)
        ));
    }
}
