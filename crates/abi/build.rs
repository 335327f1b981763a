// SPDX-License-Identifier: MIT OR Apache-2.0
//! Generates the Rust view of `abi/*.h`: one source for the layouts, checked by bindgen's own size assertions.
fn main() {
    let abi = unspin_headers::crate_folder().join("../../abi");
    println!("cargo:rerun-if-changed={}", abi.display());
    unspin_headers::bind(&abi.join("all.h"), "abi");
    unspin_headers::compile(&abi.join("names.c"), "unspin_abi_names");
}
