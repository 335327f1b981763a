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

use kvm_ioctls::VcpuFd;
use unspin_scenario::Scenario;

use crate::{
    Error,
    calibrate::WorkRate,
    error::state_name,
    host::Host,
    kick,
    parameters::Surroundings,
    run::Fault,
    thread::{End, Message, Place, Shared, VcpuThread},
    vm::{Identity, Machine},
};

/// How often a waiting main thread looks at the interrupt flag.
const INTERRUPT_POLL: Duration = Duration::from_millis(50);

/// One vCPU of the fleet.
pub struct Member {
    /// Of the thread, once it is at the gate.
    pub thread_id: u32,
    /// Once it has ended.
    pub end: Option<End>,
    thread: Option<VcpuThread>,
}

impl Member {
    /// CPU time of the thread so far, or in all when it has ended.
    pub fn cpu_time_ns(&self) -> u64 {
        let ended = self.end.as_ref().map(|end| end.cpu_time_ns);
        let running = || self.thread.as_ref().and_then(VcpuThread::cpu_time_ns);
        ended.or_else(running).unwrap_or(0)
    }
}

/// One VM of the fleet with its vCPUs' threads.
pub struct Ship {
    /// The VM.
    pub machine: Machine,
    /// By vCPU number.
    pub members: Vec<Member>,
}

/// All of them.
pub struct Fleet {
    /// By VM number. Before `shared` and the rest: dropped first, but only after `Drop` has joined every thread.
    pub ships: Vec<Ship>,
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
        kick::install().map_err(|source| Error::Create {
            vm: "vm0".into(),
            step: "installing a signal handler",
            source,
        })?;
        let (sender, messages) = channel();
        Ok(Fleet {
            ships: Vec::new(),
            shared: Arc::default(),
            messages,
            sender,
            interrupt,
        })
    }

    /// Creates every VM of the scenario, with its threads at the gate.
    pub fn create(
        &mut self,
        host: &Host,
        scenario: &Scenario,
        work_rate: Option<WorkRate>,
        fault: Fault,
    ) -> Result<(), Error> {
        let surroundings = Surroundings {
            apic_timer_hz: host.apic_timer_hz,
            work_rate,
            fault,
        };
        let groups = scenario.vms.iter().enumerate();
        let all = groups.flat_map(|(group, vm)| (0..vm.count).map(move |_| (group, vm)));
        for (number, (group, vm)) in all.enumerate() {
            self.check_interrupt()?;
            let identity = Identity {
                vm,
                group,
                number: number as u32,
            };
            let (machine, vcpus) = Machine::create(host, scenario, identity, surroundings)?;
            self.ships.push(Ship {
                machine,
                members: Vec::new(),
            });
            for vcpu in vcpus {
                self.add_member(vcpu, scenario.host.cpus)?;
            }
        }
        self.wait_at_gate()
    }

    /// Gives the newest VM's next vCPU its thread.
    fn add_member(&mut self, vcpu: VcpuFd, cpus: Option<u32>) -> Result<(), Error> {
        let vm = self.ships.len() - 1;
        let ship = &mut self.ships[vm];
        let place = Place {
            vm,
            vcpu: ship.members.len() as u32,
        };
        let name = format!("{}/vcpu{}", ship.machine.name, place.vcpu);
        let (shared, sender) = (self.shared.clone(), self.sender.clone());
        let thread = VcpuThread::spawn(vcpu, name, place, cpus, shared, sender);
        ship.members.push(Member {
            thread_id: 0,
            end: None,
            thread: Some(thread.map_err(|source| Error::Create {
                vm: ship.machine.name.clone(),
                step: "starting a thread",
                source,
            })?),
        });
        Ok(())
    }

    /// Waits until every thread is at the gate.
    fn wait_at_gate(&mut self) -> Result<(), Error> {
        while self.members().any(|member| member.thread_id == 0) {
            self.receive(INTERRUPT_POLL)?;
        }
        Ok(())
    }

    /// Lets all vCPUs of all VMs into their guests at once.
    pub fn release(&self) {
        self.shared.open();
    }

    /// Every vCPU of every VM.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.ships.iter().flat_map(|ship| &ship.members)
    }

    /// Whether every vCPU has ended.
    pub fn all_ended(&self) -> bool {
        self.members().all(|member| member.end.is_some())
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
                self.member(place).thread_id = thread_id;
                confined.map_err(|source| self.create_error(place, source))
            }
            Message::Ended { place, end } => {
                let failure = end.failure.clone();
                self.member(place).end = Some(end);
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
        let left_at = |member: &Member| member.end.as_ref().and_then(|end| end.left_at);
        let (place, rip) = self
            .places()
            .find_map(|place| Some((place, left_at(self.member_at(place))?)))
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
        let ships = self.ships.iter().enumerate();
        ships.flat_map(|(vm, ship)| {
            (0..ship.members.len() as u32).map(move |vcpu| Place { vm, vcpu })
        })
    }

    /// The VM's name.
    pub fn name(&self, place: Place) -> String {
        self.ships[place.vm].machine.name.clone()
    }

    fn state(&self, place: Place) -> &'static str {
        state_name(
            self.ships[place.vm]
                .machine
                .memory
                .statistics(place.vcpu)
                .state,
        )
    }

    fn member(&mut self, place: Place) -> &mut Member {
        &mut self.ships[place.vm].members[place.vcpu as usize]
    }

    fn member_at(&self, place: Place) -> &Member {
        &self.ships[place.vm].members[place.vcpu as usize]
    }

    /// Takes every vCPU out of its guest and joins every thread; again is nothing.
    pub fn take_down(&mut self) {
        self.shared.leave();
        let members = || self.ships.iter().flat_map(|ship| &ship.members);
        members()
            .filter_map(|member| member.thread.as_ref())
            .for_each(VcpuThread::kick);
        let members = self.ships.iter_mut().flat_map(|ship| &mut ship.members);
        members
            .filter_map(|member| member.thread.take())
            .for_each(VcpuThread::join);
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.take_down();
    }
}
