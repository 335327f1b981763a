// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds all VMs of a run, several at a time: most of the time goes into waiting for the kernel's grace periods
//! (SRCU, when a memory slot appears), which overlap.
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
    mpsc::Sender,
};

use kvm_ioctls::VcpuFd;
use unspin_scenario::Scenario;

use crate::{
    Error,
    host::Host,
    machine::{
        parameters::Surroundings,
        vm::{Identity, Machine},
    },
    run::thread::{End, Message, Place, Shared, VcpuThread},
};

/// VMs under construction at a time.
const BUILDERS: usize = 8;

/// One vCPU of a run.
pub struct FleetVcpu {
    /// Of the thread, once it is at the gate.
    pub thread_id: u32,
    /// Once it has ended.
    pub end: Option<End>,
    /// Until it is joined.
    pub thread: Option<VcpuThread>,
}

impl FleetVcpu {
    /// CPU time of the thread so far, or in all when it has ended.
    pub fn cpu_time_ns(&self) -> u64 {
        let ended = self.end.as_ref().map(|end| end.cpu_time_ns);
        let running = || self.thread.as_ref().and_then(VcpuThread::cpu_time_ns);
        ended.or_else(running).unwrap_or(0)
    }
}

/// One VM of a run with its vCPUs' threads.
pub struct FleetVm {
    /// The VM.
    pub machine: Machine,
    /// By vCPU number.
    pub vcpus: Vec<FleetVcpu>,
}

/// What it takes to build a run's VMs.
pub struct Construction<'a> {
    /// The host they run on.
    pub host: &'a Host,
    /// What they are.
    pub scenario: &'a Scenario,
    /// What the scenario does not say.
    pub surroundings: Surroundings,
    /// Where vCPU threads wait.
    pub shared: &'a Arc<Shared>,
    /// Where they report.
    pub messages: &'a Sender<Message>,
    /// Ends the construction when set.
    pub interrupt: &'a AtomicBool,
}

/// What the builders share: the next VM to build, and what became of those built.
struct Site<'a> {
    plans: Vec<Identity<'a>>,
    next: AtomicUsize,
    built: Mutex<Vec<FleetVm>>,
    errors: Mutex<Vec<(u32, Error)>>,
}

impl Construction<'_> {
    /// Builds every VM of the scenario: in order of numbers, and the error of the first that failed. With an error
    /// what was built is returned too, its threads at the gate.
    pub fn build(&self) -> (Vec<FleetVm>, Option<Error>) {
        let site = Site {
            plans: self.plans(),
            next: AtomicUsize::new(0),
            built: Mutex::default(),
            errors: Mutex::default(),
        };
        std::thread::scope(|scope| {
            for _ in 1..BUILDERS.min(site.plans.len()) {
                // A builder less is no failure: the calling thread builds as well.
                let _ = std::thread::Builder::new().spawn_scoped(scope, || self.builder(&site));
            }
            self.builder(&site);
        });
        let mut built = site
            .built
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        built.sort_by_key(|vm| vm.machine.number);
        let errors = site
            .errors
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let first = errors.into_iter().min_by_key(|(number, _)| *number);
        (built, first.map(|(_, error)| error))
    }

    /// Every VM of the scenario, groups unrolled.
    fn plans(&self) -> Vec<Identity<'_>> {
        let groups = self.scenario.vms.iter().enumerate();
        let copies = groups.flat_map(|(group, vm)| (0..vm.count).map(move |_| (group, vm)));
        (0..)
            .zip(copies)
            .map(|(number, (group, vm))| Identity { vm, group, number })
            .collect()
    }

    /// Builds the next VM until there is none, or one has failed.
    fn builder(&self, site: &Site) {
        while let Some(plan) = site.plans.get(site.next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = self.build_vm(*plan, &site.built) {
                let mut errors = site.errors.lock().unwrap_or_else(PoisonError::into_inner);
                errors.push((plan.number, error));
                site.next.store(site.plans.len(), Ordering::Relaxed);
            }
        }
    }

    fn build_vm(&self, plan: Identity, built: &Mutex<Vec<FleetVm>>) -> Result<(), Error> {
        if self.interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let (machine, vcpus) = Machine::create(self.host, self.scenario, plan, self.surroundings)?;
        let mut vm = FleetVm {
            machine,
            vcpus: Vec::new(),
        };
        let started = vcpus
            .into_iter()
            .try_for_each(|vcpu| self.start(&mut vm, vcpu));
        built
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(vm);
        started
    }

    /// Gives a VM's next vCPU its thread.
    fn start(&self, vm: &mut FleetVm, vcpu: VcpuFd) -> Result<(), Error> {
        let place = Place {
            vm: vm.machine.number as usize,
            vcpu: vm.vcpus.len() as u32,
        };
        let thread = VcpuThread::spawn(
            vcpu,
            format!("{}/vcpu{}", vm.machine.name, place.vcpu),
            place,
            self.scenario.host.cpus,
            self.shared.clone(),
            self.messages.clone(),
        );
        let thread = thread.map_err(|source| Error::Create {
            vm: vm.machine.name.clone(),
            step: "starting a thread",
            source,
        })?;
        vm.vcpus.push(FleetVcpu {
            thread_id: 0,
            end: None,
            thread: Some(thread),
        });
        Ok(())
    }
}
