// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration file of `unspin serve` and `unspin steer`.
