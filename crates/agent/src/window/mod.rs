// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pause-loop windows by policy, or the guests' spin thresholds in their place: `bpf/window/main.bpf.c` from attach until the value is
//! dropped, beside any scheduler. vCPUs keep the window that they had last, and the threshold until they register their page anew.

mod error;
mod host;
mod module;
mod options;

use std::{cell::RefCell, path::Path, rc::Rc};

use libbpf_rs::{
    Link, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, RingBuffer, RingBufferBuilder,
};
use unspin_abi as abi;
use unspin_policy::{SpinBound, window_is_quicker};

use crate::{
    Error,
    kernel::{
        bytes,
        load::{self, NicenessGuard},
        requirements,
    },
    scheduler::writes_memory,
};
use host::KvmWindow;
use module::{Layout, PleModule};

pub use abi::{
    unspin_window_epoch as WindowEpoch, unspin_window_globals as WindowTotals,
    unspin_window_sums as WindowSums,
};
pub use error::WindowError;
pub use module::{Vendor, module_path};
pub use options::{PleSource, WindowOptions};

/// Only who tells guests something listens to their registrations.
const FOR_THRESHOLDS: &str = "tp_btf/kvm_hypercall";

static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/window.bpf.o"));

/// The programs while they are attached.
pub struct WindowSteerer {
    // Dropped in this order: the programs, what they used, and then the module that they held.
    _links: Vec<Link>,
    ring: RingBuffer<'static>,
    ended: Rc<RefCell<Vec<WindowEpoch>>>,
    globals: MapHandle,
    vms: MapHandle,
    _object: Object,
    _module: Option<PleModule>,
    bound: WindowBound,
}

/// What is set, and in which unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowBound {
    /// The hardware's window, by the module.
    Window(Vendor),
    /// How many spins guests with a page (`abi/guest/pv_page.h`) spin before they halt or ask for help.
    Threshold,
}

impl WindowSteerer {
    /// Loads the programs, and the module where windows are to be set; from each vCPU's next exit on its window is the policy's,
    /// or from its next entry on its threshold.
    ///
    /// # Errors
    /// Says what is missing or in the way, or what the kernel refused; then nothing has changed.
    pub fn attach(options: &WindowOptions) -> Result<WindowSteerer, WindowError> {
        let _niceness = NicenessGuard::begin();
        let (bound, module, settings) = match options.bound() {
            SpinBound::Window => {
                let kvm = KvmWindow::of(Path::new("/sys/module"))?;
                let settings = options.for_windows(&kvm)?;
                requirements::check_for_windows()?;
                let module = PleModule::load(&options.module_file(), &Layout::read(kvm.vendor)?)?;
                (WindowBound::Window(kvm.vendor), Some(module), settings)
            }
            SpinBound::Threshold => {
                let settings = options.for_thresholds()?;
                requirements::check_for_thresholds()?;
                if !writes_memory() {
                    return Err(WindowError::MayNotWrite);
                }
                (WindowBound::Threshold, None, settings)
            }
        };
        let object = load::with_log(|| open(&settings))?;
        let processes = load::map(&object, "processes")?;
        for process in &options.processes {
            load::update(&processes, &process.to_ne_bytes(), &1u32.to_ne_bytes())?;
        }
        options.disclosures.fill(&object, options::notifies)?;
        let ended = Rc::new(RefCell::new(Vec::new()));
        Ok(WindowSteerer {
            ring: ring(&object, &ended)?,
            ended,
            globals: load::map(&object, ".data.globals")?,
            vms: load::map(&object, "vms")?,
            _links: load::attach(&object)?,
            _object: object,
            _module: module,
            bound,
        })
    }

    /// What is set.
    pub fn bound(&self) -> WindowBound {
        self.bound
    }

    /// The epochs that have ended since the last call.
    ///
    /// # Errors
    /// When libbpf cannot read the ring.
    pub fn drain(&self) -> Result<Vec<WindowEpoch>, WindowError> {
        let read = self.ring.consume();
        read.map_err(|source| load::refused("reading epochs", source))?;
        Ok(self.ended.take())
    }

    /// Sums since attach.
    ///
    /// # Errors
    /// When the kernel refuses to read the map.
    pub fn totals(&self) -> Result<WindowTotals, WindowError> {
        Ok(load::value(&self.globals, "globals", 0)?)
    }

    /// Sums of the VMs that there are, all together.
    ///
    /// # Errors
    /// As [`WindowSteerer::totals`].
    pub fn sums(&self) -> Result<WindowSums, WindowError> {
        let mut all = WindowSums::default();
        for key in self.vms.keys() {
            let value = self.vms.lookup(&key, MapFlags::ANY);
            let value = value.map_err(|source| load::refused("reading the BPF map vms", source))?;
            // That VM is gone in between.
            let Some(value) = value else { continue };
            add(&mut all, &sums_of(&value)?);
        }
        Ok(all)
    }
}

/// They end a VM's state (`struct vm_state`, `bpf/window/main.bpf.c`).
fn sums_of(state: &[u8]) -> Result<WindowSums, Error> {
    let begin = state.len().saturating_sub(size_of::<WindowSums>());
    bytes::read("vms", &state[begin..])
}

fn add(all: &mut WindowSums, one: &WindowSums) {
    all.exits += one.exits;
    all.window_units += one.window_units;
    all.mean_units += one.mean_units;
    all.handling_ns += one.handling_ns;
    all.cpu_ns += one.cpu_ns;
    // Guests may wait in different loops, and the least has the least else in it.
    if window_is_quicker(one.spun_ns, one.spun_units, all.spun_ns, all.spun_units) {
        (all.spun_ns, all.spun_units) = (one.spun_ns, one.spun_units);
    }
}

fn open(settings: &abi::unspin_window_options) -> Result<Object, Error> {
    let refused = |source| load::refused("loading the programs that set windows", source);
    let mut object = ObjectBuilder::default()
        .name("window")
        .and_then(|builder| builder.open_memory(OBJECT))
        .map_err(refused)?;
    for mut map in object.maps_mut() {
        if map.name().to_string_lossy().ends_with(".rodata") {
            map.set_initial_value(bytes::bytes_of(settings))
                .map_err(refused)?;
        }
    }
    if settings.bound == SpinBound::Window.raw() {
        let calls = |program: &libbpf_rs::OpenProgramMut<'_>| program.section() == FOR_THRESHOLDS;
        for mut program in object.progs_mut().filter(calls) {
            program.set_autoload(false);
        }
    }
    object.load().map_err(refused)
}

fn ring(
    object: &Object,
    ended: &Rc<RefCell<Vec<WindowEpoch>>>,
) -> Result<RingBuffer<'static>, Error> {
    let epochs = load::map(object, "epochs")?;
    let mut builder = RingBufferBuilder::new();
    let into = Rc::clone(ended);
    let keep = move |record: &[u8]| {
        // Records are of that size: whatever else there might be is left out.
        into.borrow_mut()
            .extend(bytes::read::<WindowEpoch>("epochs", record));
        0
    };
    let refused = |source| load::refused("opening the ring of epochs", source);
    builder.add(&epochs, keep).map_err(refused)?;
    builder.build().map_err(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_the_end_of_a_vms_state() {
        let one = WindowSums {
            exits: 1,
            window_units: 2,
            mean_units: 3,
            handling_ns: 4,
            cpu_ns: 5,
            spun_ns: 6,
            spun_units: 7,
        };
        let state = [&[0xff; 24][..], bytes::bytes_of(&one)].concat();
        let mut all = sums_of(&state).expect("they are there");
        assert_eq!(all, one);
        assert!(sums_of(&state[..40]).is_err(), "another struct");
        add(&mut all, &one);
        assert_eq!((all.exits, all.cpu_ns, all.handling_ns), (2, 10, 8));
        assert_eq!((all.window_units, all.mean_units), (4, 6));
        assert_eq!((all.spun_ns, all.spun_units), (6, 7), "the quickest window");
        let quicker = WindowSums {
            spun_ns: 5,
            spun_units: 7,
            ..WindowSums::default()
        };
        add(&mut all, &quicker);
        add(&mut all, &one);
        add(&mut all, &WindowSums::default());
        assert_eq!((all.spun_ns, all.spun_units), (5, 7));
    }
}
