// SPDX-License-Identifier: MIT OR Apache-2.0
//! From the embedded object file to a scheduler that runs.

use std::{fs, path::Path};

use super::{
    ChosenBy, Disclosure, LoadedSteerer, SteerEnd, SteerError, SteerOptions, Steerer,
    decided::Decided,
    domains::Domains,
    figures::DecisionLog,
    host::Cpus,
    only_vms::{self, OnlyVms},
    requirements, user_policy,
};
use crate::{
    Error,
    kernel::{bytes, load, requirements::release},
    observe::observer::enable_run_statistics,
};
use libbpf_rs::{MapCore, MapHandle, MapType, Object, OpenMapMut, OpenObject};
use unspin_abi as abi;

pub(super) static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/steer.bpf.o"));

/// Cgroups that there is room for beyond twice those that exist at attach; more count as their parents.
const SPARE_GROUPS: u32 = 4096;
/// Index 0 is the root's.
const FIRST_FREE_GROUP: u32 = 1;

/// Programs that only a rule of candidates needs (`bpf/scheduler/yield/spin.bpf.h`).
const CHOOSING: [&str; 3] = ["on_spin_begins", "on_spin_apic_ipi", "on_spin_accept_irq"];

/// The program that only `SteerOptions::only_vms` needs (`bpf/scheduler/only_vms/taken_cpus.bpf.h`).
const FOR_ONLY_VMS: &str = "on_switch_class";

/// Those that only hosts with VMX need (`bpf/scheduler/guest/vmx_interrupts.bpf.h`).
const FOR_VMX: [&str; 2] = ["on_vmx_timer", "on_vmx_reschedule"];

/// Loads and sets up; no program runs yet.
pub(super) fn load(options: &SteerOptions, slice_ns: u64) -> Result<LoadedSteerer, SteerError> {
    let cpus = Cpus::here()?;
    let domains = Domains::here(&cpus.shared());
    let run_statistics = options
        .run_statistics
        .then(enable_run_statistics)
        .transpose()?;
    let groups = 2 * count_folders(Path::new("/sys/fs/cgroup")) + SPARE_GROUPS;
    let object = load::with_log(|| {
        open(options, slice_ns, &cpus, &domains, groups)?
            .load()
            .map_err(|source| {
                load::not_loaded(
                    &user_policy::loading("the scheduler", options.user_policy.as_ref()),
                    source,
                )
            })
    })?;
    fill(&object, options, &cpus, &domains, groups)?;
    let decided = Decided::of(&object, false)?;
    decided.start(options.policies, chooses(options))?;
    for (process, policies) in &options.vm_policies {
        decided.set_vm(*process, *policies, ChosenBy::Start)?;
    }
    Ok(LoadedSteerer {
        decided,
        decisions: DecisionLog::new(&object)?,
        object,
        slice_ns,
        only_vms: options.only_vms,
        run_statistics,
    })
}

/// From then on it schedules.
pub(super) fn attach(mut loaded: LoadedSteerer) -> Result<Steerer, SteerError> {
    // Before the first thread is moved: it reads the ring from now on.
    let only_vms = loaded
        .only_vms
        .then(|| OnlyVms::start(&loaded.object))
        .transpose()?;
    // First the scheduler, which makes every task's context: the other programs do nothing without.
    let scheduler = load::with_log(|| {
        let mut maps = loaded.object.maps_mut();
        let mut ops = maps
            .find(|map| map.map_type() == MapType::StructOps)
            .expect("the object has one struct_ops map");
        ops.attach_struct_ops()
            .map_err(|source| load::refused("attaching the scheduler", source))
    });
    // One that was started at the same time has been first: the kernel says EBUSY.
    let scheduler = scheduler.map_err(|refused| match requirements::check_alone() {
        Err(other) => other,
        Ok(()) => refused.into(),
    })?;
    let object = &loaded.object;
    let ended = load::map(object, ".data.ended")?;
    let dump = load::map(object, ".data.dump")?;
    // The kernel attaches it and takes it away at once where a task or a cgroup could not be made ready (scx_root_enable_workfn(),
    // kernel/sched/ext/ext.c, Linux 7.2).
    if let Some(end) = SteerEnd::read(&ended, &dump)? {
        return Err(SteerError::TakenBack { end: Box::new(end) });
    }
    Ok(Steerer {
        _programs: load::attach(object)?,
        _scheduler: scheduler,
        only_vms,
        ended,
        dump,
        counters: load::map(object, "counters")?,
        guest_audit: load::map(object, "guest_audit")?,
        decided: loaded.decided,
        decisions: loaded.decisions,
        object: loaded.object,
        slice_ns: loaded.slice_ns,
        _run_statistics: loaded.run_statistics,
    })
}

/// Whether programs for rules of candidates are to be loaded.
fn chooses(options: &SteerOptions) -> bool {
    let of_vms = options.vm_policies.iter().map(|(_, policies)| policies);
    let mut all = of_vms.chain([&options.policies]);
    options.candidates || all.any(|policies| policies.need_candidates())
}

/// What the programs are told once for all.
pub(super) fn settings(
    options: &SteerOptions,
    slice_ns: u64,
    cpus: u32,
    domains: u32,
) -> abi::unspin_steer_options {
    abi::unspin_steer_options {
        slice_ns,
        cpus,
        everyone: (options.processes.is_empty() && options.cgroups.is_empty()).into(),
        log_decisions: (options.decision_log_bytes > 0).into(),
        disclosure: options.disclosures.everyone.number(),
        sections: options.sections.len() as u32,
        chooses: chooses(options).into(),
        writes_memory: requirements::writes_memory().into(),
        only_vms: options.only_vms.into(),
        domains,
        direct_reads: requirements::reads_directly(&release()).into(),
    }
}

fn open(
    options: &SteerOptions,
    slice_ns: u64,
    cpus: &Cpus,
    domains: &Domains,
    groups: u32,
) -> Result<OpenObject, Error> {
    let mut object = user_policy::open(options.user_policy.as_ref(), OBJECT, "steer")?;
    let settings = settings(options, slice_ns, cpus.count, domains.count());
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let done = match name.as_str() {
            "sections" => map.set_max_entries(options.sections.len().max(1) as u32),
            "cpus" | "slice_timers" => map.set_max_entries(cpus.count),
            "decisions" if options.decision_log_bytes > 0 => {
                map.set_max_entries(options.decision_log_bytes)
            }
            "groups" | "free_groups" | "group_of_cgroup" => map.set_max_entries(groups),
            ".rodata.options" => map.set_initial_value(bytes::bytes_of(&settings)),
            "moves" if options.only_vms => map.set_max_entries(only_vms::RING_BYTES),
            _ => Ok(()),
        };
        if options.only_vms && map.map_type() == MapType::StructOps {
            switch_partial(&mut map);
        }
        done.map_err(|source| load::refused(&format!("sizing the BPF map {name}"), source))?;
    }
    let module = |name| Path::new("/sys/module").join(name).exists();
    let (kvm, vmx) = (module("kvm"), module("kvm_intel"));
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let name = program.name().to_string_lossy();
        let idle = settings.chooses == 0 && CHOOSING.contains(&&*name)
            || !options.only_vms && name == FOR_ONLY_VMS
            || !vmx && FOR_VMX.contains(&&*name);
        // Without KVM there is no vCPU, and its tracepoints are not there.
        let without = section.starts_with("struct_ops")
            || section.ends_with("sys_prctl")
            || name == FOR_ONLY_VMS;
        program.set_autoload(!idle && (kvm || without));
    }
    Ok(object)
}

/// Tells the kernel that tasks with the policy `SCHED_EXT` only are the scheduler's, and may wait for long.
fn switch_partial(ops: &mut OpenMapMut<'_>) {
    let all = ops.initial_value_mut().unwrap_or_default();
    let mut put = |at: u32, bytes: &[u8]| {
        let at = at as usize;
        all.get_mut(at..at + bytes.len())
            .expect("struct sched_ext_ops ends beyond its members")
            .copy_from_slice(bytes);
    };
    let timeout_ms = abi::UNSPIN_STEER_ONLY_VMS_TIMEOUT_MS;
    put(
        abi::UNSPIN_STEER_OPS_TIMEOUT_MS_AT,
        &timeout_ms.to_ne_bytes(),
    );
    // x86-64, as every host of ours: the flag is in the first byte.
    all[abi::UNSPIN_STEER_OPS_FLAGS_AT as usize] |= abi::UNSPIN_STEER_OPS_SWITCH_PARTIAL as u8;
}

/// What the maps hold before the first task arrives.
fn fill(
    object: &Object,
    options: &SteerOptions,
    cpus: &Cpus,
    domains: &Domains,
    groups: u32,
) -> Result<(), SteerError> {
    let free = load::map(object, "free_groups")?;
    for group in FIRST_FREE_GROUP..groups {
        load::return_slot(&free, group)?;
    }
    let contexts = load::map(object, "cpus")?;
    for cpu in 0..cpus.count {
        let domain = domains.of_cpu(cpu) << abi::UNSPIN_STEER_CPU_DOMAIN_SHIFT;
        set_cpu_flags(&contexts, cpu, cpus.flags(cpu) | domain)?;
    }
    let of_domains = load::map(object, "domains")?;
    for domain in 0..domains.count() {
        set_order(&of_domains, domain, &domains.order(domain))?;
    }
    options.disclosures.fill(object, Disclosure::number)?;
    let sections = load::map(object, "sections")?;
    for (index, section) in options.sections.iter().enumerate() {
        // struct unspin_steer_section
        let value = [section.start.to_ne_bytes(), section.end.to_ne_bytes()].concat();
        load::update(&sections, &(index as u32).to_ne_bytes(), &value)?;
    }
    choose_steered(object, options)
}

/// Whom policies touch, when not everyone.
pub(super) fn choose_steered(object: &Object, options: &SteerOptions) -> Result<(), SteerError> {
    let yes = 1u32.to_ne_bytes();
    let processes = load::map(object, "steered_processes")?;
    for process in &options.processes {
        load::update(&processes, &process.to_ne_bytes(), &yes)?;
    }
    let cgroups = load::map(object, "steered_cgroups")?;
    for cgroup in &options.cgroups {
        load::update(&cgroups, &cgroup.to_ne_bytes(), &yes)?;
    }
    Ok(())
}

/// `flags` of `struct cpu_context`, which begins with a timer of 16 bytes that user space reads and writes as zeroes.
fn set_cpu_flags(contexts: &MapHandle, cpu: u32, flags: u32) -> Result<(), Error> {
    const FLAGS_AT: usize = 16;
    let mut value = vec![0; contexts.value_size() as usize];
    value[FLAGS_AT..FLAGS_AT + 4].copy_from_slice(&flags.to_ne_bytes());
    load::update(contexts, &cpu.to_ne_bytes(), &value)
}

/// `order` of `struct domain`, its last member.
fn set_order(domains: &MapHandle, domain: u32, order: &[u8]) -> Result<(), Error> {
    let mut value = vec![0; domains.value_size() as usize];
    let at = value.len() - abi::UNSPIN_STEER_DOMAINS_MAX as usize;
    value[at..at + order.len()].copy_from_slice(order);
    load::update(domains, &domain.to_ne_bytes(), &value)
}

/// Folders below, itself included; those that cannot be read count as one.
fn count_folders(folder: &Path) -> u32 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    1 + below.map(|entry| count_folders(&entry.path())).sum::<u32>()
}
