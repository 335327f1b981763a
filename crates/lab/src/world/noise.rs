// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host does besides running vCPUs: interrupts that delay whatever a pCPU runs, and threads that wake, run when the
//! scheduler chooses them, and sleep again.
//!
//! Each source has a generator of its own. All sources are in a tree of their own, whose earliest event is in one slot of the
//! world's, so that a world without noise has no slot for it and one with noise has one more.

use unspin_scenario::{Distribution, NoiseSource, Shape, WorkUnit};

use super::{
    World,
    pcpu::{FULL_SPEED, TaskState},
};
use crate::{
    engine::{NEVER_NS, WinnerTree},
    guest::raw,
    ids::{Cpu, Group, Task},
    random::Random,
    scheduler::{Allowed, NICE_0_WEIGHT},
    trace_event::Observer,
};

/// Streams of random numbers: of sources, and of the starts of vCPUs. Those of vCPUs themselves are below (build.rs).
const SOURCES: u32 = 3 << 30;
const STARTS: u32 = SOURCES | 1 << 29;

/// Equally likely times, ns.
type Quantiles = [u64; raw::UNSPIN_QUANTILES as usize];

/// All sources.
pub(super) struct Noise {
    due: WinnerTree,
    sources: Vec<Source>,
    kinds: Vec<Kind>,
}

/// Times that the sources of one kind have in common.
struct Kind {
    gaps_ns: Quantiles,
    lengths_ns: Quantiles,
}

struct Source {
    random: Random,
    kind: usize,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// That pCPU is interrupted.
    Interrupt(Cpu),
    /// That thread has work.
    Thread(Task),
}

impl Noise {
    /// Sets the next event of a source.
    fn plan(&mut self, source: usize, now_ns: u64) {
        let known = &mut self.sources[source];
        let gap_ns = draw(&mut known.random, &self.kinds[known.kind].gaps_ns);
        // With a gap of 0, time could stand still.
        let at_ns = now_ns.saturating_add(gap_ns.max(1));
        self.due.set(source as u32, at_ns);
    }

    /// What happens now, and the CPU time it takes.
    fn take(&mut self, now_ns: u64) -> (What, u64) {
        let (_, source) = self.due.next();
        self.plan(source as usize, now_ns);
        let known = &mut self.sources[source as usize];
        let length_ns = draw(&mut known.random, &self.kinds[known.kind].lengths_ns);
        (known.what, length_ns)
    }
}

impl Kind {
    fn of(source: &NoiseSource) -> Kind {
        let gap = Distribution {
            unit: WorkUnit::Nanoseconds,
            shape: Shape::Exponential {
                mean: source.every_ns,
            },
        };
        Kind {
            gaps_ns: gap.quantile_table(),
            lengths_ns: source.lasts.quantile_table(),
        }
    }
}

/// One of the quantiles.
fn draw(random: &mut Random, quantiles: &Quantiles) -> u64 {
    quantiles[random.below(raw::UNSPIN_QUANTILES.into()) as usize]
}

impl<O: Observer> World<O> {
    /// Adds the host's threads and the sources of its interrupts, if the host has any: after all other tasks, the threads of
    /// pCPUs by number, then those of no pCPU ([`TraceIds`](crate::perfetto::TraceIds) names them in this order).
    pub(super) fn add_noise(&mut self) {
        let Some(model) = self.host.noise.clone() else {
            return;
        };
        let rates = &model.rates;
        let (mut kinds, mut sources) = (Vec::new(), Vec::new());
        for (source, thread) in [
            (&rates.interrupts, None),
            (&rates.bound_threads, Some(true)),
            (&rates.unbound_threads, Some(false)),
        ] {
            let Some(source) = source else {
                continue;
            };
            for cpu in (0..self.topology.cpus()).map(Cpu) {
                let what = match thread.filter(|_| model.threads_are_tasks) {
                    Some(bound) => What::Thread(self.add_thread(bound.then_some(cpu))),
                    None => What::Interrupt(cpu),
                };
                sources.push(Source {
                    random: self.generator(SOURCES + sources.len() as u32),
                    kind: kinds.len(),
                    what,
                });
            }
            kinds.push(Kind::of(source));
        }
        if sources.is_empty() {
            return;
        }
        let mut noise = Noise {
            due: WinnerTree::new(sources.len() as u32),
            sources,
            kinds,
        };
        for source in 0..noise.sources.len() {
            noise.plan(source, 0);
        }
        self.noise = Some(Box::new(noise));
        self.set_noise();
    }

    /// A thread of the host, of that pCPU or of none. Kernel threads are in the root group.
    fn add_thread(&mut self, cpu: Option<Cpu>) -> Task {
        let allowed = cpu.map_or(Allowed::All, |cpu| Allowed::Only(vec![cpu]));
        let task = self
            .scheduler
            .add_task(Group(0), NICE_0_WEIGHT, allowed, None);
        debug_assert_eq!(task.index(), self.tasks.len());
        let mut state = TaskState::new(None);
        state.left_ns = 0;
        self.tasks.push(state);
        task
    }

    fn generator(&self, stream: u32) -> Random {
        // SAFETY: two integers.
        Random::new(unsafe { raw::unspin_lab_random_start(self.seed, stream) })
    }

    /// The engine's slot of the earliest event of all sources.
    fn noise_slot(&self) -> u32 {
        (self.cpus.len() + self.vcpus.len()) as u32
    }

    fn set_noise(&mut self) {
        let Some(noise) = &self.noise else {
            return;
        };
        let (at_ns, _) = noise.due.next();
        let slot = self.noise_slot();
        self.tree.set(slot, at_ns);
    }

    /// The earliest source's event.
    pub(super) fn noise_event(&mut self) {
        let now_ns = self.now_ns;
        let Some(noise) = &mut self.noise else {
            return;
        };
        let (what, length_ns) = noise.take(now_ns);
        self.set_noise();
        match what {
            What::Interrupt(cpu) => self.host_interrupt(cpu, length_ns),
            What::Thread(task) => self.thread_works(task, length_ns),
        }
    }

    /// An interrupt that is for no vCPU: the running task takes that much longer. On an idle pCPU it delays no task.
    fn host_interrupt(&mut self, cpu: Cpu, length_ns: u64) {
        self.account(cpu);
        let Some(task) = self.cpus[cpu.index()].current else {
            return;
        };
        match self.vcpu_on(cpu) {
            // Below 2^32: a scenario's times are at most 100 ms (unspin_scenario::limits), their largest quantile 0.7 s.
            Some(vcpu) => {
                self.cpus[cpu.index()].host_ns += length_ns;
                self.interrupt_the_guest(cpu, vcpu, length_ns as u32);
            }
            None => self.tasks[task.index()].add_work(length_ns),
        }
        self.plan(cpu);
    }

    /// A thread of the host has more to do; it wakes if it sleeps.
    fn thread_works(&mut self, task: Task, length_ns: u64) {
        match self.cpu_of(task) {
            Some(cpu) => {
                self.account(cpu);
                self.tasks[task.index()].add_work(length_ns);
                self.plan(cpu);
            }
            None => {
                self.tasks[task.index()].add_work(length_ns);
                self.wake(task, None);
            }
        }
    }

    /// The thread that runs there has done so much.
    pub(super) fn thread_progresses(&mut self, cpu: Cpu, elapsed_ns: u64) {
        let Some(task) = self.cpus[cpu.index()].current else {
            return;
        };
        let speed = u64::from(self.speed(cpu));
        let known = &mut self.tasks[task.index()];
        if known.left_ns != NEVER_NS {
            known.left_ns -= elapsed_ns * speed / FULL_SPEED;
            self.cpus[cpu.index()].host_ns += elapsed_ns;
        }
    }

    /// When the thread that runs there sleeps.
    pub(super) fn thread_due_ns(&self, cpu: Cpu) -> u64 {
        let current = self.cpus[cpu.index()].current;
        match current.map(|task| self.tasks[task.index()].left_ns) {
            None | Some(NEVER_NS) => NEVER_NS,
            Some(left_ns) => self.after(cpu, left_ns),
        }
    }

    /// The thread that runs there has no work left: it sleeps.
    pub(super) fn thread_done(&mut self, cpu: Cpu) {
        let done = |task: Task| self.tasks[task.index()].left_ns == 0;
        if self.cpus[cpu.index()].current.is_some_and(done) {
            self.block(cpu);
        }
    }

    /// When vCPU threads start: one after the other, in random order, as VMs do not wait for one another; at time 0 without noise.
    pub(super) fn plan_starts(&mut self) {
        let Some(model) = self.host.noise.clone() else {
            return;
        };
        let gaps_ns = model.rates.vcpu_start.quantile_table();
        if gaps_ns.iter().all(|gap_ns| *gap_ns == 0) {
            return;
        }
        let (mut random, mut at_ns) = (self.generator(STARTS), 0);
        let mut left: Vec<usize> = (0..self.vcpus.len()).collect();
        while !left.is_empty() {
            let vcpu = left.swap_remove(random.below(left.len() as u64) as usize);
            at_ns += draw(&mut random, &gaps_ns).max(1);
            self.vcpus[vcpu].sleeps_until_ns = at_ns;
            self.set_timer(vcpu);
        }
    }

    /// Whether a task wakes at time 0: a thread of the host has nothing to do yet, and a vCPU's may start later.
    pub(super) fn starts_at_once(&self, task: usize) -> bool {
        let known = &self.tasks[task];
        match known.vcpu {
            Some(vcpu) => self.vcpus[vcpu as usize].sleeps_until_ns == NEVER_NS,
            None => known.left_ns != 0,
        }
    }
}

impl TaskState {
    /// More to do before it sleeps. A thread that only uses CPU time never does.
    pub(super) fn add_work(&mut self, work_ns: u64) {
        if self.left_ns != NEVER_NS {
            self.left_ns += work_ns;
        }
    }
}
