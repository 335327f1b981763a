// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the scripted world around `locks/` twice: unchanged, and with places for two waiters in each queue.
use unspin_headers::Compiler;

fn main() {
    let c = unspin_headers::crate_folder().join("c");
    let world = Compiler::host()
        .include(&c)
        .define("UNSPIN_PLATFORM_HEADER", "\"platform_script.h\"");
    let two = world
        .clone()
        .define("SCRIPT_NAME", "script_calls_two")
        .define("PLATFORM_WAITERS_MAX", "2u");
    let source = c.join("script.c");
    let objects = [
        world.object(&source, "script.o"),
        two.object(&source, "script_two.o"),
    ];
    unspin_headers::library("unspin_lockcheck_c", &objects);
}
