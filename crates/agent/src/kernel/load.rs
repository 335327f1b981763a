// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an embedded object file to programs that run.

use std::sync::Mutex;

use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel, RingBuffer,
};
use unspin_abi as abi;

use crate::{
    Error, ObserveOptions,
    kernel::{bytes, niceness_guard::NicenessGuard},
    observe::ipi_visibility::{IPI_TRACEPOINTS, has_tracepoint},
};

/// What observes: `bpf/observe/main.bpf.c`.
pub(crate) static OBSERVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/observe.bpf.o"));

/// Programs that nothing in the kernel runs.
const RUN_BY_USER_SPACE: &str = "syscall";

/// Programs that only events of those kinds need, and that a kernel may lack the place for.
const FOR_EVENTS: [(&str, &[u32]); 4] = [
    ("kprobe.multi/yield_to", &[abi::UNSPIN_EVENT_YIELD_TO]),
    ("tp_btf/kvm_apic_ipi", &[abi::UNSPIN_EVENT_IPI]),
    ("tp_btf/kvm_apic_accept_irq", &[abi::UNSPIN_EVENT_IPI]),
    (
        "tp_btf/kvm_hypercall",
        &[abi::UNSPIN_EVENT_IPI, abi::UNSPIN_EVENT_PV_PAGE],
    ),
];

/// What libbpf printed since the last look; its callback is a plain function and has nowhere else to put it.
static PRINTED: Mutex<String> = Mutex::new(String::new());
/// One load at a time, so that nobody takes another's lines.
static LOADING: Mutex<()> = Mutex::new(());
/// Lines of libbpf's output that go into an error: the verifier's verdict is at the end.
const LOG_LINES: usize = 30;

/// Which of an object's programs are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    All,
    /// Those at the scheduler's tracepoints: for kernels without KVM.
    Scheduler,
}

impl Places {
    fn include(self, section: &str) -> bool {
        self == Places::All || section.starts_with("tp_btf/sched_")
    }
}

/// Opens, sets up and loads the object in those bytes; no program runs yet. Where the kernel refuses programs that read
/// its memory by themselves (before Linux 6.17), those that call a helper for it are loaded.
pub(crate) fn load(
    bytes: &[u8],
    places: Places,
    options: &ObserveOptions,
) -> Result<Object, Error> {
    if options.direct_reads {
        if let Ok(object) = load_as_told(bytes, places, options, true) {
            return Ok(object);
        }
    }
    load_as_told(bytes, places, options, false)
}

fn load_as_told(
    bytes: &[u8],
    places: Places,
    options: &ObserveOptions,
    direct_reads: bool,
) -> Result<Object, Error> {
    with_log(|| {
        open(bytes, places, options, direct_reads)?
            .load()
            .map_err(|source| refused("loading the BPF programs", source))
    })
}

/// Does `work` with libbpf's lines kept for [`refused`], before other threads' work.
pub(crate) fn with_log<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let _alone = LOADING
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let _niceness = NicenessGuard::begin();
    PRINTED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .clear();
    let before = libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
    let done = work();
    libbpf_rs::set_print(before);
    done
}

/// Attaches every program that was loaded and has a place of its own: a scheduler's come with their map. All of them run
/// until the links are dropped.
pub(crate) fn attach(object: &Object) -> Result<Vec<Link>, Error> {
    object
        .progs_mut()
        .filter(|program| program.autoload() && program.section() != RUN_BY_USER_SPACE)
        .filter(|program| {
            !program
                .section()
                .to_string_lossy()
                .starts_with("struct_ops")
        })
        .map(|program| {
            let section = program.section().to_string_lossy();
            // By name: libbpf's own way would read tracefs, which need not be mounted.
            let link = match section.split_once('/') {
                Some(("kprobe.multi", function)) => {
                    program.attach_kprobe_multi(false, vec![function])
                }
                Some(("kretprobe.multi", function)) => {
                    program.attach_kprobe_multi(true, vec![function])
                }
                _ => program.attach(),
            };
            link.map_err(|source| refused(&format!("attaching {section}"), source))
        })
        .collect()
}

fn keep(_level: PrintLevel, line: String) {
    PRINTED
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
        .push_str(&line);
}

/// Takes so many records from a ring, or as many as there are.
pub(crate) fn consume(ring: &RingBuffer, most: usize) -> Result<(), libbpf_rs::Error> {
    match ring.consume_raw_n(most) {
        error @ ..0 => Err(libbpf_rs::Error::from_raw_os_error(-error)),
        _ => Ok(()),
    }
}

/// Writes one value into a map.
pub(crate) fn update(map: &MapHandle, key: &[u8], value: &[u8]) -> Result<(), Error> {
    map.update(key, value, MapFlags::ANY).map_err(|source| {
        refused(
            &format!("filling the BPF map {}", map.name().to_string_lossy()),
            source,
        )
    })
}

/// The error of a step, with what libbpf printed.
pub(crate) fn refused(step: &str, source: libbpf_rs::Error) -> Error {
    let printed = std::mem::take(
        &mut *PRINTED
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner()),
    );
    let lines: Vec<&str> = printed.lines().collect();
    let log = lines[lines.len().saturating_sub(LOG_LINES)..]
        .iter()
        .map(|line| format!("\n  {line}"))
        .collect();
    Error::Bpf {
        step: step.to_owned(),
        source,
        log,
    }
}

fn open(
    bytes: &[u8],
    places: Places,
    options: &ObserveOptions,
    direct_reads: bool,
) -> Result<OpenObject, Error> {
    let mut object = ObjectBuilder::default()
        .name("observe")
        .and_then(|builder| builder.open_memory(bytes))
        .map_err(|source| refused("reading the embedded BPF object", source))?;
    let settings = abi::unspin_observe_options {
        event_mask: options.events.bits(),
        direct_reads: direct_reads.into(),
    };
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let done = match name.as_str() {
            "threads" | "free_slots" | "vcpu_of_thread" => map.set_max_entries(options.threads_max),
            "events" => map.set_max_entries(options.ring_bytes),
            name if name.ends_with(".rodata") => {
                map.set_initial_value(crate::kernel::bytes::bytes_of(&settings))
            }
            _ => Ok(()),
        };
        done.map_err(|source| refused(&format!("sizing the BPF map {name}"), source))?;
    }
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        program.set_autoload(places.include(&section) && is_wanted(&section, options));
    }
    Ok(object)
}

/// Whether a program of that section is loaded. Without a tracepoint of IPIs all others work: `ipi_visibility` tells.
fn is_wanted(section: &str, options: &ObserveOptions) -> bool {
    let Some((_, kinds)) = FOR_EVENTS.iter().find(|(name, _)| *name == section) else {
        return true;
    };
    let place = section.split_once('/').map_or("", |(_, place)| place);
    let there = !IPI_TRACEPOINTS.contains(&place) || has_tracepoint(place);
    there && kinds.iter().any(|kind| options.events.has(*kind))
}

/// A map of the loaded object by the end of its name (libbpf puts the object's name before `.bss`).
pub(crate) fn map(object: &Object, name: &'static str) -> Result<MapHandle, Error> {
    let found = object
        .maps()
        .find(|map| map.name().to_string_lossy().ends_with(name));
    let missing = || std::io::Error::new(std::io::ErrorKind::NotFound, name).into();
    found
        .ok_or_else(missing)
        .and_then(|map| MapHandle::try_from(&map))
        .map_err(|source| refused(&format!("finding the BPF map {name}"), source))
}

/// Puts a slot's number into the queue that the programs take theirs from.
pub(crate) fn return_slot(free_slots: &MapHandle, slot: u32) -> Result<(), Error> {
    free_slots
        .update(&[], &slot.to_ne_bytes(), MapFlags::ANY)
        .map_err(|source| refused("filling the queue of free slots", source))
}

/// The value of an array map at `index`.
pub(crate) fn value<T: bytes::Plain>(
    map: &MapHandle,
    name: &'static str,
    index: u32,
) -> Result<T, Error> {
    let found = map
        .lookup(&index.to_ne_bytes(), MapFlags::ANY)
        .map_err(|source| refused(&format!("reading the BPF map {name}"), source))?;
    bytes::read(name, &found.unwrap_or_default())
}

/// Overwrites the value of an array map at `index`.
pub(crate) fn set_value<T: bytes::Plain>(
    map: &MapHandle,
    index: u32,
    value: &T,
) -> Result<(), Error> {
    map.update(&index.to_ne_bytes(), bytes::bytes_of(value), MapFlags::ANY)
        .map_err(|source| refused("writing a BPF map", source))
}
