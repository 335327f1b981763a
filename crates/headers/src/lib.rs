// SPDX-License-Identifier: MIT OR Apache-2.0
//! For build scripts: our C headers as Rust, and our C and BPF as objects. One compiler, one standard of C, one list of flags;
//! what a script depends on is what its compilers have read, no folder.
//!
//! Everything here ends the build with a message when a compiler is missing or refuses: a build script can do nothing else.

#[cfg(feature = "bindings")]
mod bindings;
mod compiler;
mod dependencies;

#[cfg(feature = "bindings")]
pub use bindings::{bind, bind_functions};
pub use compiler::{Compiler, Object, library};
pub use dependencies::watch;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The folder of the crate whose build script this is, without links.
///
/// # Panics
/// Outside of a build script.
pub fn crate_folder() -> PathBuf {
    let folder = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    fs::canonicalize(folder).expect("the script runs there")
}

/// The folder of the workspace, without links.
///
/// # Panics
/// Outside of a build script, or of a crate that lies in `crates/`.
pub fn workspace_folder() -> PathBuf {
    let workspace = crate_folder();
    let workspace = workspace.ancestors().nth(2).map(Path::to_owned);
    workspace.expect("the workspace is two levels up")
}

/// Where a build script writes.
///
/// # Panics
/// Outside of a build script.
pub fn out_folder() -> PathBuf {
    PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"))
}
