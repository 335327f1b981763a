// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether our BPF programs fit a kernel that does not run: every CO-RE relocation, kernel function, hook and member of
//! `struct sched_ext_ops` is looked for in the BTF of its files.
//!
//! Relocations are computed by libbpf's own `bpf_core_calc_relo_insn()`, from candidates found as `libbpf.c` finds them: in
//! vmlinux, and only where that has none in the modules. One that finds nothing is no fault where the program asks first
//! (`bpf_core_type_exists()` and the like): `reach` says which instructions can still run.

mod btf;
mod elf;
mod reach;
mod relocations;

use btf::Types;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// A kernel's files, unpacked.
pub struct KernelFiles {
    /// The ELF file inside vmlinuz.
    pub vmlinux: Vec<u8>,
    /// Its modules that matter here: name as in `/sys/module`, ELF file.
    pub modules: Vec<(String, Vec<u8>)>,
}

/// One program on one kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFit {
    /// The object: "steer".
    pub object: &'static str,
    /// Section and function: "tp_btf/kvm_entry on_kvm_entry".
    pub program: String,
    /// CO-RE relocations in it and in the functions that it calls.
    pub relocations: usize,
    /// Kernel functions that it calls.
    pub functions: usize,
    /// Of the relocations, those that find nothing where the program has asked first.
    pub guarded: Vec<String>,
    /// What it needs and this kernel has not; empty: it fits.
    pub missing: Vec<String>,
}

/// Files that are none of a kernel.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file} {what}")]
pub struct KernelFilesError {
    file: String,
    what: &'static str,
}

/// Every program of every object of `bpf/`, in the order of the files.
///
/// # Errors
/// [`KernelFilesError`] names the file without BTF, or with BTF that libbpf does not read.
///
/// # Panics
/// When one of our own objects is not what clang makes.
pub fn core_compat(kernel: &KernelFiles) -> Result<Vec<ProgramFit>, KernelFilesError> {
    let types = Types::of(kernel)?;
    let fits = OBJECTS.into_iter().flat_map(|(name, bytes)| {
        let object = elf::read(bytes).expect("an object of our own");
        relocations::programs(name, &object, &types)
    });
    Ok(fits.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel is files of others: nothing in them may do worse than be refused.
    #[test]
    fn what_is_no_kernel_is_refused() {
        let mut broken = OBJECTS[0].1.to_vec();
        let section = broken
            .windows(4)
            .position(|bytes| bytes == b"\x9f\xeb\x01\0");
        broken[section.expect("BTF") + 8] ^= 0xff;
        for vmlinux in [Vec::new(), b"\x7fELF".to_vec(), vec![0; 4096], broken] {
            let kernel = KernelFiles {
                vmlinux,
                modules: Vec::new(),
            };
            let error = core_compat(&kernel).expect_err("no kernel").to_string();
            assert!(error.starts_with("vmlinux "), "{error}");
        }
        for cut in (0..OBJECTS[0].1.len()).step_by(97) {
            let vmlinux = OBJECTS[0].1[..cut].to_vec();
            let kernel = KernelFiles {
                vmlinux,
                modules: Vec::new(),
            };
            assert!(core_compat(&kernel).is_err(), "{cut} bytes");
        }
    }

    /// Any BTF will do for a kernel: that of our own objects has next to nothing that a program needs.
    #[test]
    fn what_is_missing_is_named() {
        let kernel = KernelFiles {
            vmlinux: OBJECTS[0].1.to_vec(),
            modules: Vec::new(),
        };
        let fits = core_compat(&kernel).expect("BTF");
        assert!(fits.len() > 30, "{}", fits.len());
        let of = |program: &str| {
            let found = fits
                .iter()
                .find(|fit| fit.object == "steer" && fit.program.starts_with(program));
            found
                .unwrap_or_else(|| panic!("{program}"))
                .missing
                .join("; ")
        };
        assert!(of("struct_ops/dispatch ").contains("function scx_bpf_dsq_move_to_local"));
        assert!(of("struct_ops/dispatch ").contains("struct sched_ext_ops"));
        assert!(of("tp_btf/kvm_entry ").contains("tracepoint kvm_entry"));
        assert!(of("fentry/kvm_destroy_vm ").contains("function kvm_destroy_vm"));
        let on_exit = fits
            .iter()
            .find(|fit| fit.program.starts_with("tp_btf/kvm_exit "))
            .expect("observe has it");
        assert!(on_exit.relocations > 5, "{on_exit:?}");
    }
}
