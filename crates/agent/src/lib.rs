// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the BPF programs of `bpf/` into the running kernel and reads what they say.
//!
//! [`Observer::attach`] starts counting for every vCPU thread of the host, [`Observer::counters`] reads the counters,
//! [`Observer::drain`] the events, [`Observer::health`] says what was lost on the way. [`Recorder`] drains from a thread
//! of its own. [`Steerer::attach`] replaces the host's scheduler by ours until it is dropped. [`capabilities`] says what of
//! all this the host allows.

mod bytes;
mod capabilities;
mod core_compat;
mod cost;
mod error;
mod guest_features;
mod guest_pages;
mod health;
mod host_facts;
mod ipi_visibility;
mod kernel;
mod kernel_btf;
mod kernel_layout;
mod load;
mod names;
mod niceness_guard;
mod observer;
mod options;
mod process;
mod recorder;
mod slots;
mod steer;
pub mod synthetic;
mod thread_pages;
mod thread_run_states;
mod threads;
mod window;

pub use capabilities::{HostCapabilities, SCHED_EXT_FUNCTIONS, capabilities};
pub use core_compat::{KernelFiles, KernelFilesError, ProgramFit, core_compat};
pub use cost::{EmptyPrograms, ProgramCost};
pub use error::Error;
pub use guest_pages::GuestPages;
pub use health::{Health, ProgramHealth};
pub use host_facts::host_facts;
pub use ipi_visibility::{IpiVisibility, ipi_visibility};
pub use names::Names;
pub use observer::{LoadedObserver, Observer};
pub use options::{EventMask, ObserveOptions};
pub use recorder::{Recorded, Recorder};
pub use steer::{
    Disclosure, Disclosures, DryAnswer, DryLosses, DryRun, LoadedSteerer, SECTIONS_MAX,
    SliceSource, SteerCounter, SteerEnd, SteerError, SteerOptions, Steerer, UserPolicy,
    UserPolicyError, base_slice, running_user_policy, set_running_policies,
};
pub use thread_pages::ThreadPages;
pub use thread_run_states::ThreadRunStates;
pub use threads::monotonic_ns;
pub use window::{
    PleSource, Vendor as WindowVendor, WindowBound, WindowEpoch, WindowError, WindowOptions,
    WindowSteerer, WindowSums, WindowTotals, module_path as ple_module_path,
};
