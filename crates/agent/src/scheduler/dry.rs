// SPDX-License-Identifier: MIT OR Apache-2.0
//! The policies asked without a scheduler: `bpf/scheduler/dry.bpf.c`. Nothing is attached but tracing programs.

use std::{collections::BTreeMap, fs, os::fd::OwnedFd};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Object, OpenObject};
use unspin_abi as abi;
use unspin_policy::steering::DecisionRecord;

use super::{
    ChosenBy, SteerError, SteerOptions, base_slice,
    decided::Decided,
    figures::{DecisionLog, read_counters},
    object::{choose_steered, settings},
    user_policy,
};
use crate::{
    Error, ProgramHealth,
    kernel::{
        btf::{KernelBtf, Kind},
        bytes, load, requirements,
    },
    observe::observer::enable_run_statistics,
};

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steer_dry.bpf.o"));

/// Maps of the scheduler that its headers declare and nothing here uses.
const UNUSED: [&str; 7] = [
    "disclosure_cgroups",
    "tasks",
    "cpus",
    "groups",
    "free_groups",
    "group_of_cgroup",
    "shared",
];

/// Where the scheduler's classes are asked to honour a directed yield: the kernel's own, and sched_ext's if it is there.
const YIELDS: &str = "kprobe.multi/yield_to_task_fair";
const YIELD_OF_FAIR: &str = "yield_to_task_fair";
const YIELD_OF_SCHED_EXT: &str = "yield_to_task_scx";

/// What the figures lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DryLosses {
    /// Entries into guests by threads for which there was no room.
    pub threads: u64,
    /// Answers that are in no [`DryAnswer`].
    pub answers: u64,
    /// Decisions that are not in the log.
    pub unlogged: u64,
    /// Pv pages that could not be read.
    pub pv_page_failures: u64,
    /// Runs of our programs that did not take place.
    pub missed_runs: u64,
}

/// Decisions that are taken and not acted upon, until it is dropped.
pub struct DryRun {
    // Dropped in this order: first nothing runs any more, then its maps go.
    _links: Vec<Link>,
    decisions: DecisionLog,
    answers: MapHandle,
    losses: MapHandle,
    counters: MapHandle,
    object: Object,
    slice_ns: u64,
    sees_yields: bool,
    _run_statistics: Option<OwnedFd>,
}

impl DryRun {
    /// Loads and attaches the programs. A vCPU thread is known from its first entry into its guest after that.
    ///
    /// # Errors
    /// Says what is missing (root, BTF, KVM, a function) or what the kernel refused.
    pub fn attach(options: &SteerOptions) -> Result<DryRun, SteerError> {
        requirements::check_for_dry_run()?;
        let sees_yields = functions_are_traced();
        let run_statistics = options
            .run_statistics
            .then(enable_run_statistics)
            .transpose()?;
        let slice_ns = match options.slice_ns {
            Some(slice_ns) => slice_ns,
            None => base_slice()?.0,
        };
        let object = load::with_log(|| {
            open(options, slice_ns, sees_yields)?
                .load()
                .map_err(|source| {
                    load::not_loaded(
                        &user_policy::loading("the dry run", options.user_policy.as_ref()),
                        source,
                    )
                })
        })?;
        choose_steered(&object, options)?;
        let decided = Decided::of(&object, true)?;
        decided.set_everyone(options.policies)?;
        for (process, policies) in &options.vm_policies {
            decided.set_vm(*process, *policies, ChosenBy::Start)?;
        }
        let mut dry_run = DryRun {
            _links: Vec::new(),
            decisions: DecisionLog::new(&object)?,
            answers: load::map(&object, "dry_answers")?,
            losses: load::map(&object, ".data.losses")?,
            counters: load::map(&object, "counters")?,
            object,
            slice_ns,
            sees_yields,
            _run_statistics: run_statistics,
        };
        dry_run._links = attach(&dry_run.object)?;
        Ok(dry_run)
    }

    /// How long a slice is taken to last, ns.
    pub fn slice_ns(&self) -> u64 {
        self.slice_ns
    }

    /// False where the kernel lets nobody hook its functions: then only slices that end are seen.
    pub fn sees_yields(&self) -> bool {
        self.sees_yields
    }

    /// What was answered so far, by process, VM, vCPU and candidate.
    ///
    /// # Errors
    /// When the kernel refuses to read the map.
    pub fn answers(&self) -> Result<Vec<DryAnswer>, SteerError> {
        let mut raw = Vec::new();
        for key in self.answers.keys() {
            let value = self
                .answers
                .lookup(&key, MapFlags::ANY)
                .map_err(|source| load::refused("reading the BPF map dry_answers", source))?;
            // An answer is never taken back: only a key read while others were added may be gone.
            if let Some(value) = value {
                let key: abi::unspin_dry_key = bytes::read("dry_answers", &key)?;
                let value: abi::unspin_dry_count = bytes::read("dry_answers", &value)?;
                raw.push((key, value));
            }
        }
        Ok(typed(&raw))
    }

    /// Hands over the decisions taken since the last call.
    ///
    /// # Errors
    /// When libbpf cannot read the ring.
    pub fn drain_decisions(&self, each: &mut dyn FnMut(DecisionRecord)) -> Result<(), SteerError> {
        Ok(self.decisions.drain(each)?)
    }

    /// Pv pages that guests have registered, and what was lost.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn losses(&self) -> Result<(u64, DryLosses), SteerError> {
        let losses: abi::unspin_dry_losses = load::value(&self.losses, "dry_losses", 0)?;
        let counters = read_counters(&self.counters)?;
        let counter = |which: u32| counters.of[which as usize];
        let programs = self.programs()?;
        Ok((
            counter(abi::unspin_steer_pv_pages),
            DryLosses {
                threads: losses.threads,
                answers: losses.answers,
                unlogged: counter(abi::unspin_steer_unlogged),
                pv_page_failures: counter(abi::unspin_steer_pv_page_failures),
                missed_runs: programs.iter().map(|it| it.recursion_misses).sum(),
            },
        ))
    }

    /// Runs and time of each program; both 0 unless statistics are on.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn programs(&self) -> Result<Vec<ProgramHealth>, SteerError> {
        Ok(crate::observe::health::programs(&self.object)?)
    }
}

fn open(options: &SteerOptions, slice_ns: u64, traced: bool) -> Result<OpenObject, Error> {
    let mut object = user_policy::open(options.user_policy.as_ref(), OBJECT, "dry")?;
    let settings = settings(options, slice_ns, 0, 1);
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let done = match name.as_str() {
            "decisions" if options.decision_log_bytes > 0 => {
                map.set_max_entries(options.decision_log_bytes)
            }
            ".rodata.options" => map.set_initial_value(bytes::bytes_of(&settings)),
            name if UNUSED.contains(&name) => map.set_autocreate(false),
            _ => Ok(()),
        };
        done.map_err(|source| load::refused(&format!("sizing the BPF map {name}"), source))?;
    }
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        program.set_autoload(traced || section.starts_with("tp_btf/"));
    }
    Ok(object)
}

/// Whether functions can be hooked: CONFIG_FPROBE, and with it the tracing of functions that fentry needs, too.
fn functions_are_traced() -> bool {
    KernelBtf::vmlinux().is_some_and(|btf| btf.has("register_fprobe_ips", Kind::Function))
}

/// As [`load::attach`], with yields under both schedulers.
fn attach(object: &Object) -> Result<Vec<Link>, Error> {
    let mut links = Vec::new();
    for program in object.progs_mut().filter(|program| program.autoload()) {
        let section = program.section().to_string_lossy().into_owned();
        let link = if section == YIELDS {
            program.attach_kprobe_multi(false, yield_functions())
        } else {
            program.attach()
        };
        links.push(link.map_err(|source| load::refused(&format!("attaching {section}"), source))?);
    }
    Ok(links)
}

fn yield_functions() -> Vec<&'static str> {
    let symbols = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let there = |name: &str| {
        let mut words = symbols.lines().filter_map(|line| line.split(' ').nth(2));
        words.any(|word| word == name)
    };
    match there(YIELD_OF_SCHED_EXT) {
        true => vec![YIELD_OF_FAIR, YIELD_OF_SCHED_EXT],
        false => vec![YIELD_OF_FAIR],
    }
}

/// How often something was answered about one vCPU, and one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryAnswer {
    /// The VMM.
    pub process: u32,
    /// Of that process's VMs this one, by the ids of their threads: from 0.
    pub vm: u32,
    /// KVM's number of the vCPU that was asked about.
    pub vcpu: u32,
    /// Its thread.
    pub thread: u32,
    /// vCPU and thread that KVM proposed; `None`: there was none, or one that never entered its guest meanwhile.
    pub candidate: Option<(u32, u32)>,
    /// `UNSPIN_ON_YIELD` or `UNSPIN_ON_SLICE_END`.
    pub event: u32,
    /// `UNSPIN_REFUSE` and so on.
    pub action: u32,
    /// False: no policy was on, or none may touch these vCPUs; then nobody was asked, and it counts as refused.
    pub asked: bool,
    /// How often.
    pub count: u64,
}

/// A process's VMs are numbered by their least thread.
pub(super) fn typed(raw: &[(abi::unspin_dry_key, abi::unspin_dry_count)]) -> Vec<DryAnswer> {
    let mut first: BTreeMap<(u32, u64), u32> = BTreeMap::new();
    for (key, value) in raw {
        let thread = first.entry((value.process, key.vm)).or_insert(key.thread);
        *thread = key.thread.min(*thread);
    }
    let number = |process: u32, vm: u64| {
        let own = (first[&(process, vm)], vm);
        let earlier = first
            .iter()
            .filter(|((of, other), thread)| *of == process && (**thread, *other) < own);
        earlier.count() as u32
    };
    let mut answers: Vec<DryAnswer> = raw
        .iter()
        .map(|(key, value)| DryAnswer {
            process: value.process,
            vm: number(value.process, key.vm),
            vcpu: value.vcpu,
            thread: key.thread,
            candidate: (key.candidate != 0).then_some((value.candidate_vcpu, key.candidate)),
            event: key.event,
            action: key.action,
            asked: key.asked != 0,
            count: value.count,
        })
        .collect();
    answers.sort_by_key(|it| {
        (
            it.process,
            it.vm,
            it.vcpu,
            it.thread,
            it.event,
            it.action,
            it.candidate,
        )
    });
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vms_of_a_process_are_told_apart() {
        let answer = |process, vm, thread, candidate| {
            let key = abi::unspin_dry_key {
                vm,
                thread,
                candidate,
                event: 1,
                action: 2,
                asked: 1,
                reserved: 0,
            };
            let value = abi::unspin_dry_count {
                count: 5,
                process,
                vcpu: thread % 10,
                candidate_vcpu: candidate % 10,
                reserved: 0,
            };
            (key, value)
        };
        // Addresses in another order than threads, and one VM's address again in another process.
        let raw = [
            answer(7, 900, 11, 12),
            answer(7, 100, 21, 22),
            answer(7, 900, 12, 0),
            answer(8, 100, 30, 31),
        ];
        let answers = typed(&raw);
        let short: Vec<_> = answers
            .iter()
            .map(|it| (it.process, it.vm, it.vcpu, it.candidate))
            .collect();
        assert_eq!(
            short,
            [
                (7, 0, 1, Some((2, 12))),
                (7, 0, 2, None),
                (7, 1, 1, Some((2, 22))),
                (8, 0, 0, Some((1, 31))),
            ]
        );
        assert!(typed(&[]).is_empty());
    }
}
