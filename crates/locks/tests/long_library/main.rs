// SPDX-License-Identifier: MIT OR Apache-2.0
//! libunspin as a C or C++ program gets it: built by lib/build, installed by lib/install in a folder of its own, found by
//! pkg-config and CMake; and whether it does what docs/libunspin.md says.

mod installed;
mod programs;
mod properties;
mod races;
mod tree;
