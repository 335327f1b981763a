# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Which Rust this machine has. Sourced after common.bash.

# The oldest Rust that builds the project: Debian 13's (Cargo.toml, rust-version).
readonly RUST_MINIMUM=1.85

# use_rust: true when a cargo and a rustc of at least RUST_MINIMUM are on PATH; a user's own folder of cargo is
# added to PATH when PATH has none.
use_rust() {
    local tool version
    if ! command -v cargo >/dev/null && [[ -x $HOME/.cargo/bin/cargo ]]; then
        PATH=$HOME/.cargo/bin:$PATH
    fi
    for tool in cargo rustc; do
        version=$("$tool" --version 2>/dev/null | awk '{ print $2 }') || return 1
        dpkg --compare-versions "${version:-0}" ge "$RUST_MINIMUM" || return 1
    done
}

# rust_is_the_distributions: true when the cargo on PATH came with a package of this machine.
rust_is_the_distributions() { dpkg-query -S "$(command -v cargo)" >/dev/null 2>&1; }

# unspin_binary: path of the release binary; .cargo/config.toml names the target.
unspin_binary() { echo "${CARGO_TARGET_DIR:-$REPOSITORY/target}/x86_64-unknown-linux-gnu/release/unspin"; }
