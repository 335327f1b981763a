// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the simulated guest with the locks of `locks/`, and generates Rust bindings of `c/lab.h`.
use unspin_headers::Compiler;

fn main() {
    let c = unspin_headers::crate_folder().join("c");
    unspin_headers::bind(&c.join("exports.h"), "lab");
    let guest = Compiler::host()
        .define(
            "UNSPIN_PLATFORM_HEADER",
            "\"../../crates/lab/c/platform_lab.h\"",
        )
        .object(&c.join("guest.c"), "guest.o");
    unspin_headers::library("unspin_lab_guest", &[guest]);
}
