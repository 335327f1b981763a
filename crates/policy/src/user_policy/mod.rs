// SPDX-License-Identifier: MIT OR Apache-2.0
//! User policies: created from a template, tested, compiled for this machine and for BPF.

mod error;
mod source;
mod sources;
pub(crate) mod work;

pub use error::UserPolicySourceError;
pub use source::write_new_policy;
pub use source::{Tested, UserPolicySource, check_name};
pub use sources::SOURCES_HASH;
