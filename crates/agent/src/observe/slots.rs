// SPDX-License-Identifier: MIT OR Apache-2.0
//! Slots of threads that ended: VMs come and go, and the memory for them stays what it was.
//!
//! There are `threads_max` slots. A thread keeps its own until it ends, its counters stand there until somebody gives the
//! slot back, and then in a sum of its VM. Only when more threads live at a time than there are slots, or more come and go
//! between two drains than are left, is anything missed: `Health::unobserved_exits` counts their exits.

use std::collections::BTreeMap;

use unspin_abi as abi;
use unspin_events::VcpuCounters;

use crate::{Error, Observer, kernel::load, observe::threads::Snapshot};

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
