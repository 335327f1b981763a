// SPDX-License-Identifier: MIT OR Apache-2.0
//! C headers as Rust.

use std::path::{Path, PathBuf};

use crate::{
    compiler::{Compiler, STANDARD, library},
    out_folder,
};

/// Writes `NAME.rs` into OUT_DIR: the types and constants that a header and those that it includes define under our names
/// (`unspin_*`, `UNSPIN_*`), and the functions that they declare. Sizes are asserted by bindgen. Returns OUT_DIR.
///
/// # Panics
/// When libclang is missing, the header is wrong, or OUT_DIR cannot be written: the build stops there.
pub fn bind(header: &Path, name: &str) -> PathBuf {
    generate(header, name, builder(header))
}

/// As [`bind`], and with the static inline functions whose names match a regular expression: bindgen writes a wrapper of each
/// into `NAME_functions.c`, which is compiled and linked. In Rust a wrapper has the function's name.
///
/// # Panics
/// As [`bind`] and [`library`].
pub fn bind_functions(header: &Path, name: &str, functions: &str) -> PathBuf {
    let wrappers = out_folder().join(format!("{name}_functions.c"));
    let builder = builder(header)
        .allowlist_function(functions)
        .wrap_static_fns(true)
        .wrap_static_fns_path(&wrappers);
    let out = generate(header, name, builder);
    let object = Compiler::host().generated(&wrappers);
    library(&format!("unspin_{name}_functions"), &[object]);
    out
}

fn builder(header: &Path) -> bindgen::Builder {
    bindgen::Builder::default()
        .header(header.to_string_lossy())
        .clang_arg(STANDARD)
        .use_core()
        .allowlist_item("(unspin|UNSPIN)_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
        // Prints each header that clang has read.
        .parse_callbacks(Box::new(bindgen::CargoCallbacks::new()))
}

fn generate(header: &Path, name: &str, builder: bindgen::Builder) -> PathBuf {
    let bindings = builder.generate().unwrap_or_else(|error| {
        panic!(
            "bindgen does not read {}: {error} (it needs libclang: `unspin doctor` says how to get it)",
            header.display()
        )
    });
    let out = out_folder();
    bindings
        .write_to_file(out.join(format!("{name}.rs")))
        .expect("OUT_DIR can be written");
    out
}
