// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our programs against a kernel's files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use unspin_agent::{KernelFiles, ProgramFit, core_compat};
use unspin_testbed::{cache_from_environment, unpacked_kernel};

/// Where set-up has put kernels.
pub fn cache() -> PathBuf {
    cache_from_environment().expect("a cache folder")
}

/// The programs on that kernel with the module of one maker of CPUs: a host loads kvm_amd or kvm_intel, never both.
pub fn check(folder: &Path, vendor: &str) -> Vec<ProgramFit> {
    let unpacked = unpacked_kernel(folder).unwrap_or_else(|error| panic!("{error}"));
    let read = |path: &Path| fs::read(path).expect("it was unpacked");
    let modules = unpacked.modules.iter();
    let modules = modules.filter(|module| module.name == "kvm" || module.name == vendor);
    let kernel = KernelFiles {
        vmlinux: read(&unpacked.vmlinux),
        modules: modules
            .map(|module| (module.name.clone(), read(&module.path)))
            .collect(),
    };
    core_compat(&kernel).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// What is missing of each object, each thing once.
pub fn missing_of(fits: &[ProgramFit], object: &str) -> Vec<String> {
    let of = fits.iter().filter(|fit| fit.object == object);
    let mut missing: Vec<String> = of.flat_map(|fit| fit.missing.clone()).collect();
    missing.sort();
    missing.dedup();
    missing
}

/// A line for each program.
pub fn print(kernel: &str, vendor: &str, fits: &[ProgramFit]) {
    for fit in fits {
        let says = match (&fit.missing[..], &fit.guarded[..]) {
            ([], []) => "fits".to_owned(),
            ([], guarded) => format!("fits; asks first for {}", guarded.join(", ")),
            (missing, _) => format!("lacks {}", missing.join(", ")),
        };
        println!(
            "{kernel}\t{vendor}\t{}\t{}\t{} relocations\t{} functions\t{says}",
            fit.object, fit.program, fit.relocations, fit.functions
        );
    }
}
