// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs while they run.
//!
//! VMs come and go, and the memory for them stays what it was.
//!
//! There are `threads_max` slots. A thread keeps its own until it ends, its counters stand there until somebody gives the
//! slot back, and then in a sum of its VM. Only when more threads live at a time than there are slots, or more come and go
//! between two drains than are left, is anything missed: `Health::unobserved_exits` counts their exits.

use std::{
    collections::{BTreeMap, HashMap},
    io,
    os::fd::{FromRawFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard},
};

use libbpf_rs::{Link, MapHandle, Object, RingBuffer, RingBufferBuilder, libbpf_sys};
use unspin_abi as abi;
use unspin_events::{Event, VcpuCounters};

use crate::{
    Error, KernelLog, ObserveOptions,
    kernel::{bytes, load, requirements},
    observe::{
        health::{self, Health, ProgramHealth},
        programs,
        threads::{self, Snapshot},
    },
};

/// Observes every vCPU thread of this host from [`Observer::attach`] until it is dropped. Several may exist at a time;
/// each pays for its own programs.
pub struct Observer {
    // Dropped in this order: first nothing runs any more, then its maps go.
    links: Vec<Link>,
    ring: RingBuffer<'static>,
    ring_bytes: u32,
    received: Arc<Mutex<Vec<abi::unspin_event>>>,
    pub(crate) threads: MapHandle,
    pub(crate) free_slots: MapHandle,
    pub(crate) globals: MapHandle,
    pub(crate) threads_max: u32,
    pub(crate) baseline: Baseline,
    /// Of ended threads whose slots were given back since the last reset, by VM.
    pub(crate) folded: BTreeMap<u32, VcpuCounters>,
    /// Slots given back, ever.
    pub(crate) slots_returned: u64,
    pub(crate) object: Object,
    _run_statistics: Option<OwnedFd>,
}

/// The programs in the kernel, walked through by its verifier, which is most of what an attach takes; none runs yet.
pub struct LoadedObserver(Observer);

impl LoadedObserver {
    /// Attaches them.
    ///
    /// # Errors
    /// As [`Observer::attach`].
    pub fn attach(self) -> Result<Observer, Error> {
        let LoadedObserver(mut observer) = self;
        observer.links = load::attach(&observer.object)?;
        Ok(observer)
    }
}

/// What the kernel's counters said at the last reset.
pub(crate) struct Baseline {
    globals: abi::unspin_observe_globals,
    programs: Vec<ProgramHealth>,
    pub(crate) threads: HashMap<u32, Snapshot>,
}

impl Observer {
    /// Loads the programs and attaches them. A vCPU thread is seen from its first exit or entry after that.
    ///
    /// # Errors
    /// Says what is missing (root, BTF, KVM, a function) or what the kernel refused; then nothing stays attached.
    pub fn attach(options: &ObserveOptions) -> Result<Observer, Error> {
        Observer::load(options)?.attach()
    }

    /// Loads the programs, for those who know a better time for it than when they need them.
    ///
    /// # Errors
    /// As [`Observer::attach`].
    pub fn load(options: &ObserveOptions) -> Result<LoadedObserver, Error> {
        options.check()?;
        requirements::check()?;
        Observer::from_object(options, programs::OBSERVE)
    }

    /// Loads another object that has the maps of `bpf/observe/maps.bpf.h`.
    pub(crate) fn from_object(
        options: &ObserveOptions,
        object: &'static [u8],
    ) -> Result<LoadedObserver, Error> {
        let run_statistics = options
            .run_statistics
            .then(enable_run_statistics)
            .transpose()?;
        let object = programs::load(object, programs::Places::All, options)?;
        let free_slots = load::map(&object, "free_slots")?;
        for slot in 0..options.threads_max {
            load::return_slot(&free_slots, slot)?;
        }
        let received = Arc::new(Mutex::new(Vec::new()));
        Ok(LoadedObserver(Observer {
            links: Vec::new(),
            ring: ring(&object, Arc::clone(&received))?,
            ring_bytes: options.ring_bytes,
            received,
            threads: load::map(&object, "threads")?,
            free_slots,
            globals: load::map(&object, ".bss")?,
            threads_max: options.threads_max,
            baseline: Baseline {
                globals: abi::unspin_observe_globals::default(),
                programs: Vec::new(),
                threads: HashMap::new(),
            },
            folded: BTreeMap::new(),
            slots_returned: 0,
            object,
            _run_statistics: run_statistics,
        }))
    }

    /// The counters of every vCPU thread seen since the last reset, ended ones included, by VM and vCPU. While slots are
    /// short, threads that have ended are left out: [`Observer::vm_counters`] has them.
    ///
    /// # Errors
    /// When the kernel refuses to read a map.
    pub fn counters(&self) -> Result<Vec<VcpuCounters>, Error> {
        let mut all = Vec::new();
        self.for_each_thread(|slot, snapshot| {
            all.push(self.since_reset(slot, &snapshot));
            Ok(())
        })?;
        all.sort_by_key(|counters| (counters.vm, counters.vcpu, counters.thread));
        Ok(all)
    }

    /// Hands over every event that is in the ring, in the order in which they were written; of those that are written
    /// meanwhile no more than the ring holds, for they may come faster than they can be read. Call it often enough for
    /// the ring's size: the programs never wake anybody. Events that this version cannot decode are left out and counted in
    /// the result.
    ///
    /// # Errors
    /// When libbpf cannot read the ring.
    pub fn drain(&mut self, each: &mut dyn FnMut(Event)) -> Result<u64, Error> {
        // Each record has a header of 8 bytes.
        let most = self.ring_bytes as usize / (size_of::<abi::unspin_event>() + 8);
        self.drain_at_most(most, each)
    }

    /// The same, but only some thousands: for a thread that also has to listen to somebody.
    pub(crate) fn drain_some(&mut self, each: &mut dyn FnMut(Event)) -> Result<u64, Error> {
        const SOME: usize = 8192;
        self.drain_at_most(SOME, each)
    }

    /// Ends all programs; what they have counted and written stays to be read.
    pub(crate) fn detach(&mut self) {
        self.links.clear();
    }

    fn drain_at_most(&mut self, most: usize, each: &mut dyn FnMut(Event)) -> Result<u64, Error> {
        load::consume(&self.ring, most).map_err(|source| Error::Bpf {
            step: "reading the ring of events".to_owned(),
            source,
            log: KernelLog::default(),
        })?;
        self.make_room()?;
        let mut undecodable = 0;
        for raw in lock(&self.received).drain(..) {
            match Event::decode(&raw) {
                Ok(event) => each(event),
                Err(_) => undecodable += 1,
            }
        }
        Ok(undecodable)
    }

    /// What was lost and what it cost, since the last reset.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn health(&self) -> Result<Health, Error> {
        let globals = load::value(&self.globals, "globals", 0)?;
        let programs = health::programs(&self.object)?;
        let then = |name: &str| {
            self.baseline
                .programs
                .iter()
                .find(|program| program.name == name)
        };
        Ok(Health {
            programs: programs
                .into_iter()
                .map(|now| {
                    let then = then(&now.name);
                    now.since(then)
                })
                .collect(),
            ..Health::new(&globals, &self.baseline.globals)
        })
    }

    /// Events lost since the last reset, by number of kind. Cheap: to be asked at every drain.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn lost(&self) -> Result<[u64; abi::UNSPIN_EVENT_KINDS as usize], Error> {
        let now: abi::unspin_observe_globals = load::value(&self.globals, "globals", 0)?;
        let then = &self.baseline.globals.lost_events;
        Ok(std::array::from_fn(|kind| {
            now.lost_events[kind].saturating_sub(then[kind])
        }))
    }

    /// Counts from here on, forgets the threads that ended, and drops the events that wait in the ring. The programs go
    /// on undisturbed: what they have counted is subtracted from now on.
    ///
    /// # Errors
    /// When the kernel refuses to read or write a map.
    pub fn reset(&mut self) -> Result<(), Error> {
        self.drain(&mut |_| {})?;
        let mut threads = HashMap::new();
        self.forget_ended()?;
        self.folded.clear();
        self.for_each_thread(|slot, snapshot| {
            threads.insert(slot, snapshot);
            Ok(())
        })?;
        self.baseline = Baseline {
            globals: load::value(&self.globals, "globals", 0)?,
            programs: health::programs(&self.object)?,
            threads,
        };
        Ok(())
    }

    pub(crate) fn for_each_thread(
        &self,
        mut each: impl FnMut(u32, Snapshot) -> Result<(), Error>,
    ) -> Result<(), Error> {
        for slot in 0..self.threads_max {
            if let Some(snapshot) = threads::read(&self.threads, slot)? {
                each(slot, snapshot)?;
            }
        }
        Ok(())
    }
}

/// Libbpf calls us back for each event; we only copy it, and look at it in `drain`.
fn ring(
    object: &Object,
    received: Arc<Mutex<Vec<abi::unspin_event>>>,
) -> Result<RingBuffer<'static>, Error> {
    let events = load::map(object, "events")?;
    let mut builder = RingBufferBuilder::new();
    let built = builder
        .add(&events, move |bytes| {
            // A record holds one event or several; one of another size cannot come from our programs and would be skipped.
            let events = bytes.chunks_exact(size_of::<abi::unspin_event>());
            let events = events.flat_map(|event| bytes::read::<abi::unspin_event>("events", event));
            lock(&received).extend(events.filter(|event| event.kind != abi::UNSPIN_EVENT_NONE));
            0
        })
        .map(|_| ())
        .and_then(|()| builder.build());
    built.map_err(|source| Error::Bpf {
        step: "mapping the ring of events".to_owned(),
        source,
        log: KernelLog::default(),
    })
}

fn lock(events: &Mutex<Vec<abi::unspin_event>>) -> MutexGuard<'_, Vec<abi::unspin_event>> {
    // Nothing in here can panic half way: a poisoned list is still whole.
    events
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Runs and time of every BPF program of the host are counted until the result is dropped.
pub(crate) fn enable_run_statistics() -> Result<OwnedFd, Error> {
    // SAFETY: no pointers; returns a new fd or a negative error.
    let fd = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if fd < 0 {
        return Err(Error::Statistics(io::Error::from_raw_os_error(-fd)));
    }
    // SAFETY: a new fd that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Observer {
    /// The sums of all threads' counters since the last reset, by VM, those of slots given back included. `vcpu`, `thread`
    /// and `process` of a sum mean nothing.
    ///
    /// # Errors
    /// When the kernel refuses to read a map.
    pub fn vm_counters(&self) -> Result<BTreeMap<u32, VcpuCounters>, Error> {
        let mut sums = self.folded.clone();
        for counters in self.counters()? {
            fold(&mut sums, &counters);
        }
        Ok(sums)
    }

    /// Gives back the slots of threads that have ended; their counters are kept as sums by VM. [`Observer::drain`] does it
    /// when slots become short.
    ///
    /// # Errors
    /// When the kernel refuses to read or write a map.
    pub fn forget_ended(&mut self) -> Result<(), Error> {
        let mut ended = Vec::new();
        self.for_each_thread(|slot, snapshot| {
            if snapshot.ended {
                ended.push((slot, snapshot));
            }
            Ok(())
        })?;
        for (slot, snapshot) in ended {
            let counters = self.since_reset(slot, &snapshot);
            fold(&mut self.folded, &counters);
            self.baseline.threads.remove(&slot);
            self.return_slot(slot)?;
        }
        Ok(())
    }

    /// Threads that have a slot and have not ended.
    ///
    /// # Errors
    /// When the kernel refuses to read a map.
    pub fn threads_alive(&self) -> Result<u64, Error> {
        let globals: abi::unspin_observe_globals = load::value(&self.globals, "globals", 0)?;
        Ok(globals.slots_taken - globals.slots_ended)
    }

    fn return_slot(&mut self, slot: u32) -> Result<(), Error> {
        let empty = abi::unspin_observed_thread::default();
        load::set_value(&self.threads, slot, &empty)?;
        self.slots_returned += 1;
        load::return_slot(&self.free_slots, slot)
    }

    /// When more than half of the slots are taken and a quarter of all is of no use to anybody any more: so rarely that
    /// looking at all of them costs nothing.
    pub(crate) fn make_room(&mut self) -> Result<(), Error> {
        let globals: abi::unspin_observe_globals = load::value(&self.globals, "globals", 0)?;
        let taken = globals.slots_taken - self.slots_returned;
        let ended = globals.slots_ended - self.slots_returned;
        let slots = u64::from(self.threads_max);
        if taken * 2 > slots && ended > 0 && ended * 4 >= slots {
            self.forget_ended()?;
        }
        Ok(())
    }

    pub(crate) fn since_reset(&self, slot: u32, snapshot: &Snapshot) -> VcpuCounters {
        let then = self.baseline.threads.get(&slot);
        match then.filter(|then| then.first_seen_ns == snapshot.first_seen_ns) {
            Some(then) => snapshot.counters.since(&then.counters),
            None => snapshot.counters.clone(),
        }
    }
}

fn fold(sums: &mut BTreeMap<u32, VcpuCounters>, counters: &VcpuCounters) {
    let sum = sums.entry(counters.vm).or_insert_with(|| VcpuCounters {
        vm: counters.vm,
        ..VcpuCounters::default()
    });
    sum.add(counters);
}
