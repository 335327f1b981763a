// SPDX-License-Identifier: MIT OR Apache-2.0
//! Linux guests under the distribution's own QEMU and KVM: boots N of them, runs a load in all at once, and brings back
//! what the guests say. The kernel is the distribution's image as it is, or the same version with the papers' locks
//! (`guest-linux/`); what each guest has of paravirtual features is asked for, checked in its own log, and named (ruling 35).
//!
//! QEMU, its libraries and the loads are packages that `make setup` fetches, verifies and unpacks into the cache; in the
//! testbed they are copies of those.

mod error;
mod features;
mod fleet;
mod guests;
mod initramfs;
mod load;
mod lock;
mod machine;
mod options;
mod outcome;
mod programs;
mod talk;

pub use error::Error;
pub use features::CountsModule;
pub use features::{Features, Spinlocks};
pub use guests::{Guests, run};
pub use load::Load;
pub use lock::{GuestLock, Lock, Marks, Ours};
pub use options::{Options, Phase};
pub use outcome::Outcome;
pub use programs::{Programs, QEMU};
pub use talk::{Counts, Run};
pub use talk::{Report, VmReport};
