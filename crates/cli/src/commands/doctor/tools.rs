// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin doctor` looks for beside the running kernel: the testbed in the cache, and the compiler.

use std::process::Command;

use unspin_testbed::Qemu;

use crate::commands::doctor::Check;

/// Both emulators and the kernel, as `make setup` leaves them in the cache.
pub fn emulators() -> Vec<Check> {
    let names = [
        ("QEMU (stock)", Qemu::Stock),
        ("QEMU (window honoured)", Qemu::Unspin),
    ];
    let cache = match unspin_testbed::cache_from_environment() {
        Ok(cache) => cache,
        Err(error) => {
            return vec![Check::missing(
                "testbed",
                "no cache folder",
                error.to_string(),
            )];
        }
    };
    names
        .into_iter()
        .map(
            |(name, qemu)| match unspin_testbed::Machine::find(&cache, qemu) {
                Ok(machine) => Check::ok(
                    name,
                    format!(
                        "{}, kernel {}",
                        machine.qemu.display(),
                        machine.kernel_version
                    ),
                ),
                Err(error) => Check::missing(name, "not set up", error.to_string()),
            },
        )
        .collect()
}

/// The compiler that building unspin needs, and steering by a policy of one's own.
pub fn clang() -> Check {
    const NAME: &str = "clang";
    let chosen = std::env::var("UNSPIN_CLANG").ok();
    let candidates = chosen
        .iter()
        .map(String::as_str)
        .chain(["clang-19", "clang"]);
    let version = |name: &str| {
        let output = Command::new(name).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().next()?.to_owned();
        output.status.success().then(|| format!("{name}: {line}"))
    };
    match candidates.into_iter().find_map(version) {
        Some(found) => Check::ok(NAME, found),
        None => Check::limited(
            NAME,
            "not found",
            "only needed to build unspin and for user policies (steer --policy ./NAME.c): \
             `apt-get install clang-19`, or `make setup`",
        ),
    }
}
