// SPDX-License-Identifier: MIT OR Apache-2.0
//! The types of a kernel and its modules, from their files, and the candidates among them.

use std::{
    collections::HashMap,
    ffi::{CStr, c_char, c_int},
    rc::Rc,
};

use libbpf_rs::libbpf_sys::{self, bpf_core_relo};

use super::{KernelFiles, KernelFilesError, elf::Elf};
use crate::kernel::btf::{KIND_STRUCT, KernelBtf, Kind};

/// `include/uapi/linux/btf.h`.
const KIND_ENUM: u32 = 6;
const KIND_ENUM64: u32 = 19;

/// Where vmlinux's types are.
const VMLINUX: usize = 0;

/// As libbpf's relo_core.h has it (1.7).
#[repr(C)]
struct Candidate {
    btf: *const libbpf_sys::btf,
    id: u32,
}

#[repr(C)]
struct Candidates {
    list: *mut Candidate,
    length: c_int,
}

#[repr(C)]
#[derive(Default)]
struct Result {
    _orig_val: u64,
    new_val: u64,
    poison: bool,
    _validate: bool,
    _fail_memsz_adjust: bool,
    _sizes: [u32; 4],
}

/// Room for three `struct bpf_core_spec`, 1,320 bytes each, of which the first is what was looked for.
#[repr(C, align(8))]
struct Scratch([u8; 8192]);

unsafe extern "C" {
    fn bpf_core_calc_relo_insn(
        program: *const c_char,
        relocation: *const bpf_core_relo,
        index: c_int,
        local: *const libbpf_sys::btf,
        candidates: *mut Candidates,
        scratch: *mut Scratch,
        result: *mut Result,
    ) -> c_int;
    fn bpf_core_format_spec(to: *mut c_char, bytes: usize, spec: *const Scratch) -> c_int;
    fn bpf_core_types_are_compat(
        local: *const libbpf_sys::btf,
        local_id: u32,
        target: *const libbpf_sys::btf,
        target_id: u32,
    ) -> c_int;
}

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
            let elf = Elf::read(bytes).ok_or(refused("is no ELF file of 64 bits"))?;
            let btf = elf.section(".BTF").ok_or(refused(
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
    fn candidates(&self, name: &str, kind: u32) -> Vec<Candidate> {
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
                .map(|(which, id)| Candidate {
                    btf: self.all[*which].raw(),
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
        let mut list = self.candidates(name, local.kind(relocation.type_id));
        let mut candidates = Candidates {
            list: list.as_mut_ptr(),
            length: list.len() as c_int,
        };
        let (mut scratch, mut result) = (Scratch([0; 8192]), Result::default());
        // SAFETY: all pointers are to live values of libbpf's own layout; the candidates' objects live in `self`. libbpf
        // checks type numbers against `local` and gives an error for those that are wrong.
        let status = unsafe {
            bpf_core_calc_relo_insn(
                c"fit".as_ptr(),
                relocation,
                0,
                local.raw(),
                &mut candidates,
                &mut scratch,
                &mut result,
            )
        };
        match (status, result.poison) {
            (0, false) => Resolved::To(result.new_val),
            (0, true) => Resolved::Nothing(said(&scratch)),
            _ => Resolved::Ambiguous(said(&scratch)),
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
            bpf_core_types_are_compat(
                local.raw(),
                local.prototype(declared)?,
                self.all[*which].raw(),
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
fn said(scratch: &Scratch) -> String {
    let mut to = [0; 256];
    if scratch.0.iter().take(8).all(|byte| *byte == 0) {
        return "a relocation that is none".to_owned();
    }
    // SAFETY: the first spec of the scratch memory, which bpf_core_calc_relo_insn() has filled; at most so many bytes are
    // written, ended by a 0.
    let text = unsafe {
        bpf_core_format_spec(to.as_mut_ptr(), to.len(), scratch);
        CStr::from_ptr(to.as_ptr()).to_string_lossy()
    };
    let text = text.split_once("] ").map_or(&*text, |(_, rest)| rest);
    text.split_once(" (")
        .map_or(text, |(first, _)| first)
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
