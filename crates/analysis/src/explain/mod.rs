// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who spent CPU time spinning and for whom, and how good that explanation is.

pub mod attribution;
pub mod cause;
pub mod evaluation;
pub mod ground_truth;
pub mod rows;
pub mod timeline_svg;
pub(crate) mod vm_causes;
pub mod words;
