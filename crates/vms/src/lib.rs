// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which VM a process runs: its name and ids at libvirt, OpenStack Nova, KubeVirt, Proxmox VE, Cloud Hypervisor and Firecracker,
//! from the command line and the cgroup of its VMM; and which VM a user means by a name.
//!
//! [`look`] is the one place where a VM gets its name; [`process_of`] the one where a name gets its VM. Names are chosen by
//! tenants: everything that leaves this crate is printable and short (`unspin_events::vm_identity::printable`).

mod cgroup;
mod choice;
mod command_line;
mod identity;
mod name;
mod process;
mod running;

pub use choice::{Candidate, NoSuchVm, choose, process_of};
pub use name::{NotInRecording, VmName, in_words};
pub use process::{Look, VmProcess, has_vm, look, name_of};
pub use running::{Running, running};
