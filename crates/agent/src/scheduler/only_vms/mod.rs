// SPDX-License-Identifier: MIT OR Apache-2.0
//! Only VMs under our scheduler: threads are moved to it as BPF finds them (`bpf/scheduler/only_vms/threads.bpf.h`), and get their policy back
//! when this is dropped.

mod moves;
mod policy;

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use libbpf_rs::{Object, RingBuffer, RingBufferBuilder};
use unspin_abi as abi;

use crate::{
    Error,
    kernel::{
        bytes,
        load::{self, NicenessGuard},
    },
    monotonic_ns,
};
pub use moves::MovedVm;
use moves::Moves;

/// Room for some 2,000 threads between two looks; a thread that finds none is told of at its next entry to its guest.
pub(super) const RING_BYTES: u32 = 64 << 10;
/// How soon the end is noticed. Threads are moved as soon as the ring has them.
const PATIENCE: Duration = Duration::from_millis(50);

/// The thread that moves others, until it is dropped.
pub(super) struct OnlyVms {
    stop: Arc<AtomicBool>,
    mover: Option<JoinHandle<()>>,
    moves: Arc<Mutex<Moves>>,
    left_behind: usize,
}

impl OnlyVms {
    /// Begins to read the ring. First, threads that a killed `steer` has left get their policy back: no scheduler is attached yet.
    ///
    /// # Errors
    /// When the kernel refuses the ring, or a thread.
    pub(super) fn start(object: &Object) -> Result<OnlyVms, Error> {
        let moves = Arc::new(Mutex::new(Moves::default()));
        let ring = ring(object, Arc::clone(&moves))
            .map_err(|source| load::refused("mapping the ring of threads to move", source))?;
        let left_behind = policy::set_back_left_behind();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mover = thread::Builder::new()
            .name("unspin-mover".to_owned())
            .spawn(move || {
                // Beside busy tasks of its class it is not to wait for its turn.
                let _niceness = NicenessGuard::begin();
                while !stopped.load(Ordering::Relaxed) {
                    // A signal may end the wait.
                    if ring.poll(PATIENCE).is_err() {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
            })
            .map_err(|source| load::refused("starting a thread", source.into()))?;
        Ok(OnlyVms {
            stop,
            mover: Some(mover),
            moves,
            left_behind,
        })
    }

    /// What was moved since then, by VM process.
    pub(super) fn moved(&self) -> Vec<MovedVm> {
        lock(&self.moves).vms()
    }

    /// Threads that an earlier `steer` had left with `SCHED_EXT`, which were set back at the start.
    pub(super) fn left_behind(&self) -> usize {
        self.left_behind
    }
}

impl Drop for OnlyVms {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(mover) = self.mover.take() {
            // One that panicked has nothing more to move.
            let _ = mover.join();
        }
        lock(&self.moves).give_back();
    }
}

fn lock(moves: &Mutex<Moves>) -> MutexGuard<'_, Moves> {
    moves.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ring(
    object: &Object,
    moves: Arc<Mutex<Moves>>,
) -> Result<RingBuffer<'static>, libbpf_rs::Error> {
    let map = load::map(object, "moves")
        .map_err(|error| libbpf_rs::Error::from(std::io::Error::other(error)))?;
    let mut builder = RingBufferBuilder::new();
    builder.add(&map, move |bytes| {
        // A record of another size cannot come from our programs.
        if let Ok(record) = bytes::read::<abi::unspin_steer_thread>("moves", bytes) {
            lock(&moves).take(&record, monotonic_ns);
        }
        0
    })?;
    builder.build()
}
