// SPDX-License-Identifier: MIT OR Apache-2.0
//! What cgroups, and nice values in them, give their tasks: weights, quotas, trees as distributions lay them out.

mod layouts;
mod quotas;
mod shares;
mod weights;
