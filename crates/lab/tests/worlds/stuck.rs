// SPDX-License-Identifier: MIT OR Apache-2.0
//! A model that cannot continue reports what every vCPU waits for; it never hangs.
#![allow(missing_docs)]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::common::arranged::Arranged;
use unspin_lab::{
    Lab, LabHost, RunError, World,
    costs::Costs,
    ids::{Cpu, Group, Task},
    pool,
    scheduler::{Allowed, Enqueue, HostScheduler, RoundRobin, YieldTo},
    topology::Topology,
};
use unspin_scenario::Scenario;

/// The fault of a bad scheduler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    NeverPicks,
    /// Picks, but not that task.
    Forgets(u32),
    /// Reschedules the same task again and again, at once.
    LooksAlways,
}

struct Flawed {
    inner: Arranged,
    flaw: Flaw,
}

impl HostScheduler for Flawed {
    fn add_group(&mut self, parent: Group, weight: u32) -> Group {
        self.inner.add_group(parent, weight)
    }
    fn add_task(&mut self, group: Group, weight: u32, on: Allowed, family: Option<u32>) -> Task {
        self.inner.add_task(group, weight, on, family)
    }
    fn select_cpu(&mut self, now_ns: u64, task: Task, waker: Option<Cpu>) -> Cpu {
        self.inner.select_cpu(now_ns, task, waker)
    }
    fn enqueue(&mut self, now_ns: u64, task: Task, cpu: Cpu, why: Enqueue) {
        if self.flaw != Flaw::Forgets(task.0) {
            self.inner.enqueue(now_ns, task, cpu, why);
        }
    }
    fn wakeup_preempts(&mut self, now_ns: u64, cpu: Cpu, woken: Task) -> bool {
        self.inner.wakeup_preempts(now_ns, cpu, woken)
    }
    fn pick_next(&mut self, now_ns: u64, cpu: Cpu) -> Option<Task> {
        match self.flaw {
            Flaw::NeverPicks => None,
            _ => self.inner.pick_next(now_ns, cpu),
        }
    }
    fn put_previous(&mut self, now_ns: u64, cpu: Cpu, runnable: bool) {
        self.inner.put_previous(now_ns, cpu, runnable);
    }
    fn tick(&mut self, now_ns: u64, cpu: Cpu) -> bool {
        self.inner.tick(now_ns, cpu)
    }
    fn tick_period_ns(&self) -> u64 {
        self.inner.tick_period_ns()
    }
    fn timer_ns(&self, _: Cpu) -> Option<u64> {
        (self.flaw == Flaw::LooksAlways).then_some(0)
    }
    fn yield_now(&mut self, now_ns: u64, cpu: Cpu) {
        self.inner.yield_now(now_ns, cpu);
    }
    fn yield_to(&mut self, now_ns: u64, cpu: Cpu, target: Task) -> YieldTo {
        self.inner.yield_to(now_ns, cpu, target)
    }
    fn charged_ns(&self, task: Task) -> u64 {
        self.inner.charged_ns(task)
    }
    fn runnable(&self, cpu: Cpu) -> u32 {
        self.inner.runnable(cpu)
    }
    fn cpu_of(&self, task: Task) -> Option<Cpu> {
        self.inner.cpu_of(task)
    }
}

/// How a run of iterations under such a scheduler ends.
fn diagnosis(vm: &str, host: LabHost, costs: Costs, flaw: Option<Flaw>) -> (u64, String) {
    let text = format!("seed = 1\niterations = 50\n[[vm]]\nlock = \"ticket\"\n{vm}");
    let scenario = Scenario::parse(&text, "stuck.toml").expect("a scenario");
    let inner = Arranged::new(Box::new(RoundRobin::new(host.topology.cpus(), 1_000_000)));
    let scheduler: Box<dyn HostScheduler> = match flaw {
        Some(flaw) => Box::new(Flawed { inner, flaw }),
        None => Box::new(inner),
    };
    let world = World::new(&scenario, host, costs, scheduler, ());
    match world.expect("a world").run_until(1 << 44) {
        Err(RunError::Stuck { now_ns, diagnosis }) => (now_ns, diagnosis),
        other => panic!("{other:?}"),
    }
}

fn host(cpus: u32) -> LabHost {
    LabHost::new(Topology::flat(cpus).expect("pCPUs"))
}

#[test]
fn a_scheduler_that_never_picks() {
    for tick_hz in [0, 1_000] {
        let vm = format!("vcpus = 3\nuser_work = \"1us\"\nhold = \"1us\"\ntick_hz = {tick_hz}\n");
        let costs = Costs::default();
        let (_, why) = diagnosis(&vm, host(2), costs, Some(Flaw::NeverPicks));
        assert!(
            why.starts_with("3 vCPUs are not done; VM 0 vCPU 0 (runnable)"),
            "{why}"
        );
    }
}

/// A ticket was drawn and its vCPU never runs again: the others wait behind it without end.
#[test]
fn a_lock_that_is_never_released() {
    let vm = "vcpus = 3\nlocks = 1\nuser_work = \"0ns\"\nhold = \"900us\"\nwakeup_every_iterations = 2\ntick_hz = 0\n";
    let (now_ns, why) = diagnosis(vm, host(3), Costs::default(), Some(Flaw::Forgets(1)));
    assert!(
        why.starts_with("3 vCPUs are not done") && why.contains("halted"),
        "{why}"
    );
    assert!(now_ns < 120_000_000_000, "{now_ns}");
}

#[test]
fn an_answer_that_never_comes() {
    let vm = "vcpus = 3\nlocks = 1\nuser_work = \"0ns\"\nhold = \"100us\"\nshootdown_every_iterations = 1\ntick_hz = 0\n";
    let (_, why) = diagnosis(vm, host(2), Costs::default(), Some(Flaw::Forgets(2)));
    assert!(why.contains("waits for answers to a shootdown"), "{why}");
}

#[test]
fn time_that_stands_still() {
    let vm = "vcpus = 2\nuser_work = \"1us\"\nhold = \"1us\"\ntick_hz = 0\n";
    let (now_ns, why) = diagnosis(vm, host(2), Costs::default(), Some(Flaw::LooksAlways));
    assert!(why.starts_with("2 vCPUs are not done"), "{why}");
    assert!(now_ns < 1_000, "{now_ns}");
}

/// Work that takes no time, for a given time.
#[test]
fn work_without_end_in_no_time() {
    let text = "seed = 1\nduration = \"1ms\"\n[[vm]]\nvcpus = 1\nlock = \"ticket\"\nuser_work = \"0ns\"\n\
        kernel_work = \"0ns\"\nhold = \"0ns\"\ntick_hz = 0\n";
    let Ok(scenario) = Scenario::parse(text, "nothing.toml") else {
        panic!("a scenario of no work is one");
    };
    let costs = Costs {
        line_hit_ns: 0,
        line_cache_ns: 0,
        ..Costs::default()
    };
    let scheduler = Box::new(RoundRobin::new(1, 1_000_000));
    let world = World::new(&scenario, host(1), costs, scheduler, ());
    let ended = world.expect("a world").run_until(1_000_000);
    assert!(matches!(ended, Err(RunError::Stuck { .. })), "{ended:?}");
}

#[test]
fn an_interrupt_ends_a_run_and_none_changes_it() {
    let text =
        "seed = 1\nduration = \"20ms\"\n[[vm]]\nvcpus = 4\nlock = \"ticket\"\nhold = \"1us\"\n";
    let scenario = Scenario::parse(text, "s.toml").expect("a scenario");
    let lab = Lab::new(&scenario).expect("a lab");
    let interrupt = Arc::new(AtomicBool::new(false));
    let ran = |interrupted: Option<&Arc<AtomicBool>>| {
        let mut world = lab.world(&scenario, ()).expect("a world");
        if let Some(interrupt) = interrupted {
            world.interrupt_by(interrupt);
        }
        unspin_lab::run(&mut world, &scenario, |_| {})
    };
    let whole = ran(None).expect("it runs");
    assert_eq!(ran(Some(&interrupt)), Ok(whole));
    interrupt.store(true, Ordering::Relaxed);
    let ended = ran(Some(&interrupt));
    assert!(
        matches!(ended, Err(RunError::Interrupted { now_ns }) if now_ns < 20_000_000),
        "{ended:?}"
    );
    assert_eq!(
        pool::run_one(&scenario, &interrupt)
            .expect_err("it ends")
            .to_string(),
        "interrupted"
    );
}
