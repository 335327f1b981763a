// SPDX-License-Identifier: MIT OR Apache-2.0
//! Real VMs. These need /dev/kvm and debugfs: `make test` runs this (static) binary with `--include-ignored` in the
//! testbed.
mod exits;
mod failures;
mod support;
mod work;
