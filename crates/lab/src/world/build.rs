// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds a world at time 0 from a scenario: tasks, groups of the host scheduler, their weights, and the pCPUs they may
//! use.

use std::{collections::VecDeque, sync::Arc};

use unspin_policy::{
    Apple, AppleRule, Ecs, Epoch, PauseHardware, SpinSamples, mechanics::weight_of_cgroup,
    steering::Memory as PolicyMemory,
};
use unspin_scenario::{Distribution, LabGroups, Length, LockSharing, Scenario, WorkUnit};

use super::{
    VmState, World,
    pcpu::{Pcpu, State, TaskState},
    vcpu::{Base, GuestTask, Pauses, Pending, PendingIpi, Steered, Then, Vcpu, VcpuStatistics},
};
use crate::{
    costs::Costs,
    engine::{NEVER_NS, SLOTS_MAX, WinnerTree},
    guest::{Memory, Port, load_at, raw},
    ids::{Cpu, Group, Task},
    random::Random,
    scheduler::{Allowed, Enqueue, HostScheduler, NICE_0_WEIGHT},
    trace_event::Observer,
    world::steering::{
        auto::Auto,
        lab_host::{LabHost, SpinCount},
    },
};

/// Why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// It needs more slots than the engine has.
    #[error(
        "{cpus} pCPUs and {vcpus} vCPUs are more than the {most} timers of the lab; make fewer VMs"
    )]
    TooLarge {
        /// Number of pCPUs.
        cpus: u32,
        /// Number of vCPUs of all VMs.
        vcpus: u32,
        /// Number of the engine's slots.
        most: u32,
    },
    /// A distribution with too much work.
    #[error(
        "VM {vm}: {name} takes up to {loops} loops of work, more than {}",
        u32::MAX
    )]
    WorkTooLong {
        /// Number of the VM.
        vm: u32,
        /// Key of the scenario.
        name: &'static str,
        /// The work.
        loops: u64,
    },
    /// No memory for the tasks' stacks.
    #[error("no memory for the stack of another vCPU: {0}")]
    Stack(#[from] std::io::Error),
}

impl<O: Observer> World<O> {
    /// That scenario on that host at time 0.
    ///
    /// # Errors
    /// A scenario that is too large.
    pub fn new(
        scenario: &Scenario,
        host: LabHost,
        costs: Costs,
        scheduler: Box<dyn HostScheduler>,
        observer: O,
    ) -> Result<World<O>, BuildError> {
        let cpus = host.topology.cpus();
        let vcpus: u32 = scenario.vms.iter().map(|vm| vm.count * vm.vcpus).sum();
        let noise = u32::from(host.noise.is_some());
        if cpus + vcpus + noise > SLOTS_MAX {
            let most = SLOTS_MAX;
            return Err(BuildError::TooLarge { cpus, vcpus, most });
        }
        let mut world = World {
            now_ns: 0,
            tree: WinnerTree::new(cpus + vcpus + noise),
            topology: host.topology,
            costs,
            scheduler,
            cpus: Vec::new(),
            tasks: Vec::new(),
            vcpus: Vec::new(),
            vms: Vec::new(),
            observer,
            trace_events: 0,
            unfinished: vcpus,
            auto: None,
            host,
            noise: None,
            interrupt: Arc::default(),
            seed: scenario.seed,
        };
        world.cpus = world.pcpus();
        for (group, vm) in scenario.vms.iter().enumerate() {
            for _ in 0..vm.count {
                world.add_vm(scenario, group, vm)?;
            }
        }
        for _ in 0..world.host.cpu_hogs {
            let task = world
                .scheduler
                .add_task(Group(0), NICE_0_WEIGHT, Allowed::All, None);
            world.tasks.push(TaskState::new(None));
            debug_assert_eq!(task.index() + 1, world.tasks.len());
        }
        world.add_noise();
        for vm in 0..world.vms.len() {
            world.set_policies(vm, world.host.steering.policies);
        }
        if world.host.steering.auto {
            world.auto = Some(Box::new(Auto::new(
                scenario,
                world.vms.len(),
                world.vcpus.len(),
            )));
        }
        world.start();
        Ok(world)
    }

    /// The host's pCPUs. Skewed ticks are spread over half a period: tick_setup_sched_timer(), kernel/time/tick-sched.c.
    fn pcpus(&self) -> Vec<Pcpu> {
        let cpus = self.topology.cpus();
        let step_ns = match self.host.skew_tick {
            true => self.scheduler.tick_period_ns() / 2 / u64::from(cpus),
            false => 0,
        };
        let pcpu = |cpu| Pcpu::new(u64::from(cpu) * step_ns);
        (0..cpus).map(pcpu).collect()
    }

    /// Builds a VM of the `[[vm]]` of that number.
    fn add_vm(
        &mut self,
        scenario: &Scenario,
        group: usize,
        vm: &unspin_scenario::Vm,
    ) -> Result<(), BuildError> {
        let place = Placement::new(scenario, group);
        let number = self.vms.len() as u32;
        let table = |name, distribution| quantiles(number, name, distribution, &self.costs);
        let distributions = Box::new([
            table("user_work", &vm.user_work)?,
            table("kernel_work", &vm.kernel_work)?,
            table("hold", &vm.hold)?,
        ]);
        let shared = match vm.locks {
            LockSharing::Shared(locks) => locks,
            LockSharing::Private => 0,
        };
        let changes_every_ns = u64::from(vm.load_changes_every_ms) * 1_000_000;
        // A load that changes has locks of vCPUs' own, too.
        let own = if shared == 0 || changes_every_ns > 0 {
            vm.vcpus
        } else {
            0
        };
        let locks = shared.max(own);
        let cpus = self.topology.cpus();
        let memory = Memory::new(
            (vm.lock.number(), self.host.tau_spins),
            locks,
            vm.vcpus,
            cpus,
        );
        let seed = scenario.vm_seed(number);
        let iterations = match scenario.length {
            Length::Iterations(iterations) => iterations,
            Length::DurationNs(_) => 0,
        };
        let first = self.vcpus.len() as u32;
        let groups = place.groups(&mut *self.scheduler, vm.vcpus);
        for vcpu in 0..vm.vcpus {
            let mut ports = VecDeque::new();
            for guest_task in 0..self.host.guest_tasks.max(1) {
                let [user_work, kernel_work, hold] = &*distributions;
                let task = raw::unspin_lab_task {
                    // SAFETY: two integers.
                    random: unsafe {
                        raw::unspin_lab_random_start(seed, vcpu + guest_task * vm.vcpus)
                    },
                    user_work,
                    kernel_work,
                    hold,
                    memory: memory.begin(),
                    number: vcpu,
                    task: vcpu + guest_task * vm.vcpus,
                    vcpus: vm.vcpus,
                    lock_kind: vm.lock.number(),
                    locks: shared,
                    memory_locks: locks,
                    shootdown_every_iterations: vm.shootdown_every_iterations,
                    wakeup_every_iterations: vm.wakeup_every_iterations,
                    iterations,
                    load: load_at(changes_every_ns, self.now_ns),
                    asked: 0,
                    released: 0,
                };
                // SAFETY: the distributions and the memory are in the VM's state, which is dropped after its vCPUs
                // (`vcpus` is declared before `vms` in World), and neither moves.
                ports.push_back(unsafe { Port::new(task)? });
            }
            let group = groups[vcpu as usize];
            self.add_vcpu(ports, number, vcpu, (group, &place));
        }
        self.vms.push(VmState {
            first_lock: self
                .vms
                .last()
                .map_or(0, |last| last.first_lock + last.locks),
            locks,
            memory,
            first,
            vcpus: vm.vcpus,
            load_changes_every_ns: changes_every_ns,
            pause_every_spins: vm.pause_every_spins,
            pause_exits: vm.pause_exits,
            pv_page: vm.pv_page,
            help_after_spins: vm.help_after_spins,
            tick_period_ns: 1_000_000_000u64
                .checked_div(vm.tick_hz.into())
                .unwrap_or(NEVER_NS),
            last_boosted: 0,
            apple: Apple::new(match self.host.spin_count {
                SpinCount::Apple(rule) => rule,
                _ => AppleRule::new(self.host.vendor),
            }),
            epoch: Epoch::default(),
            epochs: 0,
            policies: self.host.steering.policies,
            spun_ns: None,
            epoch_begin: (0, 0),
            _distributions: distributions,
        });
        Ok(())
    }

    fn add_vcpu(
        &mut self,
        mut ports: VecDeque<Port>,
        vm: u32,
        number: u32,
        (group, place): (Group, &Placement),
    ) {
        let task = self
            .scheduler
            .add_task(group, NICE_0_WEIGHT, place.allowed.clone(), Some(vm));
        debug_assert_eq!(task.index(), self.tasks.len());
        self.tasks
            .push(TaskState::new(Some(self.vcpus.len() as u32)));
        let Some(port) = ports.pop_front() else {
            return; // there is at least one
        };
        let waiting = ports.into_iter().map(|port| GuestTask {
            port,
            base: Base::Answer(0),
            user: false,
            debt_ns: 0,
        });
        // Numbers below this bit are initial states of guest tasks' generators.
        let stream = 1 << 31 | self.vcpus.len() as u32;
        // SAFETY: two integers.
        let random = Random::new(unsafe { raw::unspin_lab_random_start(self.seed, stream) });
        let vcpu = Vcpu {
            port,
            random,
            others: waiting.collect(),
            page_ns: NEVER_NS,
            sleeps_until_ns: NEVER_NS,
            vm,
            number,
            task,
            inside: false,
            host_left_ns: self.costs.entry_ns.into(),
            then: Then::Enter,
            handler: None,
            base: Base::Answer(0),
            debt_ns: 0,
            user: false,
            pending: Pending::default(),
            senders: 0,
            tokens: 0,
            kicked: false,
            pauses: Pauses::new(PauseHardware::new(
                self.host.vendor,
                self.host.gap_cycles,
                self.host.window.at_start(),
            )),
            pending_ipi: PendingIpi::default(),
            samples: SpinSamples::default(),
            waited: false,
            timer_ns: NEVER_NS,
            asks: None,
            holds: None,
            critical: 0,
            borrowed: false,
            steered: Steered::default(),
            memory: PolicyMemory::default(),
            ecs: self.host.ecs.map(Ecs::new),
            halt_poll_ns: 0,
            halted_since_ns: None,
            notified_spin_count: 0,
            ends_wait: false,
            statistics: VcpuStatistics::default(),
        };
        self.vcpus.push(vcpu);
    }

    /// All tasks wake at time 0, in order, unless noise delays them; the guests' timers start at different times, as on real
    /// machines.
    fn start(&mut self) {
        self.plan_starts();
        for task in 0..self.tasks.len() {
            if !self.starts_at_once(task) {
                continue;
            }
            let task = Task(task as u32);
            let cpu = self.scheduler.select_cpu(0, task, None);
            self.tasks[task.index()].becomes(State::Runnable, 0);
            self.scheduler.enqueue(0, task, cpu, Enqueue::New);
        }
        for cpu in 0..self.cpus.len() {
            self.kick(Cpu(cpu as u32), 0);
        }
        let count = self.vcpus.len() as u64;
        for vcpu in 0..self.vcpus.len() {
            let period_ns = self.vms[self.vcpus[vcpu].vm as usize].tick_period_ns;
            if period_ns != NEVER_NS {
                let first_ns = period_ns + period_ns * vcpu as u64 / count;
                self.vcpus[vcpu].timer_ns = first_ns;
                self.set_timer(vcpu);
            }
        }
    }
}

/// A distribution in the form that the guest's code reads.
fn quantiles(
    vm: u32,
    name: &'static str,
    distribution: &Distribution,
    costs: &Costs,
) -> Result<raw::unspin_distribution, BuildError> {
    let mut table = raw::unspin_distribution {
        quantile_loops: [0; raw::UNSPIN_QUANTILES as usize],
    };
    for (into, value) in table
        .quantile_loops
        .iter_mut()
        .zip(distribution.quantile_table())
    {
        let loops = match distribution.unit {
            WorkUnit::Loops => u128::from(value),
            WorkUnit::Nanoseconds => {
                u128::from(value) * 1_000 / u128::from(costs.work_loop_ps.max(1))
            }
        };
        *into = u32::try_from(loops).map_err(|_| BuildError::WorkTooLong {
            vm,
            name,
            loops: loops.try_into().unwrap_or(u64::MAX),
        })?;
    }
    Ok(table)
}

/// The settings of the VMs of one `[[vm]]`.
pub(super) struct Placement {
    weight: u32,
    each_vcpu: bool,
    pub allowed: Allowed,
}

impl Placement {
    /// For the `[[vm]]` of that number.
    pub fn new(scenario: &Scenario, number: usize) -> Placement {
        let lab = scenario.lab.as_ref();
        let weight = lab.and_then(|lab| lab.weights.get(number));
        let pins = lab.and_then(|lab| lab.pins.get(number));
        Placement {
            weight: weight.map_or(NICE_0_WEIGHT, |weight| weight_of_cgroup(*weight)),
            each_vcpu: lab.is_some_and(|lab| lab.groups == LabGroups::Vcpu),
            allowed: pins.map_or(Allowed::All, |cpus| {
                Allowed::Only(cpus.iter().copied().map(Cpu).collect())
            }),
        }
    }

    /// Creates the groups of a VM's vCPUs; returns the group of each.
    pub fn groups(&self, scheduler: &mut dyn HostScheduler, vcpus: u32) -> Vec<Group> {
        let of_vm = scheduler.add_group(Group(0), self.weight);
        let of_vcpu = |_| match self.each_vcpu {
            true => scheduler.add_group(of_vm, NICE_0_WEIGHT),
            false => of_vm,
        };
        (0..vcpus).map(of_vcpu).collect()
    }
}
