// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether our BPF programs fit a kernel that does not run.

use std::{fs, path::Path};

use anyhow::Context;
use unspin_agent::{KernelFiles, ProgramFit, core_compat};
use unspin_report::row;
use unspin_testbed::{UnpackedKernel, unpacked_kernel};

use crate::Error;

/// Modules of the two makers; a host loads one of them.
const MAKERS: [&str; 2] = ["kvm_amd", "kvm_intel"];

row! {
    "programs", ["doctor"];
    /// Whether one of our BPF programs fits another kernel (`doctor --kernel`).
    pub struct ProgramRow {
        /// The BPF object that it is in.
        pub object: &'static str = ("object", Text),
        /// Its section and function.
        pub program: String = ("program", Text),
        /// KVM's module that it was checked with, or `none`.
        pub module: &'static str = ("KVM for", Text),
        /// CO-RE relocations in it and in the functions that it calls.
        pub relocations: usize = ("relocations", Count),
        /// Kernel functions that it calls.
        pub functions: usize = ("functions", Count),
        /// Whether the kernel has all that it needs.
        pub fits: bool = ("fits", Text),
        /// What it needs and the kernel has not, with commas between.
        pub missing: String = ("lacks", Text),
        /// Relocations that find nothing where the program has asked first, with commas between.
        pub guarded: String,
    }
}

/// Every program, against a kernel with each of its KVM modules.
pub struct KernelFit {
    /// By module and program; without `kvm_amd` also against the kernel without any.
    pub programs: Vec<ProgramRow>,
    /// Whether the kernel has a module of KVM.
    pub has_kvm: bool,
}

/// Checks every program against the kernel in `folder`: `vmlinuz` and `modules/`, as set-up's cache has them; what is packed is
/// unpacked beside it. What a kernel lacks is a finding, not an error.
///
/// # Errors
/// When there is no such kernel, or it cannot be read.
pub fn fit(folder: &Path) -> Result<KernelFit, Error> {
    let unpacked = unpacked_kernel(folder)?;
    let mut rows = Vec::new();
    let mut has_kvm = false;
    for maker in MAKERS {
        let there = unpacked.modules.iter().any(|module| module.name == maker);
        has_kvm |= there;
        if there || maker == MAKERS[0] {
            let module = if there { maker } else { "none" };
            let programs = programs(&unpacked, maker)?.into_iter();
            rows.extend(programs.map(|fit| row(fit, module)));
        }
    }
    Ok(KernelFit {
        programs: rows,
        has_kvm,
    })
}

fn row(fit: ProgramFit, module: &'static str) -> ProgramRow {
    ProgramRow {
        object: fit.object,
        module,
        relocations: fit.relocations,
        functions: fit.functions,
        fits: fit.missing.is_empty(),
        missing: fit.missing.join(", "),
        guarded: fit.guarded.join(", "),
        program: fit.program,
    }
}

fn programs(unpacked: &UnpackedKernel, maker: &str) -> Result<Vec<ProgramFit>, Error> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("reading {}", path.display()));
    let modules = unpacked.modules.iter();
    let modules = modules.filter(|module| module.name == "kvm" || module.name == maker);
    let kernel = KernelFiles {
        vmlinux: read(&unpacked.vmlinux)?,
        modules: modules
            .map(|module| Ok((module.name.clone(), read(&module.path)?)))
            .collect::<Result<_, anyhow::Error>>()?,
    };
    Ok(core_compat(&kernel).map_err(anyhow::Error::from)?)
}
