// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads the BPF programs of `bpf/` into the running kernel and reads what they say.
//!
//! [`Observer::attach`] starts counting for every vCPU thread of the host, [`Observer::counters`] reads the counters,
//! [`Observer::drain`] the events, [`Observer::health`] says what was lost on the way. [`Recorder`] drains from a thread
//! of its own, [`record`] into a recording. [`Steerer::attach`] replaces the host's scheduler by ours until it is dropped, [`steer`] until a
//! time or a command is over. [`capabilities`] says what of
//! all this the host allows.

mod auto;
mod error;
mod id_map;
mod kernel;
mod observe;
pub mod record;
mod scheduler;
pub mod service;
pub mod steer;
mod thread_run_states;
pub mod tune;
mod until;
mod watch;
mod window;

pub use auto::{
    AutoController, AutoSteering, EpochRow, Epochs, Explained, Numbered, UsefulTimeMeter,
};
pub use error::{Error, KernelLog};
pub use kernel::capabilities::{HostCapabilities, SCHED_EXT_FUNCTIONS, capabilities};
pub use kernel::core_compat::{KernelFiles, KernelFilesError, ProgramFit, core_compat};
pub use observe::cost::{EmptyPrograms, ProgramCost};
pub use observe::health::{Health, ProgramHealth};
pub use observe::host_facts::host_facts;
pub use observe::ipi_visibility::{IpiVisibility, ipi_visibility};
pub use observe::names::Names;
pub use observe::observer::{LoadedObserver, Observer};
pub use observe::options::{EventMask, ObserveOptions};
pub use observe::recorder::{Recorded, Recorder};
pub use observe::{synthetic, threads::monotonic_ns};
pub use scheduler::{
    ChosenBy, ChosenPolicies, DeadlineServer, Disclosure, DisclosureChoice, Disclosures, DryAnswer,
    DryLosses, DryRun, GuestPages, LoadedSteerer, MovedVm, NoCgroup, NoSuchWhom, PolicyChoice,
    PolicySetError, SECTIONS_MAX, SliceSource, SteerCounter, SteerEnd, SteerEndKind, SteerError,
    SteerOptions, Steerer, ThreadPages, UserPolicy, UserPolicyError, VmPolicies, Whom, base_slice,
    cgroup_number, deadline_server, is_policy_file, reset_running_vm, running_policies,
    set_running_policies, set_running_vm, to_set_running, with_user_policy,
};
pub use thread_run_states::ThreadRunStates;
pub use until::{Over, Until, shell_status};
pub use watch::{WatchCounters, WatchedHost, WatchedVcpu, WatchedVm, Watcher};
pub use window::{
    PleSource, Vendor as WindowVendor, WindowBound, WindowEpoch, WindowError, WindowOptions,
    WindowSteerer, WindowSums, WindowTotals, module_path as ple_module_path,
};
