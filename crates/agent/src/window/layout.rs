// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where fields lie in the structs that KVM keeps for itself, by the BTF of the KVM that is loaded, in the words of the
//! module `unspin_ple`.

use std::fmt;

use super::WindowError;
use crate::kernel::btf::KernelBtf;

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
