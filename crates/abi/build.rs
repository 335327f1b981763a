// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates the Rust view of `abi/*.h`: one source for the layouts, checked by bindgen's own size assertions.
use unspin_headers::Compiler;

fn main() {
    let abi = unspin_headers::workspace_folder().join("abi");
    unspin_headers::bind(&abi.join("all.h"), "abi");
    let names = Compiler::host().object(&abi.join("names.c"), "names.o");
    unspin_headers::library("unspin_abi_names", &[names]);
}
