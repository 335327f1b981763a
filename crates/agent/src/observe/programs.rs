// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs that observe: which of them are loaded, and how.

use libbpf_rs::{Object, ObjectBuilder, OpenObject};
use unspin_abi as abi;

use crate::{
    Error, ObserveOptions,
    kernel::{
        bytes::bytes_of,
        load::{refused, with_log},
    },
    observe::ipi_visibility::{IPI_TRACEPOINTS, has_function, has_tracepoint},
};

/// What observes: `bpf/observe/main.bpf.c`.
pub(crate) static OBSERVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/observe.bpf.o"));

/// Programs that only events of those kinds need, and that a kernel may lack the place for.
const FOR_EVENTS: [(&str, &[u32]); 5] = [
    ("kprobe.multi/yield_to", &[abi::UNSPIN_EVENT_YIELD_TO]),
    ("tp_btf/kvm_apic_ipi", &[abi::UNSPIN_EVENT_IPI]),
    (ACCEPTS, &[abi::UNSPIN_EVENT_IPI]),
    (ACCEPTS_BY_TRACEPOINT, &[abi::UNSPIN_EVENT_IPI]),
    (
        "tp_btf/kvm_hypercall",
        &[abi::UNSPIN_EVENT_IPI, abi::UNSPIN_EVENT_PV_PAGE],
    ),
];

/// Two programs for the same thing: the second where the kernel has not got the first one's place.
const ACCEPTS: &str = "kprobe.multi/__apic_accept_irq";
const ACCEPTS_BY_TRACEPOINT: &str = "tp_btf/kvm_apic_accept_irq";

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
            name if name.ends_with(".rodata") => map.set_initial_value(bytes_of(&settings)),
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
    let place = place_of(section);
    let there = match section {
        ACCEPTS => has_function(place),
        ACCEPTS_BY_TRACEPOINT if has_function(place_of(ACCEPTS)) => false,
        _ => !IPI_TRACEPOINTS.contains(&place) || has_tracepoint(place),
    };
    there && kinds.iter().any(|kind| options.events.has(*kind))
}

/// What a program of that section attaches to.
fn place_of(section: &str) -> &str {
    section.split_once('/').map_or("", |(_, place)| place)
}
