// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the emulated machine boots: kernel, initramfs, files of the cache.

pub(crate) mod cache;
pub mod cpio;
pub(crate) mod executable;
pub(crate) mod initramfs;
pub(crate) mod kernel_image;
pub(crate) mod unpacked;
