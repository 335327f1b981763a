// SPDX-License-Identifier: MIT OR Apache-2.0
//! Our scheduler in place of the host's: `bpf/scheduler/main.bpf.c` from attach until the value is dropped, or the process ends
//! whichever way: the kernel then takes its own scheduler back, and no task notices more than a requeue.

mod choice;
mod core_scheduling;
mod deadline_server;
mod decided;
mod disclosure;
mod domains;
mod dry;
mod end;
mod error;
mod figures;
mod host;
mod host_slice;
mod object;
mod only_vms;
mod pages;
mod requirements;
mod running;
mod user_policy;

use std::{ops::Range, os::fd::OwnedFd};

use libbpf_rs::{Link, MapHandle, Object};
use unspin_abi as abi;
use unspin_policy::{
    GuestAudit,
    steering::{DecisionRecord, Policies},
};
use unspin_report::row;

use crate::kernel::load::{NicenessGuard, on_a_first_thread};
pub(crate) use decided::Decided;
use figures::DecisionLog;
use only_vms::OnlyVms;

pub use choice::{ChosenPolicies, PolicyChoice, is_file as is_policy_file};
pub use deadline_server::{DeadlineServer, deadline_server};
pub use decided::{ChosenBy, VmPolicies};
pub use disclosure::{
    Disclosure, DisclosureChoice, Disclosures, NoCgroup, NoSuchWhom, Whom, cgroup_number,
};
pub use dry::{DryAnswer, DryLosses, DryRun};
pub use end::{SteerEnd, SteerEndKind};
pub use error::SteerError;
pub use host::{SliceSource, base_slice};
pub use host_slice::HostSlice;
pub use only_vms::MovedVm;
pub use pages::{GuestPages, ThreadPages};
pub(crate) use requirements::check_no_other_scheduler;
pub(crate) use requirements::{running_maps, writes_memory};
pub use running::{
    PolicySetError, reset_running_vm, running_policies, set_running_policies, set_running_vm,
    to_set_running, with_user_policy,
};
pub use user_policy::{UserPolicy, UserPolicyError};

/// Sections that there is room for.
pub const SECTIONS_MAX: usize = abi::UNSPIN_STEER_SECTIONS_MAX as usize;

/// How to steer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteerOptions {
    /// What decides; can be changed at any time.
    pub policies: Policies,
    /// What decides for the VMs of these processes instead; policies touch these VMs whatever `processes` and `cgroups` say.
    pub vm_policies: Vec<(u32, Policies)>,
    /// Load what rules of candidates need although `policies` and `vm_policies` have none now.
    pub candidates: bool,
    /// A user policy, which is on if `policies` say so.
    pub user_policy: Option<UserPolicy>,
    /// A task's slice, ns; `None`: the kernel's own, [`base_slice`].
    pub slice_ns: Option<u64>,
    /// Processes whose vCPUs policies touch; with `cgroups` empty too: everyone's.
    pub processes: Vec<u32>,
    /// Cgroups (inode numbers) whose vCPUs policies touch, with all below them.
    pub cgroups: Vec<u64>,
    /// Only vCPU threads, and threads of their processes that have a thread page, are scheduled by ours; everything else by the
    /// kernel's own (docs/decisions/scheduler.md, partial mode).
    pub only_vms: bool,
    /// How much guests are told in their pv pages.
    pub disclosures: Disclosures,
    /// Pieces of the guests' kernel that only run inside critical sections, in order of addresses, none overlapping: at
    /// most [`SECTIONS_MAX`].
    pub sections: Vec<Range<u64>>,
    /// Count runs and time of each program (`BPF_STATS_RUN_TIME`, for every BPF program of the host).
    pub run_statistics: bool,
    /// Room for decisions that nobody has drained yet, bytes: a power of two from 4096, 520 each; 0: none are kept.
    pub decision_log_bytes: u32,
}

impl Default for SteerOptions {
    /// The policy `refuse-yields`, the kernel's slice, everyone.
    fn default() -> SteerOptions {
        SteerOptions {
            policies: Policies::REFUSE_YIELDS,
            vm_policies: Vec::new(),
            candidates: false,
            user_policy: None,
            slice_ns: None,
            processes: Vec::new(),
            cgroups: Vec::new(),
            only_vms: false,
            disclosures: Disclosures::default(),
            sections: Vec::new(),
            run_statistics: false,
            decision_log_bytes: 0,
        }
    }
}

row! {
    "steer", ["steer"];
    /// A counter of the scheduler, since it was attached.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct SteerCounter {
        /// Its name.
        pub counter: &'static str = ("counter", Text),
        /// What it has counted.
        pub value: u64 = ("since attach", Count),
        /// What it counts.
        pub says: &'static str = ("what it counts", Text),
    }
}

/// The scheduler in the kernel, walked through by its verifier, which is most of what an attach takes; the host's own still
/// schedules. CPUs and cgroups are as they were when it was loaded.
pub struct LoadedSteerer {
    decided: Decided,
    decisions: DecisionLog,
    object: Object,
    slice_ns: u64,
    only_vms: bool,
    run_statistics: Option<OwnedFd>,
}

impl LoadedSteerer {
    /// Hands it every task of the host that is not real-time, or threads of VMs only ([`SteerOptions::only_vms`]).
    ///
    /// # Errors
    /// As [`Steerer::attach`].
    pub fn attach(self) -> Result<Steerer, SteerError> {
        on_a_first_thread(|| {
            Steerer::check()?;
            object::attach(self)
        })
    }
}

/// The scheduler while it is attached.
pub struct Steerer {
    // Dropped in this order: first the scheduler, so that the host has its own again at once; then the programs that guests reach,
    // each of which takes the kernel a while (they run without a scheduler also when the kernel has sent ours away); then threads get
    // their policies back, then what they used.
    _scheduler: Link,
    _programs: Vec<Link>,
    only_vms: Option<OnlyVms>,
    decided: Decided,
    ended: MapHandle,
    dump: MapHandle,
    counters: MapHandle,
    guest_audit: MapHandle,
    decisions: DecisionLog,
    object: Object,
    slice_ns: u64,
    _run_statistics: Option<OwnedFd>,
}

impl Steerer {
    /// Whether it could be attached now, as far as can be seen without trying: for those who first do what takes long.
    ///
    /// # Errors
    /// Says what is missing or in the way.
    pub fn check() -> Result<(), SteerError> {
        requirements::check()?;
        core_scheduling::check()?;
        requirements::check_quotas()
    }

    /// Loads the scheduler and hands it every task of the host that is not real-time.
    ///
    /// # Errors
    /// Says what is missing or in the way (rights, kernel functions, another scheduler, core scheduling, `cpu.max`), or what the kernel
    /// refused; the host's own scheduler has never left then, or, for [`SteerError::TakenBack`], is there again.
    pub fn attach(options: &SteerOptions) -> Result<Steerer, SteerError> {
        Steerer::load(options)?.attach()
    }

    /// Loads the scheduler, for those who know a better time for it than when they need it.
    ///
    /// # Errors
    /// As [`Steerer::attach`].
    pub fn load(options: &SteerOptions) -> Result<LoadedSteerer, SteerError> {
        let _niceness = NicenessGuard::begin();
        Steerer::check()?;
        if options.only_vms {
            requirements::check_only_vms()?;
        }
        let slice_ns = match options.slice_ns {
            Some(slice_ns) => slice_ns,
            None => base_slice()?.0,
        };
        object::load(options, slice_ns)
    }

    /// Changes what decides for VMs that have no policies of their own, from the next slice of each vCPU on.
    ///
    /// # Errors
    /// When a policy's programs are not loaded, or the kernel refuses to write the map.
    pub fn set_policies(&self, policies: Policies) -> Result<(), SteerError> {
        self.decided.set_everyone(policies)
    }

    /// Changes what decides for the VM of that process, from the next slice of each of its vCPUs on; `None`: what decides for
    /// everyone.
    ///
    /// # Errors
    /// When there is no such process, a policy's programs are not loaded, or the kernel refuses to write the map.
    pub fn set_vm_policies(
        &self,
        process: u32,
        policies: Option<Policies>,
    ) -> Result<(), SteerError> {
        match policies {
            Some(policies) => self.decided.set_vm(process, policies, ChosenBy::Set),
            None => self.decided.reset_vm(process).map(|_| ()),
        }
    }

    /// Which policies act upon whom: everyone first, then VMs that have policies of their own, by process.
    ///
    /// # Errors
    /// When the kernel refuses to read a map.
    pub fn vm_policies(&self) -> Result<Vec<VmPolicies>, SteerError> {
        self.decided.all()
    }

    /// What decides, for whoever changes it from another thread.
    pub(crate) fn decided(&self) -> Result<Decided, SteerError> {
        self.decided.again()
    }

    /// What was moved, by VM process, since it was attached; `None`: not [`SteerOptions::only_vms`].
    pub fn moved(&self) -> Option<Vec<MovedVm>> {
        self.only_vms.as_ref().map(OnlyVms::moved)
    }

    /// Threads that a `steer` which was killed had left under sched_ext's policy, and which were set back before this one began.
    pub fn left_behind(&self) -> usize {
        self.only_vms.as_ref().map_or(0, OnlyVms::left_behind)
    }

    /// A task's slice, ns.
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// The counters, summed over all CPUs.
    ///
    /// # Errors
    /// When the kernel refuses to read the map.
    pub fn counters(&self) -> Result<Vec<SteerCounter>, SteerError> {
        let sums = figures::read_counters(&self.counters)?;
        Ok(figures::names()
            .zip(sums.of)
            .map(|((counter, says), value)| SteerCounter {
                counter,
                value,
                says,
            })
            .collect())
    }

    /// What each VM's guest claimed and asked for, by process, in the order of their numbers.
    ///
    /// # Errors
    /// When the kernel refuses to read the map.
    pub fn guest_audit(&self) -> Result<Vec<(u32, GuestAudit)>, SteerError> {
        figures::read_audit(&self.guest_audit)
    }

    /// Why the kernel has sent the scheduler away; `None` while it is attached.
    ///
    /// # Errors
    /// When the kernel refuses to read the map.
    pub fn ended(&self) -> Result<Option<SteerEnd>, SteerError> {
        Ok(SteerEnd::read(&self.ended, &self.dump)?)
    }

    /// Hands over the decisions taken since the last call, in the order in which they were taken; `unlogged` of the
    /// counters says how many found no room.
    ///
    /// # Errors
    /// When libbpf cannot read the ring.
    pub fn drain_decisions(&self, each: &mut dyn FnMut(DecisionRecord)) -> Result<(), SteerError> {
        Ok(self.decisions.drain(each)?)
    }

    /// Runs and time of each program; both 0 unless `run_statistics` is on.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn programs(&self) -> Result<Vec<crate::ProgramHealth>, SteerError> {
        Ok(crate::observe::health::programs(&self.object)?)
    }
}
