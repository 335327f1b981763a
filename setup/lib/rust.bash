# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=bash
# Which Rust this machine has. Sourced after common.bash.

# The oldest Rust that builds the project: Debian 13's (Cargo.toml, rust-version).
readonly RUST_MINIMUM=1.85

# is_new_rust FOLDER: true when it has a cargo and a rustc that run and are of at least RUST_MINIMUM.
is_new_rust() {
    local tool version
    for tool in cargo rustc; do
        version=$("$1/$tool" --version 2>/dev/null | awk '{ print $2 }') || return 1
        dpkg --compare-versions "${version:-0}" ge "$RUST_MINIMUM" || return 1
    done
}

# use_rust: true when there is a cargo and a rustc of at least RUST_MINIMUM, in a folder of PATH or else in the user's own
# folder of cargo. That folder comes first on PATH then.
use_rust() {
    local folders folder
    IFS=: read -ra folders <<<"$PATH"
    for folder in "${folders[@]}" "$HOME/.cargo/bin"; do
        if [[ ! -x $folder/cargo ]] || ! is_new_rust "$folder"; then continue; fi
        [[ $(command -v cargo) == "$folder/cargo" ]] || PATH=$folder:$PATH
        return
    done
    return 1
}

# rust_is_the_distributions: true when the cargo on PATH came with a package of this machine.
rust_is_the_distributions() { dpkg-query -S "$(command -v cargo)" >/dev/null 2>&1; }

# unspin_binary: path of the release binary; .cargo/config.toml names the target.
unspin_binary() { echo "${CARGO_TARGET_DIR:-$REPOSITORY/target}/x86_64-unknown-linux-gnu/release/unspin"; }
