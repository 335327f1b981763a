// SPDX-License-Identifier: MIT OR Apache-2.0
//! What decides in a scheduler that is loaded: policies for everyone and policies of one VM, in the maps that
//! `bpf/scheduler/guest/choice.bpf.h` reads. Any process may change them while it runs.

use std::{collections::BTreeSet, io, path::Path, time::Duration};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use unspin_abi as abi;
use unspin_policy::{CandidateRule, steering::Policies};
use unspin_report::row;

use super::{SteerError, requirements::running_maps};
use crate::{
    Error,
    kernel::{bytes, entries, load, processes::is_process},
    observe::names::thread_of,
};

/// The map that holds `struct unspin_steer_control`: libbpf calls it after its section, as a whole.
const CONTROL: &str = ".data.unspin";
const CHANGES: &str = ".data.changes";
const VMS: &str = "vm_policies";

/// Who gave a VM policies of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChosenBy {
    /// `steer --vm PROCESS=POLICY`.
    Start,
    /// `policy set --vm`.
    Set,
    /// The policy `auto`.
    Auto,
}

impl ChosenBy {
    fn number(self) -> u32 {
        match self {
            ChosenBy::Start => abi::UNSPIN_STEER_CHOSEN_AT_START,
            ChosenBy::Set => abi::UNSPIN_STEER_CHOSEN_BY_SET,
            ChosenBy::Auto => abi::UNSPIN_STEER_CHOSEN_BY_AUTO,
        }
    }

    fn says(number: u32) -> &'static str {
        match number {
            abi::UNSPIN_STEER_CHOSEN_AT_START => "steer --vm",
            abi::UNSPIN_STEER_CHOSEN_BY_SET => "policy set --vm",
            abi::UNSPIN_STEER_CHOSEN_BY_AUTO => "auto",
            _ => "?",
        }
    }
}

row! {
    "vm_policies", ["policy show"];
    /// Which policies act upon the vCPUs of a VM.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct VmPolicies {
        /// The VM's process; null: all VMs that have none of their own.
        pub process: Option<u32> = ("VM process", Text),
        /// What its manager calls the VM, else its program's name; null: everyone's.
        pub name: Option<String> = ("VM", Text),
        /// The policies, as `--policy` takes them; a user policy is called `user-policy`.
        pub policy: String = ("policy", Text),
        /// For how long the VM has had them, ns; null: everyone's.
        pub since_ns: Option<u64> = ("since", Nanoseconds),
        /// Who gave them: `steer --vm`, `policy set --vm` or `auto`; null: everyone's.
        pub chosen_by: Option<&'static str> = ("by", Text),
    }
}

/// The maps.
#[derive(Debug)]
pub(crate) struct Decided {
    control: MapHandle,
    changes: MapHandle,
    vms: MapHandle,
}

impl Decided {
    /// The same maps once more, for another thread.
    pub(super) fn again(&self) -> Result<Decided, SteerError> {
        let again = |map: &MapHandle| {
            MapHandle::try_from(map).map_err(|source| load::refused("sharing a BPF map", source))
        };
        Ok(Decided {
            control: again(&self.control)?,
            changes: again(&self.changes)?,
            vms: again(&self.vms)?,
        })
    }

    /// Those of an object that is loaded, whose maps end in these names: a dry run has its own.
    pub(super) fn of(object: &Object, dry: bool) -> Result<Decided, Error> {
        let [control, changes] = match dry {
            false => [CONTROL, CHANGES],
            true => [".data.dry", ".data.dry_change"],
        };
        Ok(Decided {
            control: load::map(object, control)?,
            changes: load::map(object, changes)?,
            vms: load::map(object, VMS)?,
        })
    }

    /// Those of the scheduler that some process of ours has attached; `None`: there is none.
    pub(super) fn of_running() -> Option<Decided> {
        Some(Decided {
            control: running_maps(CONTROL, size_of::<abi::unspin_steer_control>()).pop()?,
            changes: running_maps(CHANGES, size_of::<u32>()).pop()?,
            vms: running_maps(VMS, size_of::<abi::unspin_steer_vm>()).pop()?,
        })
    }

    /// What decides for everyone, before anything runs; `chooses`: programs for rules of candidates are loaded.
    pub(super) fn start(&self, everyone: Policies, chooses: bool) -> Result<(), SteerError> {
        self.write(everyone, chooses.into())
    }

    /// What decides for all that have no policies of their own, from the next slice of each vCPU on.
    pub(super) fn set_everyone(&self, policies: Policies) -> Result<(), SteerError> {
        let chooses = self.check(policies)?;
        self.write(policies, chooses)
    }

    fn write(&self, everyone: Policies, chooses: u32) -> Result<(), SteerError> {
        let value = abi::unspin_steer_control {
            everyone: choice(everyone),
            chooses,
        };
        load::set_value(&self.control, 0, &value)?;
        self.tell()
    }

    /// What decides for that VM. It holds for this process alone, also if another one gets its number.
    pub(super) fn set_vm(
        &self,
        process: u32,
        policies: Policies,
        by: ChosenBy,
    ) -> Result<(), SteerError> {
        self.check(policies)?;
        let value = abi::unspin_steer_vm {
            choice: choice(policies),
            started_ticks: started_ticks(process)?,
            since_ns: boot_time().as_nanos() as u64,
            by: by.number(),
            unused: 0,
        };
        if self.is_full() {
            self.forget_dead()?;
        }
        let key = process.to_ne_bytes();
        let written = self
            .vms
            .update(&key, bytes::bytes_of(&value), MapFlags::ANY);
        written.map_err(|source| match self.is_full() {
            true => SteerError::TooManyVms,
            false => load::refused("writing the BPF map vm_policies", source).into(),
        })?;
        self.tell()
    }

    /// Whether somebody has chosen by hand for that VM.
    fn is_by_hand(&self, process: u32) -> Result<bool, SteerError> {
        Ok(self
            .vm(process)?
            .is_some_and(|vm| chosen_by_hand(process, &vm)))
    }

    /// The VMs for which somebody has chosen by hand. Nothing but a look into the map where nobody has.
    pub(crate) fn by_hand(&self) -> Result<BTreeSet<u32>, SteerError> {
        let vms = self.vms()?.into_iter();
        Ok(vms
            .filter(|(process, vm)| chosen_by_hand(*process, vm))
            .map(|(process, _)| process)
            .collect())
    }

    /// The same as the policy `auto` gives it; false: somebody has chosen by hand for that VM, and that stays, or the process is gone.
    pub(crate) fn set_vm_by_auto(
        &self,
        process: u32,
        policies: Policies,
    ) -> Result<bool, SteerError> {
        if self.is_by_hand(process)? {
            return Ok(false);
        }
        match self.set_vm(process, policies, ChosenBy::Auto) {
            Ok(()) => Ok(true),
            Err(SteerError::NoProcess { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes back all that the policy `auto` has given.
    pub(crate) fn reset_auto(&self) -> Result<(), SteerError> {
        for (process, vm) in self.vms()? {
            if vm.by == ChosenBy::Auto.number() {
                self.delete(process)?;
            }
        }
        self.tell()
    }

    /// That VM has everyone's policies again; false: it had no others.
    pub(super) fn reset_vm(&self, process: u32) -> Result<bool, SteerError> {
        let had = self.vm(process)?.is_some();
        if had {
            self.delete(process)?;
            self.tell()?;
        }
        Ok(had)
    }

    /// Makes room of VMs whose process is gone, as far as can be seen from here: only when there is none, since another PID namespace
    /// shows no process of the host.
    fn forget_dead(&self) -> Result<(), SteerError> {
        for (process, vm) in self.vms()? {
            if !is_there(process, &vm) {
                self.delete(process)?;
            }
        }
        Ok(())
    }

    /// Who has what: everyone first, then VMs by process. Those whose process is gone are left out.
    pub(super) fn all(&self) -> Result<Vec<VmPolicies>, SteerError> {
        let now_ns = boot_time().as_nanos() as u64;
        let everyone = VmPolicies {
            process: None,
            name: None,
            policy: policies(&self.control()?.everyone).to_string(),
            since_ns: None,
            chosen_by: None,
        };
        let mut rows = vec![everyone];
        let vms = self.vms()?.into_iter();
        let there = vms.filter(|(process, vm)| is_there(*process, vm));
        rows.extend(there.map(|(process, vm)| VmPolicies {
            process: Some(process),
            name: unspin_vms::name_of(process),
            policy: policies(&vm.choice).to_string(),
            since_ns: Some(now_ns.saturating_sub(vm.since_ns)),
            chosen_by: Some(ChosenBy::says(vm.by)),
        }));
        Ok(rows)
    }

    /// Refuses policies whose programs are not loaded; whether those for rules of candidates are.
    fn check(&self, policies: Policies) -> Result<u32, SteerError> {
        let chooses = self.control()?.chooses;
        match policies.need_candidates() {
            true if chooses == 0 => Err(SteerError::NoCandidates),
            _ => Ok(chooses),
        }
    }

    fn control(&self) -> Result<abi::unspin_steer_control, SteerError> {
        Ok(load::value(&self.control, CONTROL, 0)?)
    }

    /// Tells the programs that something has changed, by a number that they have not seen: the time, in microseconds.
    fn tell(&self) -> Result<(), SteerError> {
        let number = boot_time().as_micros() as u32;
        Ok(load::set_value(&self.changes, 0, &number)?)
    }

    fn vms(&self) -> Result<Vec<(u32, abi::unspin_steer_vm)>, SteerError> {
        let mut vms = Vec::new();
        entries::each(&self.vms, VMS, |process, vm| vms.push((process, vm)))?;
        vms.sort_unstable_by_key(|(process, _)| *process);
        Ok(vms)
    }

    fn vm(&self, process: u32) -> Result<Option<abi::unspin_steer_vm>, SteerError> {
        let found = self.vms.lookup(&process.to_ne_bytes(), MapFlags::ANY);
        let found =
            found.map_err(|source| load::refused("reading the BPF map vm_policies", source))?;
        Ok(found
            .map(|bytes| bytes::read("vm_policies", &bytes))
            .transpose()?)
    }

    fn is_full(&self) -> bool {
        self.vms.keys().count() >= abi::UNSPIN_STEER_VMS_MAX as usize
    }

    fn delete(&self, process: u32) -> Result<(), SteerError> {
        match self.vms.delete(&process.to_ne_bytes()) {
            Err(source) if source.kind() != libbpf_rs::ErrorKind::NotFound => {
                Err(load::refused("writing the BPF map vm_policies", source).into())
            }
            _ => Ok(()),
        }
    }
}

/// Whether somebody has chosen this for that VM, not the policy `auto`, and it is not that of a process which had its number before.
fn chosen_by_hand(process: u32, vm: &abi::unspin_steer_vm) -> bool {
    vm.by != ChosenBy::Auto.number() && is_there(process, vm)
}

/// Whether it is that very process which still runs.
fn is_there(process: u32, vm: &abi::unspin_steer_vm) -> bool {
    started_ticks(process).ok() == Some(vm.started_ticks)
}

/// When the process began, as the kernel tells it: clock ticks after boot.
fn started_ticks(process: u32) -> Result<u64, SteerError> {
    let proc = Path::new("/proc");
    let gone = || SteerError::NoProcess { process };
    // A thread's folder is there, too.
    if !is_process(proc, process) {
        return Err(gone());
    }
    thread_of(proc, process)
        .map(|leader| leader.start_ticks)
        .ok_or_else(gone)
}

/// CLOCK_BOOTTIME.
fn boot_time() -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock is there since Linux 2.6.39, and the pointer is to a live struct.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    assert_eq!(failed, 0, "{}", io::Error::last_os_error());
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn choice(policies: Policies) -> abi::unspin_steer_choice {
    abi::unspin_steer_choice {
        policies: policies.bits(),
        slice_ns: policies.slice_ns(),
        recent_ns: policies.recent_ns(),
        threshold_ns: policies.threshold_ns(),
        candidates: policies.candidates().map_or(0, CandidateRule::number),
        candidate_options: policies.candidate_options(),
    }
}

fn policies(choice: &abi::unspin_steer_choice) -> Policies {
    Policies::of_numbers(
        choice.policies,
        [choice.slice_ns, choice.recent_ns, choice.threshold_ns],
        choice.candidates,
        choice.candidate_options,
    )
}

#[cfg(test)]
mod tests {
    use unspin_report::{Document, Machine, Table};

    use super::*;

    #[test]
    fn policies_come_back_from_their_numbers() {
        for text in [
            "refuse-yields",
            "loan,kernel-exit",
            "loan-cpl,kernel-exit,candidates=strict,ignore-vectors,slice=500us",
            "helping=1ms,yield-buddy=3ms",
        ] {
            let before: Policies = text.parse().expect(text);
            assert_eq!(policies(&choice(before)), before, "{text}");
        }
    }

    #[test]
    fn who_has_what_is_a_table() {
        let row = |process| VmPolicies {
            process,
            name: process.map(|_| "web-3".into()),
            policy: "loan".into(),
            since_ns: process.map(|_| 1_500_000_000),
            chosen_by: process.map(|_| "steer --vm"),
        };
        let mut document = Document::new("policy show", Machine::here(true));
        document.table(Table::of("Who", [row(None), row(Some(1234))]));
        let mut text = Vec::new();
        document.write_text(&mut text).expect("written");
        let text = String::from_utf8(text).expect("UTF-8");
        assert!(
            text.contains(" 1234 ") && text.contains(" web-3 "),
            "{text}"
        );
        assert!(text.contains("1.5 s   steer --vm"), "{text}");
    }

    #[test]
    fn a_process_is_known_by_when_it_began() {
        let own = started_ticks(std::process::id()).expect("it runs");
        assert_eq!(started_ticks(std::process::id()).ok(), Some(own));
        assert!(own > 0);
        let none = started_ticks(u32::MAX).expect_err("there is none");
        assert!(none.to_string().contains("no process 4294967295"), "{none}");
        // A thread is no process.
        let thread = std::thread::spawn(|| {
            // SAFETY: it only tells a number.
            let thread = unsafe { libc::gettid() } as u32;
            started_ticks(thread).is_err()
        });
        assert!(thread.join().expect("it ends"));
    }
}
