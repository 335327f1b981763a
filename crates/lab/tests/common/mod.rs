// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random scenarios, and an observer that checks what must hold in all of them.
#![allow(dead_code, reason = "each test file uses its part")]

pub mod arranged;
pub mod scripted;

use std::hash::{DefaultHasher, Hash};

use arranged::{Arranged, Charged};

use unspin_lab::{
    LabHost, Paravirtual, RunError, SteeringModel, World,
    costs::Costs,
    host_noise::NoiseModel,
    ids::{Cpu, Task},
    scheduler::{Allowed, HostScheduler, RoundRobin, from_name, names::known_names},
    topology::Topology,
    trace_event::{Observer, TraceEvent},
};
use unspin_policy::{CandidateRule, Control, Vendor, WindowRule, steering::Policies};
use unspin_scenario::{
    Distribution, HostNoise, NoiseRates, NoiseSource, Scenario, Shape, WorkUnit,
};

/// Number of seeds: `UNSPIN_LAB_SEEDS`, or this few. (long_worlds.rs has 10,000.)
pub fn seeds(few: u64) -> u64 {
    let asked = std::env::var("UNSPIN_LAB_SEEDS").ok();
    asked.map_or(few, |text| {
        text.parse().expect("UNSPIN_LAB_SEEDS is a number")
    })
}

/// splitmix64 (locks/parts/work.h), for choices.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, count: u64) -> u64 {
        self.next() % count
    }

    pub fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// A small scenario that ends after that many iterations, from a seed.
pub fn random_scenario(seed: u64, random: &mut Random) -> Scenario {
    let mut text = format!("seed = {seed}\niterations = {}\n", 1 + random.below(12));
    for _ in 0..1 + random.below(3) {
        let lock = random.one_of(&[
            "ticket",
            "test_and_set",
            "test_and_test_and_set",
            "preemptable_ticket",
        ]);
        let locks = random.one_of(&["locks = 1", "locks = 3", "locks = \"private\""]);
        let held_long = random.one_of(&[
            "\"300ns\"",
            "{ exponential = \"2us\" }",
            "{ uniform = [\"10ns\", \"300us\"] }",
        ]);
        // Each read of a test-and-set waiter is an event of its own: these locks are held for a short time.
        let hold = match lock {
            "test_and_set" => "\"300ns\"",
            _ => held_long,
        };
        let user = random.one_of(&["\"0ns\"", "\"5us\"", "{ exponential = \"100us\" }"]);
        text += &format!(
            "[[vm]]\ncount = {}\nvcpus = {}\nlock = \"{lock}\"\n{locks}\nhold = {hold}\nuser_work = {user}\n\
             kernel_work = \"1us\"\nshootdown_every_iterations = {}\nwakeup_every_iterations = {}\ntick_hz = {}\n\
             pause_every_spins = {}\npause_exits = {}\npv_page = {}\nhelp_after_spins = {}\n",
            1 + random.below(2),
            2 + random.below(5),
            random.below(4),
            random.below(4),
            [0, 100, 1_000][random.below(3) as usize],
            1 + random.below(50),
            random.below(8) != 0,
            random.below(2) == 0,
            [0, 0, 300, 2_048][random.below(4) as usize],
        );
    }
    Scenario::parse(&text, "random.toml").expect("it is in range")
}

/// A small host, from the same choices.
pub fn random_host(random: &mut Random) -> LabHost {
    let topology = match random.below(4) {
        0 => Topology::flat(1),
        1 => Topology::flat(1 + random.below(8) as u32),
        2 => Topology::new(2, 1, 2, 1),
        _ => Topology::new(1, 2, 1, 2),
    };
    let vendor = [Vendor::Amd, Vendor::Intel][random.below(2) as usize];
    // With 10 PAUSEs or 4,096 cycles, three spinners can make a fourth pCPU switch so often that no vCPU there ever
    // enters its guest.
    let bases = match vendor {
        Vendor::Amd => [200, 3_000],
        Vendor::Intel => [16_384, 65_536],
    };
    LabHost {
        vendor,
        window: WindowRule::new(Control::ALL[random.below(5) as usize], vendor)
            .with_base(bases[random.below(2) as usize]),
        gap_cycles: [128, 65_535][random.below(2) as usize],
        ecs: [None, Some(false), Some(true)][random.below(3) as usize],
        steering: random_steering(random),
        ignore_reschedules: random.below(2) == 0,
        candidates: CandidateRule::ALL[random.below(7) as usize],
        guest_tasks: 1 + random.below(3) as u32,
        page_fault_every_iterations: random.below(4) as u32,
        async_page_faults: random.below(2) == 0,
        paravirtual: Paravirtual {
            tlb_flush: random.below(2) == 0,
            sched_yield: random.below(2) == 0,
            send_ipi: random.below(2) == 0,
        },
        halt_poll_ns: [0, 50_000][random.below(2) as usize],
        cpu_hogs: random.below(3) as u32,
        ..LabHost::new(topology.expect("a few pCPUs"))
    }
}

/// Policies and parameters of the scheduler `steer`: some of its policies, with facts that are late or lost.
fn random_steering(random: &mut Random) -> SteeringModel {
    let asked: Vec<&str> = Policies::names()
        .filter(|name| *name != "slice" && random.below(2) == 0)
        .collect();
    let asked = match asked.is_empty() {
        true => "refuse-yields".to_owned(),
        false => asked.join(","),
    };
    SteeringModel {
        policies: asked.parse().expect("names of policies"),
        facts_age_ns: [0, 2_000, 500_000][random.below(3) as usize],
        lost_ppm: [0, 100_000][random.below(2) as usize],
        tick_only: random.below(4) == 0,
        ..SteeringModel::default()
    }
}

/// Other weights, a group around some VMs, and, if possible, some pinned tasks.
pub fn random_arrangement(
    scheduler: Box<dyn HostScheduler>,
    may_pin: bool,
    scenario: &Scenario,
    cpus: u32,
    random: &mut Random,
) -> (Arranged, Charged) {
    let mut arranged = Arranged::new(scheduler);
    let vms: u32 = scenario.vms.iter().map(|vm| vm.count).sum();
    let vcpus: u32 = scenario.vms.iter().map(|vm| vm.count * vm.vcpus).sum();
    for vm in 0..vms as usize {
        let weight = [768, 1_024, 1_536][random.below(3) as usize];
        arranged.paths.push(match random.below(2) {
            0 => vec![(vm, weight)],
            _ => vec![(1_000, 2_048), (vm, weight)],
        });
    }
    if random.below(3) == 0 && may_pin {
        for _ in 0..vcpus {
            let first = random.below(cpus.into()) as u32;
            let last = first + random.below((cpus - first).into()) as u32;
            let cpus = (first..=last).map(Cpu).collect();
            arranged.pins.push(Allowed::Only(cpus));
        }
    }
    let charged = arranged.charged.clone();
    (arranged, charged)
}

/// The parts of a world.
pub struct RandomWorld {
    pub scenario: Scenario,
    pub host: LabHost,
    pub scheduler: Arranged,
    /// The scheduler's name.
    pub name: String,
    pub charged: Charged,
}

/// A whole world from a seed.
pub fn random_world(seed: u64) -> RandomWorld {
    let mut random = Random(seed);
    let scenario = random_scenario(seed, &mut random);
    let mut host = random_host(&mut random);
    let (name, mut scheduler) = random_scheduler(host.topology, &mut random);
    // Each extra time for one part of a gang is taken from its next part, which may never run.
    if scheduler.steering().is_some() || name == "gang" {
        host.ecs = None;
    }
    // Whatever it begins with, it is chosen for from the first epoch's end on.
    host.steering.auto = scheduler.steering().is_some() && seed % 2 == 0;
    // Before 6.19 each yield moves the yielder's deadline by a slice, whichever task runs next: with seed 5017 one was
    // 125 s ahead within 2.4 s, and its task had to wait that long. 6.19 forfeits virtual time instead.
    if ["eevdf-6.6", "eevdf-6.12"].contains(&name.as_str()) {
        host.window = WindowRule::new(Control::Off, host.vendor);
        host.paravirtual.sched_yield = false;
    }
    host.noise = random_noise(seed, &name);
    let cpus = host.topology.cpus();
    // Gang has no place for a task that is pinned to one pCPU.
    let may_pin = name != "gang";
    let (scheduler, charged) = random_arrangement(scheduler, may_pin, &scenario, cpus, &mut random);
    RandomWorld {
        scenario,
        host,
        scheduler,
        name,
        charged,
    }
}

/// What the host does besides: nothing in half of all worlds, a lot in a quarter. From a seed of its own, so that the worlds are
/// otherwise those without it.
fn random_noise(seed: u64, scheduler: &str) -> Option<NoiseModel> {
    let mut random = Random(seed ^ 0x6e_6f69_7365);
    let noise = match random.below(4) {
        0 => HostNoise::Busy,
        1 => {
            let mut source = |least_ns: u64| {
                let lasts = Distribution {
                    unit: WorkUnit::Nanoseconds,
                    shape: Shape::Uniform {
                        low: 0,
                        high: 1 + random.below(100_000),
                    },
                };
                let every_ns = least_ns + random.below(2_000_000);
                (random.below(3) != 0).then_some(NoiseSource { every_ns, lasts })
            };
            HostNoise::Rates(Box::new(NoiseRates {
                interrupts: source(200_000),
                bound_threads: source(500_000),
                unbound_threads: source(500_000),
                vcpu_start: Distribution {
                    unit: WorkUnit::Nanoseconds,
                    shape: Shape::Exponential {
                        mean: 1 + seed % 100_000,
                    },
                },
            }))
        }
        _ => HostNoise::Off,
    };
    NoiseModel::of(&noise, scheduler != "gang")
}

/// Any scheduler.
pub fn random_scheduler(
    topology: Topology,
    random: &mut Random,
) -> (String, Box<dyn HostScheduler>) {
    // Not lag credit, with which two vCPUs that spin for each other can permanently keep a third from running.
    let mut names = known_names();
    names.extend(["cfs-4.13+debooster=paper", "cfs-5.6+balance"]);
    match names.get(random.below(names.len() as u64 + 1) as usize) {
        Some(name) => {
            let scheduler = from_name(name, topology, 1).expect("a name of the list");
            ((*name).to_owned(), scheduler)
        }
        None => {
            let slice_ns = 50_000 << random.below(7);
            let scheduler = RoundRobin::new(topology.cpus(), slice_ns);
            (format!("round robin, {slice_ns} ns"), Box::new(scheduler))
        }
    }
}

/// Checks that no lock is held by two, no event is in the past, and pCPUs run one task at a time.
#[derive(Default)]
pub struct Witness {
    holders: Vec<Option<Task>>,
    on: Vec<Option<Task>>,
    last_ns: u64,
    /// A hash of all events.
    pub all: DefaultHasher,
    pub acquisitions: u64,
    pub order: Vec<(u32, u32)>,
}

fn at<T: Default + Clone>(all: &mut Vec<T>, index: usize) -> &mut T {
    if all.len() <= index {
        all.resize(index + 1, T::default());
    }
    &mut all[index]
}

impl Observer for Witness {
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, task: Option<Task>, what: TraceEvent) {
        assert!(now_ns >= self.last_ns, "time goes on");
        self.last_ns = now_ns;
        (now_ns, cpu, task, what).hash(&mut self.all);
        match what {
            TraceEvent::SwitchIn { task } => {
                let place = at(&mut self.on, cpu.index());
                assert_eq!(place.replace(task), None, "one task on {cpu:?}");
                let places = self.on.iter().filter(|on| **on == Some(task)).count();
                assert_eq!(places, 1, "{task:?} on one pCPU");
            }
            TraceEvent::SwitchOut { task, .. } => {
                assert_eq!(at(&mut self.on, cpu.index()).take(), Some(task));
            }
            TraceEvent::LockTaken { lock } => {
                let holder = at(&mut self.holders, lock.index());
                assert_eq!(*holder, None, "{lock:?} is held");
                *holder = task;
                self.acquisitions += 1;
                self.order.push((lock.0, task.expect("somebody").0));
            }
            TraceEvent::LockReleased { lock } => {
                let holder = at(&mut self.holders, lock.index());
                assert_eq!(holder.take(), task, "{lock:?}");
            }
            _ => {}
        }
    }
}

/// Runs it to its end; no event may be lost.
pub fn check(
    scenario: &Scenario,
    host: LabHost,
    scheduler: Box<dyn HostScheduler>,
) -> Result<World<Witness>, RunError> {
    let cpus = host.topology.cpus();
    let world = World::new(
        scenario,
        host,
        Costs::default(),
        scheduler,
        Witness::default(),
    );
    let mut world = world.expect("a small world");
    world.run_until(1 << 45)?;
    let wall_ns = world.now_ns();
    for task in 0..world.tasks() {
        let times = world.times(Task(task));
        let sum_ns = times.running_ns + times.runnable_ns + times.halted_ns;
        assert_eq!(sum_ns, wall_ns, "task {task}: {times:?}");
    }
    for cpu in 0..cpus {
        let (busy_ns, idle_ns) = world.cpu_times(Cpu(cpu));
        assert_eq!(busy_ns + idle_ns, wall_ns, "pCPU {cpu}");
    }
    Ok(world)
}
