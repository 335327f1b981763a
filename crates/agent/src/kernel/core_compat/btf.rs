// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of a kernel and its modules, from their files, and the candidates among them.

use std::{
    collections::HashMap,
    ffi::{CStr, c_int},
    rc::Rc,
};

use libbpf_rs::libbpf_sys::bpf_core_relo;

use super::{KernelFiles, KernelFilesError, elf};
use crate::kernel::btf::{KIND_STRUCT, KernelBtf, Kind};

/// `include/uapi/linux/btf.h`.
const KIND_ENUM: u32 = 6;
const KIND_ENUM64: u32 = 19;

/// Where vmlinux's types are.
const VMLINUX: usize = 0;

/// Generated from `native/core_relocation.h`.
#[allow(non_camel_case_types, missing_docs, dead_code)]
#[allow(clippy::all, clippy::undocumented_unsafe_blocks)]
mod raw {
    include!(concat!(env!("OUT_DIR"), "/core_relocation.rs"));
}

/// Room for what libbpf writes of a relocation (`spec_buf` of relo_core.c).
const SOUGHT_BYTES: usize = 256;

/// What a relocation comes to.
pub(super) enum Resolved {
    /// This number.
    To(u64),
    /// Nothing of that name: this was looked for.
    Nothing(String),
    /// Several that differ.
    Ambiguous(String),
}

/// A kernel's types, and where each name stands.
pub(super) struct Types {
    /// vmlinux first.
    all: Vec<Rc<KernelBtf>>,
    /// By name without flavour: (which of `all`, type).
    by_name: HashMap<String, Vec<(usize, u32)>>,
}

impl Types {
    pub fn of(kernel: &KernelFiles) -> std::result::Result<Types, KernelFilesError> {
        let read = |file: &str, bytes: &[u8], base: Option<&Rc<KernelBtf>>| {
            let refused = |what| KernelFilesError {
                file: file.to_owned(),
                what,
            };
            let elf = elf::read(bytes).ok_or(refused("is no ELF file of 64 bits"))?;
            let btf = elf::section(&elf, ".BTF").ok_or(refused(
                "has no BTF: it was built without CONFIG_DEBUG_INFO_BTF",
            ))?;
            let btf = KernelBtf::from_bytes(btf, base)
                .ok_or(refused("has BTF that libbpf does not read"))?;
            Ok(Rc::new(btf))
        };
        let mut all = vec![read("vmlinux", &kernel.vmlinux, None)?];
        for (name, bytes) in &kernel.modules {
            let module = read(name, bytes, all.first())?;
            all.push(module);
        }
        let mut by_name: HashMap<String, Vec<(usize, u32)>> = HashMap::new();
        for (which, btf) in all.iter().enumerate() {
            // A module's own types come after those of vmlinux.
            let first = if which == VMLINUX {
                1
            } else {
                all[VMLINUX].count()
            };
            for id in first..btf.count() {
                if let Some(name) = btf.name(id) {
                    by_name
                        .entry(essential(name).to_owned())
                        .or_default()
                        .push((which, id));
                }
            }
        }
        Ok(Types { all, by_name })
    }

    /// Types of that name and of a kind that goes with `kind`; those of modules only when vmlinux has none.
    fn candidates(&self, name: &str, kind: u32) -> Vec<raw::unspin_core_candidate> {
        let goes = |other: u32| {
            other == kind
                || [kind, other]
                    .iter()
                    .all(|one| [KIND_ENUM, KIND_ENUM64].contains(one))
        };
        let named = self
            .by_name
            .get(essential(name))
            .map_or(&[][..], Vec::as_slice);
        let of = |base: bool| {
            let fitting = named.iter().filter(move |(which, id)| {
                (*which == VMLINUX) == base && goes(self.all[*which].kind(*id))
            });
            fitting
                .map(|(which, id)| raw::unspin_core_candidate {
                    btf: self.all[*which].raw().cast(),
                    id: *id,
                })
                .collect::<Vec<_>>()
        };
        let base = of(true);
        if base.is_empty() { of(false) } else { base }
    }

    /// Computes one relocation of an object whose types are `local`.
    pub fn resolve(&self, local: &KernelBtf, relocation: &bpf_core_relo) -> Resolved {
        let name = local.name(relocation.type_id).unwrap_or("");
        let mut candidates = self.candidates(name, local.kind(relocation.type_id));
        let (mut value, mut sought) = (0, [0; SOUGHT_BYTES]);
        // SAFETY: all pointers are to live values, with the lengths of both lists; the candidates' objects live in `self`. Types
        // of `bpf_core_relo` and `btf` are libbpf's in both bindings. libbpf checks type numbers against `local`, and ends the
        // text within its bytes.
        let (outcome, sought) = unsafe {
            let outcome = raw::unspin_core_resolve(
                std::ptr::from_ref(relocation).cast(),
                local.raw().cast(),
                candidates.as_mut_ptr(),
                candidates.len() as c_int,
                &mut value,
                sought.as_mut_ptr(),
                sought.len() as _,
            );
            (outcome, CStr::from_ptr(sought.as_ptr()).to_string_lossy())
        };
        match outcome {
            raw::UNSPIN_CORE_VALUE => Resolved::To(value),
            raw::UNSPIN_CORE_NOTHING => Resolved::Nothing(path_in(&sought)),
            _ => Resolved::Ambiguous(path_in(&sought)),
        }
    }

    /// What is wrong with a kernel function that an object declares; `None`: it can be called.
    pub fn wrong_with(&self, local: &KernelBtf, function: &str) -> Option<String> {
        let named = self
            .by_name
            .get(essential(function))
            .map_or(&[][..], Vec::as_slice);
        let found = named.iter().find(|(which, id)| {
            self.all[*which].kind(*id) == Kind::Function as u32
                && self.all[*which].name(*id) == Some(essential(function))
        });
        let Some((which, id)) = found else {
            return Some(format!("function {function}"));
        };
        if !self.all[*which].callable(essential(function)) {
            return Some(format!(
                "function {function} without the argument that the verifier adds"
            ));
        }
        let declared = local.find(function, Kind::Function)?;
        // SAFETY: live objects, numbers of types that they have.
        let compatible = unsafe {
            raw::unspin_core_types_are_compatible(
                local.raw().cast(),
                local.prototype(declared)?,
                self.all[*which].raw().cast(),
                self.all[*which].prototype(*id)?,
            )
        };
        (compatible <= 0).then(|| format!("function {function} with these arguments"))
    }

    /// Whether there is a function or typedef of just that name.
    pub fn has(&self, name: &str, kind: Kind) -> bool {
        self.all.iter().any(|btf| btf.has(name, kind))
    }

    /// Members of a struct of vmlinux; `None`: it has none of that name.
    pub fn members(&self, name: &str) -> Option<Vec<&str>> {
        let vmlinux = &self.all[VMLINUX];
        let found = self.by_name.get(name)?.iter();
        let mut found =
            found.filter(|(which, id)| *which == VMLINUX && vmlinux.kind(*id) == KIND_STRUCT);
        Some(vmlinux.members(found.next()?.1))
    }
}

/// Up to `___`, which begins a flavour (libbpf's `bpf_core_essential_name_len()`: not at the beginning, nor before a `_`).
fn essential(name: &str) -> &str {
    let bytes = name.as_bytes();
    let flavour =
        |at: usize| bytes[at] != b'_' && bytes[at + 1..at + 4] == *b"___" && bytes[at + 4] != b'_';
    let last = (0..bytes.len().saturating_sub(4))
        .rev()
        .find(|at| flavour(*at));
    last.map_or(name, |at| &name[..=at])
}

/// What was looked for: "struct kvm_vcpu.vcpu_idx" of libbpf's "[12] struct kvm_vcpu.vcpu_idx (0:2 @ offset 12)".
fn path_in(sought: &str) -> String {
    if sought.is_empty() {
        return "a relocation that is none".to_owned();
    }
    let path = sought.split_once("] ").map_or(sought, |(_, rest)| rest);
    path.split_once(" (")
        .map_or(path, |(first, _)| first)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavours_end_a_name() {
        for (name, expected) in [
            ("task_struct___steer", "task_struct"),
            ("vcpu_vmx___before_6_15", "vcpu_vmx"),
            ("plain", "plain"),
            ("a___", "a___"),
            ("___a", "___a"),
            ("a____b", "a____b"),
            ("", ""),
        ] {
            assert_eq!(essential(name), expected);
        }
    }
}
