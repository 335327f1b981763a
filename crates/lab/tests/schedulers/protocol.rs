// SPDX-License-Identifier: MIT OR Apache-2.0
//! Random calls that keep to the protocol, for all schedulers: no task is lost, none runs twice or where it may not,
//! time charged is time run, and equal calls have equal results.

use proptest::prelude::*;
use unspin_lab::ids::{Cpu, Group, Task};
use unspin_lab::scheduler::{Allowed, Enqueue, HostScheduler, YieldTo, from_name};
use unspin_lab::topology::Topology;

const NAMES: [&str; 14] = [
    "cfs-3.5",
    "cfs-3.19",
    "cfs-4.13+balance",
    "cfs-5.6",
    "cfs-5.6+debooster=paper",
    "cfs-5.6+debooster=ancestor+balance",
    "eevdf-6.6",
    "eevdf-6.12",
    "eevdf-6.12+debooster=ancestor",
    "eevdf-6.19+lag-credit",
    "eevdf-7.2",
    "eevdf-7.2+lag-credit+balance+hz=1000",
    "credit",
    "gang+slot-ms=3",
];

/// A step of a random world. Numbers choose among what exists.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pass { ns: u64 },
    Wake { task: usize, waker: usize },
    Sleep { cpu: usize },
    Tick { cpu: usize },
    Yield { cpu: usize },
    YieldTo { cpu: usize, target: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0_usize..64;
    prop_oneof![
        4 => prop_oneof![1_u64..100_000, 100_000_u64..10_000_000].prop_map(|ns| Step::Pass { ns }),
        4 => (any.clone(), any.clone()).prop_map(|(task, waker)| Step::Wake { task, waker }),
        2 => any.clone().prop_map(|cpu| Step::Sleep { cpu }),
        3 => any.clone().prop_map(|cpu| Step::Tick { cpu }),
        1 => any.clone().prop_map(|cpu| Step::Yield { cpu }),
        3 => (any.clone(), any).prop_map(|(cpu, target)| Step::YieldTo { cpu, target }),
    ]
}

/// Weight of a task, its allowed pCPUs (a mask; 0: any), its group and family, each among what exists.
type TaskPlan = (u32, u8, usize, Option<u32>);

#[derive(Clone, Debug)]
struct Plan {
    topology: (u32, u32, u32, u32),
    groups: Vec<(usize, u32)>,
    tasks: Vec<TaskPlan>,
    steps: Vec<Step>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let weight = prop_oneof![Just(1024_u32), 15_u32..88_761];
    let topology = (1_u32..3, 1_u32..3, 1_u32..3, 1_u32..3);
    let groups = prop::collection::vec((0_usize..8, 2_u32..10_000), 0..4);
    let mask = prop_oneof![3 => Just(0_u8), 2 => any::<u8>()];
    let task = (weight, mask, 0_usize..8, prop::option::of(0_u32..3));
    let steps = prop::collection::vec(step(), 1..200);
    (topology, groups, prop::collection::vec(task, 1..14), steps).prop_map(
        |(topology, groups, tasks, steps)| Plan {
            topology,
            groups,
            tasks,
            steps,
        },
    )
}

struct World {
    scheduler: Box<dyn HostScheduler>,
    now_ns: u64,
    current: Vec<Option<(Task, u64)>>,
    awake: Vec<bool>,
    started: Vec<bool>,
    ran_ns: Vec<u64>,
    allowed: Vec<Allowed>,
    answers: Vec<(u64, u32, i64)>,
}

impl World {
    fn new(name: &str, plan: &Plan) -> World {
        let (sockets, caches, cores, threads) = plan.topology;
        let topology = Topology::new(sockets, caches, cores, threads).expect("few pCPUs");
        let mut scheduler = from_name(name, topology, 1).expect("a known name");
        for (index, (parent, weight)) in plan.groups.iter().enumerate() {
            scheduler.add_group(Group((parent % (index + 1)) as u32), *weight);
        }
        let cpus = topology.cpus();
        let mut allowed = Vec::new();
        for (weight, mask, group, family) in &plan.tasks {
            let some: Vec<Cpu> = (0..cpus)
                .filter(|cpu| mask >> (cpu % 8) & 1 == 1)
                .map(Cpu)
                .collect();
            let may = if some.is_empty() {
                Allowed::All
            } else {
                Allowed::Only(some)
            };
            let group = Group((group % (plan.groups.len() + 1)) as u32);
            scheduler.add_task(group, *weight, may.clone(), *family);
            allowed.push(may);
        }
        let tasks = plan.tasks.len();
        World {
            scheduler,
            now_ns: 0,
            current: vec![None; cpus as usize],
            awake: vec![false; tasks],
            started: vec![false; tasks],
            ran_ns: vec![0; tasks],
            allowed,
            answers: Vec::new(),
        }
    }

    fn stop(&mut self, cpu: usize, runnable: bool) {
        if let Some((task, since_ns)) = self.current[cpu].take() {
            self.ran_ns[task.index()] += self.now_ns - since_ns;
            self.awake[task.index()] = runnable;
            self.scheduler
                .put_previous(self.now_ns, Cpu(cpu as u32), runnable);
            let charged_ns = self.scheduler.charged_ns(task);
            assert_eq!(
                charged_ns,
                self.ran_ns[task.index()],
                "{task:?} is charged for what it ran"
            );
        }
    }

    fn pick(&mut self, cpu: usize) {
        let here = Cpu(cpu as u32);
        let picked = self.scheduler.pick_next(self.now_ns, here);
        self.answers.push((
            self.now_ns,
            here.0,
            picked.map_or(-1, |task| i64::from(task.0)),
        ));
        let Some(task) = picked else {
            assert_eq!(
                self.scheduler.runnable(here),
                0,
                "an idle pCPU has nobody who waits"
            );
            return;
        };
        assert!(self.awake[task.index()], "{task:?} sleeps");
        assert!(
            self.allowed[task.index()].contains(here),
            "{task:?} may not run there"
        );
        assert_eq!(self.scheduler.cpu_of(task), Some(here));
        let elsewhere = self
            .current
            .iter()
            .flatten()
            .any(|(other, _)| *other == task);
        assert!(!elsewhere, "{task:?} runs twice");
        self.current[cpu] = Some((task, self.now_ns));
    }

    fn reschedule(&mut self, cpu: usize) {
        self.stop(cpu, true);
        self.pick(cpu);
    }

    fn follow_kicks(&mut self) {
        while let Some(cpu) = self.scheduler.take_kick() {
            self.reschedule(cpu.index());
        }
    }

    fn wake(&mut self, task: usize, waker: Option<Cpu>) {
        let id = Task(task as u32);
        let cpu = self.scheduler.select_cpu(self.now_ns, id, waker);
        assert!(
            self.allowed[task].contains(cpu),
            "{id:?} may not wait there"
        );
        let why = if self.started[task] {
            Enqueue::Wakeup
        } else {
            Enqueue::New
        };
        (self.awake[task], self.started[task]) = (true, true);
        self.scheduler.enqueue(self.now_ns, id, cpu, why);
        if self.scheduler.wakeup_preempts(self.now_ns, cpu, id) {
            self.reschedule(cpu.index());
        }
        self.follow_kicks();
    }

    fn take(&mut self, step: Step) {
        let cpus = self.current.len();
        match step {
            Step::Pass { ns } => self.now_ns += ns,
            Step::Wake { task, waker } => {
                let task = task % self.awake.len();
                if !self.awake[task] {
                    self.wake(task, (waker % 2 == 0).then_some(Cpu((waker % cpus) as u32)));
                }
            }
            Step::Sleep { cpu } => {
                self.stop(cpu % cpus, false);
                self.pick(cpu % cpus);
            }
            Step::Tick { cpu } => {
                let cpu = cpu % cpus;
                if self.current[cpu].is_some() && self.scheduler.tick(self.now_ns, Cpu(cpu as u32))
                {
                    self.reschedule(cpu);
                }
                self.follow_kicks();
            }
            Step::Yield { cpu } => {
                let cpu = cpu % cpus;
                if self.current[cpu].is_some() {
                    self.scheduler.yield_now(self.now_ns, Cpu(cpu as u32));
                    self.reschedule(cpu);
                }
            }
            Step::YieldTo { cpu, target } => self.yield_to(cpu % cpus, target % self.awake.len()),
        }
    }

    fn yield_to(&mut self, cpu: usize, target: usize) {
        let Some((yielder, _)) = self.current[cpu] else {
            return;
        };
        if yielder.index() == target {
            return;
        }
        let answer = self
            .scheduler
            .yield_to(self.now_ns, Cpu(cpu as u32), Task(target as u32));
        self.answers
            .push((self.now_ns, cpu as u32, answer as i64 + 100));
        if answer == YieldTo::Yielded {
            assert!(self.awake[target]);
            let other = self
                .scheduler
                .cpu_of(Task(target as u32))
                .expect("it waits");
            self.reschedule(cpu);
            if other.index() != cpu {
                self.reschedule(other.index());
            }
        }
    }

    fn check(&self) {
        let waiting = (0..self.awake.len())
            .filter(|task| self.awake[*task])
            .count();
        let counted: u32 = (0..self.current.len())
            .map(|cpu| self.scheduler.runnable(Cpu(cpu as u32)))
            .sum();
        assert_eq!(
            counted as usize, waiting,
            "every runnable task is in one queue"
        );
        for (task, awake) in self.awake.iter().enumerate() {
            let cpu = self.scheduler.cpu_of(Task(task as u32));
            assert_eq!(cpu.is_some(), *awake, "task {task}");
            assert!(cpu.is_none_or(|cpu| self.allowed[task].contains(cpu)));
        }
    }

    /// All tasks run a little and go to sleep: none may be left.
    fn drain(&mut self) {
        for _ in 0..self.awake.len() {
            for cpu in 0..self.current.len() {
                self.now_ns += 1_000;
                self.stop(cpu, false);
                self.pick(cpu);
            }
        }
        assert!(
            self.awake.iter().all(|awake| !awake),
            "a task was lost: {:?}",
            self.awake
        );
    }
}

fn run(name: &str, plan: &Plan) -> Vec<(u64, u32, i64)> {
    let mut world = World::new(name, plan);
    for step in &plan.steps {
        world.take(*step);
        world.check();
    }
    world.drain();
    world.answers
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_task_is_lost_and_equal_calls_have_equal_answers(plan in plan()) {
        for name in NAMES {
            prop_assert_eq!(run(name, &plan), run(name, &plan), "{}", name);
        }
    }
}
