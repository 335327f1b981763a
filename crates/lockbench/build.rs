// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the C drivers: once for all locks together, and once per lock of `abi/guest/lock_kinds.h`.
use std::path::Path;

use unspin_abi::LockKind;
use unspin_headers::Compiler;

/// The baselines of `c/baselines.h` that can be built: Concurrency Kit's only where its headers are (Debian's libck-dev).
fn baselines(c: &Path) -> Vec<&'static str> {
    const CK_HEADER: &str = "/usr/include/ck_spinlock.h";
    unspin_headers::watch(Path::new(CK_HEADER));
    let mut baselines = vec!["glibc_mutex", "glibc_spinlock", "parking_lot"];
    if Path::new(CK_HEADER).exists() {
        baselines.extend(["ck_fas", "ck_ticket", "ck_mcs"]);
    }
    for name in &baselines {
        assert!(c.join(format!("baselines/{name}.h")).exists(), "{name}");
    }
    baselines
}

fn main() {
    let c = unspin_headers::crate_folder().join("c");
    let compiler = Compiler::host()
        .include(&c)
        .define("UNSPIN_PLATFORM_HEADER", "\"threads.h\"");
    let mut objects = ["drivers", "ecs", "table"]
        .map(|name| compiler.object(&c.join(format!("{name}.c")), &format!("{name}.o")))
        .to_vec();
    let baselines = baselines(&c);
    let table = match baselines.iter().any(|name| name.starts_with("ck_")) {
        true => compiler.clone().define("UNSPIN_HAS_CK", "1"),
        false => compiler.clone(),
    };
    objects.push(table.object(&c.join("baselines.c"), "baselines.o"));
    let locks = unspin_headers::workspace_folder().join("locks");
    let ours = LockKind::all().map(|kind| {
        let is_here = locks.join(kind.name()).with_extension("h").exists();
        let folder = if is_here { "" } else { "blocking/" };
        (kind.name(), format!("../../../locks/{folder}"))
    });
    let baselines = baselines
        .iter()
        .map(|name| (*name, "baselines/".to_owned()));
    for (name, folder) in ours.chain(baselines) {
        let compiler = compiler
            .clone()
            .define("DRIVER_LOCK", name)
            .define("DRIVER_LOCK_HEADER", &format!("\"{folder}{name}.h\""));
        objects.push(compiler.object(&c.join("driver.c"), &format!("locks/{name}.o")));
    }
    unspin_headers::library("unspin_lockbench_c", &objects);
}
