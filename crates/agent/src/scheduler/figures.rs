// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the scheduler's maps say, as values: its counters with their names, what guests did, why it ended; and the ring that
//! decisions are written to.

use std::{
    ffi::{CStr, c_char},
    sync::{Arc, Mutex, PoisonError},
};

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object, RingBuffer, RingBufferBuilder};
use unspin_abi as abi;
use unspin_policy::{GuestAudit, steering::DecisionRecord};

use super::SteerError;
use crate::{
    Error,
    kernel::{bytes, load},
};

/// The counters, summed over all CPUs.
pub(super) fn read_counters(
    counters: &MapHandle,
) -> Result<abi::unspin_steer_counters, SteerError> {
    let per_cpu = counters
        .lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|source| load::refused("reading the BPF map counters", source))?;
    let mut sums = abi::unspin_steer_counters::default();
    for raw in per_cpu.unwrap_or_default() {
        let one: abi::unspin_steer_counters = bytes::read("counters", &raw)?;
        for (sum, value) in sums.of.iter_mut().zip(one.of) {
            *sum += value;
        }
    }
    Ok(sums)
}

/// What each VM's guest did, by process.
pub(super) fn read_audit(map: &MapHandle) -> Result<Vec<(u32, GuestAudit)>, SteerError> {
    let mut all = Vec::new();
    for key in map.keys() {
        let value = map
            .lookup(&key, MapFlags::ANY)
            .map_err(|source| load::refused("reading the BPF map guest_audit", source))?;
        // Another VM has taken its room in between.
        let (Some(value), Ok(process)) = (value, <[u8; 4]>::try_from(key)) else {
            continue;
        };
        let guest_audit: GuestAudit = bytes::read("guest_audit", &value)?;
        all.push((u32::from_ne_bytes(process), guest_audit));
    }
    all.sort_by_key(|(process, _)| *process);
    Ok(all)
}

/// Name and meaning of each counter, in order.
pub(super) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let text = |at: *const c_char| {
        // SAFETY: abi/names.c: constant C strings of ASCII.
        unsafe { CStr::from_ptr(at) }.to_str().unwrap_or("?")
    };
    (0..abi::UNSPIN_STEER_COUNTER_COUNT as usize).map(move |index| {
        // SAFETY: two arrays of just that many constant strings.
        unsafe {
            (
                text(abi::unspin_steer_counter_names[index]),
                text(abi::unspin_steer_counter_meanings[index]),
            )
        }
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_names_and_meanings() {
        let names: Vec<(&str, &str)> = names().collect();
        assert_eq!(names.len(), abi::UNSPIN_STEER_COUNTER_COUNT as usize);
        assert_eq!(names[0].0, "dispatches");
        assert!(
            names
                .iter()
                .all(|(name, says)| !name.is_empty() && says.len() > 10)
        );
    }
}
