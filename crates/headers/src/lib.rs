// SPDX-License-Identifier: MIT OR Apache-2.0
//! For build scripts: our C headers as Rust, and C of ours as a library, with the same flags everywhere.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The folder of the crate whose build script this is.
///
/// # Panics
/// Outside of a build script.
pub fn crate_folder() -> PathBuf {
    PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"))
}

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
/// As [`bind`] and [`compile`].
pub fn bind_functions(header: &Path, name: &str, functions: &str) -> PathBuf {
    let wrappers = out_folder().join(format!("{name}_functions.c"));
    let builder = builder(header)
        .allowlist_function(functions)
        .wrap_static_fns(true)
        .wrap_static_fns_path(&wrappers);
    let out = generate(header, name, builder);
    compile(&wrappers, &format!("unspin_{name}_functions"));
    out
}

fn out_folder() -> PathBuf {
    PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"))
}

fn builder(header: &Path) -> bindgen::Builder {
    bindgen::Builder::default()
        .header(header.to_string_lossy())
        .clang_arg("-std=c11")
        .use_core()
        .allowlist_item("(unspin|UNSPIN)_.*")
        .prepend_enum_name(false)
        .derive_default(true)
        .derive_eq(true)
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

/// Compiles a C file into a static library of that name and has it linked. Warnings are errors.
///
/// # Panics
/// When the compiler is missing or refuses.
pub fn compile(file: &Path, library: &str) {
    cc::Build::new()
        .file(file)
        .flag("-std=c11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile(library);
}
