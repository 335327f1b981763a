// SPDX-License-Identifier: MIT OR Apache-2.0
//! All VMs of a run and the threads of their vCPUs. Dropping it takes every vCPU out of its guest, joins every thread
//! and then takes the VMs down, whatever happened.
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

use unspin_scenario::Scenario;

use crate::{
    Error,
    error::state_name,
    host::Host,
    machine::parameters::Surroundings,
    run::{
        construct::{Construction, FleetVcpu, FleetVm},
        thread::{Message, Place, Shared, VcpuThread, install_kick_handler},
    },
};

/// How often a waiting main thread looks at the interrupt flag.
const INTERRUPT_POLL: Duration = Duration::from_millis(50);

/// All of them.
pub struct Fleet {
    /// By VM number. Dropped only after `Drop` has joined every thread.
    pub vms: Vec<FleetVm>,
    shared: Arc<Shared>,
    messages: Receiver<Message>,
    sender: Sender<Message>,
    interrupt: Arc<AtomicBool>,
}

impl Fleet {
    /// Nothing yet.
    ///
    /// # Errors
    /// `Create`, when the signal that kicks vCPUs cannot be handled.
    pub fn new(interrupt: Arc<AtomicBool>) -> Result<Fleet, Error> {
        install_kick_handler().map_err(|source| Error::Create {
            vm: "vm0".into(),
            step: "installing a signal handler",
            source,
        })?;
        let (sender, messages) = channel();
        Ok(Fleet {
            vms: Vec::new(),
            shared: Arc::default(),
            messages,
            sender,
            interrupt,
        })
    }

    /// Creates every VM of the scenario, with its threads at the gate.
    ///
    /// # Errors
    /// Those of [`Construction::build`]; `Interrupted`.
    pub fn create(
        &mut self,
        host: &Host,
        scenario: &Scenario,
        surroundings: Surroundings,
    ) -> Result<(), Error> {
        let construction = Construction {
            host,
            scenario,
            surroundings,
            shared: &self.shared,
            messages: &self.sender,
            interrupt: &self.interrupt,
        };
        let (vms, error) = construction.build();
        // Also what was built before an error: its threads are joined when the fleet is dropped.
        self.vms = vms;
        error.map_or(Ok(()), Err)?;
        self.wait_at_gate()
    }

    /// Waits until every thread is at the gate.
    fn wait_at_gate(&mut self) -> Result<(), Error> {
        while self.vcpus().any(|vcpu| vcpu.thread_id == 0) {
            self.receive(INTERRUPT_POLL)?;
        }
        Ok(())
    }

    /// Lets all vCPUs of all VMs into their guests at once.
    pub fn release(&self) {
        self.shared.open();
    }

    fn vcpus(&self) -> impl Iterator<Item = &FleetVcpu> {
        self.vms.iter().flat_map(|vm| &vm.vcpus)
    }

    fn all_ended(&self) -> bool {
        self.vcpus().all(|vcpu| vcpu.end.is_some())
    }

    /// Waits until `time`, or until every vCPU has ended, and says which: true for ended.
    ///
    /// # Errors
    /// `Guest` as soon as a vCPU has failed; `Interrupted`.
    pub fn wait_until(&mut self, time: Instant) -> Result<bool, Error> {
        loop {
            if self.all_ended() {
                return Ok(true);
            }
            let left = time.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.receive(left.min(INTERRUPT_POLL))?;
        }
    }

    /// Takes one message, if one comes in time.
    fn receive(&mut self, timeout: Duration) -> Result<(), Error> {
        self.check_interrupt()?;
        match self.messages.recv_timeout(timeout) {
            Ok(message) => self.take(message),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => unreachable!("`self.sender` is one sender"),
        }
    }

    fn take(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Ready {
                place,
                thread_id,
                confined,
            } => {
                self.vcpu_mut(place).thread_id = thread_id;
                confined.map_err(|source| self.create_error(place, source))
            }
            Message::Ended { place, end } => {
                let failure = end.failure.clone();
                self.vcpu_mut(place).end = Some(end);
                failure.map_or(Ok(()), |failure| {
                    Err(Error::Guest {
                        vm: self.name(place),
                        vcpu: place.vcpu,
                        failure,
                        state: self.state(place),
                    })
                })
            }
        }
    }

    fn create_error(&self, place: Place, source: io::Error) -> Error {
        Error::Create {
            vm: self.name(place),
            step: "confining a thread to host.cpus",
            source,
        }
    }

    fn check_interrupt(&self) -> Result<(), Error> {
        match self.interrupt.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(()),
        }
    }

    /// The error for guests that do not stop: takes all of them out and names the first that had to be.
    pub fn not_stopped(&mut self, waited: Duration) -> Error {
        self.take_down();
        while let Ok(message) = self.messages.try_recv() {
            if let Err(error) = self.take(message) {
                return error;
            }
        }
        let left_at = |place| self.vcpu(place).end.as_ref().and_then(|end| end.left_at);
        let (place, rip) = self
            .places()
            .find_map(|place| Some((place, left_at(place)?)))
            .unwrap_or((Place { vm: 0, vcpu: 0 }, 0));
        Error::NotStopped {
            vm: self.name(place),
            vcpu: place.vcpu,
            waited_ms: waited.as_millis() as u64,
            state: self.state(place),
            rip,
        }
    }

    /// Every vCPU's place, in order.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let vms = self.vms.iter().enumerate();
        vms.flat_map(|(vm, of)| (0..of.vcpus.len() as u32).map(move |vcpu| Place { vm, vcpu }))
    }

    /// The name of that vCPU's VM.
    pub fn name(&self, place: Place) -> String {
        self.vms[place.vm].machine.name.clone()
    }

    fn state(&self, place: Place) -> &'static str {
        let memory = &self.vms[place.vm].machine.memory;
        state_name(memory.statistics(place.vcpu).state)
    }

    fn vcpu(&self, place: Place) -> &FleetVcpu {
        &self.vms[place.vm].vcpus[place.vcpu as usize]
    }

    fn vcpu_mut(&mut self, place: Place) -> &mut FleetVcpu {
        &mut self.vms[place.vm].vcpus[place.vcpu as usize]
    }

    /// Takes every vCPU out of its guest and joins every thread; again is nothing.
    pub fn take_down(&mut self) {
        self.shared.leave();
        let threads = self.vcpus().filter_map(|vcpu| vcpu.thread.as_ref());
        threads.for_each(VcpuThread::kick);
        let vcpus = self.vms.iter_mut().flat_map(|vm| &mut vm.vcpus);
        let threads = vcpus.filter_map(|vcpu| vcpu.thread.take());
        threads.for_each(VcpuThread::join);
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.take_down();
    }
}
