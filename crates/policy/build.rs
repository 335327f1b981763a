// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles `policy/*.h` for this machine and generates the Rust view of its types.
fn main() {
    let own = unspin_headers::crate_folder();
    for folder in ["../../abi", "../../policy", "native"] {
        println!("cargo:rerun-if-changed={}", own.join(folder).display());
    }
    unspin_headers::bind(&own.join("native/exports.h"), "policy");
    unspin_headers::compile(&own.join("native/exports.c"), "unspin_policy");
}
