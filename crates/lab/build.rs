// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the simulated guest with the locks of `locks/`, and generates the Rust view of `c/lab.h`.

fn main() {
    let own = unspin_headers::crate_folder();
    let root = own.join("../..");
    for folder in ["abi", "locks", "crates/lab/c"] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    unspin_headers::bind(&own.join("c/exports.h"), "lab");
    cc::Build::new()
        .file(own.join("c/guest.c"))
        // Always optimised: the debug build simulates the same code.
        .opt_level(2)
        .flag("-std=gnu11")
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .define(
            "UNSPIN_PLATFORM_HEADER",
            "\"../../crates/lab/c/platform_lab.h\"",
        )
        .compile("unspin_lab_guest");
}
