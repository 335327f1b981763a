// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin doctor --kernel FOLDER`: whether our BPF programs fit a kernel that does not run.

use std::{fs, path::Path};

use anyhow::Context;
use unspin_agent::{KernelFiles, ProgramFit, core_compat};
use unspin_report::{Table, row};
use unspin_testbed::{UnpackedKernel, unpacked_kernel};

use crate::terminal::{failure::Failure, options::Output, output};

row! {
    "programs", ["doctor"];
    /// Whether one of our BPF programs fits another kernel (`doctor --kernel`).
    struct ProgramRow {
        /// The BPF object that it is in.
        object: &'static str = ("object", Text),
        /// Its section and function.
        program: String = ("program", Text),
        /// KVM's module that it was checked with, or `none`.
        module: &'static str = ("KVM for", Text),
        /// CO-RE relocations in it and in the functions that it calls.
        relocations: usize = ("relocations", Count),
        /// Kernel functions that it calls.
        functions: usize = ("functions", Count),
        /// Whether the kernel has all that it needs.
        fits: bool = ("fits", Text),
        /// What it needs and the kernel has not, with commas between.
        missing: String = ("lacks", Text),
        /// Relocations that find nothing where the program has asked first, with commas between.
        guarded: String,
    }
}

/// Prints a row for each program and KVM module. What a kernel lacks is a finding, not a failure: the exit status is 0.
pub fn run(folder: &Path, output: Output) -> Result<(), Failure> {
    let unpacked = unpacked_kernel(folder).map_err(anyhow::Error::from)?;
    let mut document = output::document("doctor");
    let mut rows = Vec::new();
    let makers = ["kvm_amd", "kvm_intel"];
    let there = makers.map(|maker| unpacked.modules.iter().any(|module| module.name == maker));
    for (maker, there) in makers.into_iter().zip(there) {
        if there || maker == makers[0] {
            for fit in fits(&unpacked, maker)? {
                rows.push(row(fit, if there { maker } else { "none" }));
            }
        }
    }
    document.table(Table::of("", rows));
    if !there.contains(&true) {
        document.note(format!(
            "{} has no module of KVM: what is said to lack may be in one",
            folder.display()
        ));
    }
    output::print(&document, output)?;
    Ok(())
}

fn fits(unpacked: &UnpackedKernel, maker: &str) -> Result<Vec<ProgramFit>, anyhow::Error> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("reading {}", path.display()));
    // A host loads one of the two makers' modules.
    let modules = unpacked.modules.iter();
    let modules = modules.filter(|module| module.name == "kvm" || module.name == maker);
    let kernel = KernelFiles {
        vmlinux: read(&unpacked.vmlinux)?,
        modules: modules
            .map(|module| Ok((module.name.clone(), read(&module.path)?)))
            .collect::<Result<_, anyhow::Error>>()?,
    };
    Ok(core_compat(&kernel)?)
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
