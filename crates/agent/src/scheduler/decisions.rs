// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring that decisions are written to.

use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{MapCore, Object, RingBuffer, RingBufferBuilder};
use unspin_policy::steering::DecisionRecord;

use crate::{
    Error,
    kernel::{bytes, load},
};

/// Decisions on their way from the kernel.
pub(super) struct DecisionLog {
    ring: RingBuffer<'static>,
    /// Records that the ring can hold.
    most: usize,
    received: Arc<Mutex<Vec<DecisionRecord>>>,
}

impl DecisionLog {
    pub(super) fn new(object: &Object) -> Result<DecisionLog, Error> {
        let map = load::map(object, "decisions")?;
        let received = Arc::new(Mutex::new(Vec::new()));
        let keep = Arc::clone(&received);
        let mut builder = RingBufferBuilder::new();
        let built = builder
            .add(&map, move |bytes| {
                // A record of another size cannot come from our programs.
                if let Ok(record) = bytes::read::<DecisionRecord>("decisions", bytes) {
                    let mut kept = keep.lock().unwrap_or_else(PoisonError::into_inner);
                    kept.push(record);
                }
                0
            })
            .map(|_| ())
            .and_then(|()| builder.build());
        let ring =
            built.map_err(|source| load::refused("mapping the ring of decisions", source))?;
        Ok(DecisionLog {
            ring,
            most: map.max_entries() as usize / (size_of::<DecisionRecord>() + 8),
            received,
        })
    }

    pub(super) fn drain(&self, each: &mut dyn FnMut(DecisionRecord)) -> Result<(), Error> {
        load::consume(&self.ring, self.most)
            .map_err(|source| load::refused("reading the ring of decisions", source))?;
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.drain(..).for_each(each);
        Ok(())
    }
}
