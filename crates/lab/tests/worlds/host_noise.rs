// SPDX-License-Identifier: MIT OR Apache-2.0
//! Host noise has the rates, lengths and places of the scenario, and is on the
//! timeline.

use unspin_events::{Event, What};
use unspin_lab::{
    Lab, Outcome,
    host_events::{HostEvents, thread},
    ids::{Cpu, Task},
    perfetto::TraceIds,
    run,
    scheduler::names::known_names,
    trace_event::{ExitReason, Observer, TraceEvent},
};
use unspin_scenario::Scenario;

/// A vCPU on each of so many pCPUs, always in user mode, without locks.
fn alone(cpus: u32, lab: &str) -> Scenario {
    let text = format!(
        "seed = 3\nduration = \"4s\"\n[lab]\ntopology = \"1x1x{cpus}x1\"\n{lab}\n[[vm]]\nvcpus = {cpus}\nlock = \"ticket\"\n\
         locks = \"private\"\nuser_work = \"100us\"\nhold = \"100ns\"\n"
    );
    Scenario::parse(&text, "s.toml").unwrap_or_else(|error| panic!("{}", error.plain()))
}

/// Exits for interrupts, and when each task begins to run.
#[derive(Default)]
struct Seen {
    interrupts: u64,
    runs: Vec<(u64, Cpu, Task)>,
}

impl Observer for &mut Seen {
    fn on_event(&mut self, now_ns: u64, cpu: Cpu, _: Option<Task>, what: TraceEvent) {
        match what {
            TraceEvent::Exit {
                reason: ExitReason::Interrupt,
            } => self.interrupts += 1,
            TraceEvent::SwitchIn { task } => self.runs.push((now_ns, cpu, task)),
            _ => {}
        }
    }
}

fn ran(scenario: &Scenario) -> (Outcome, Seen, Vec<unspin_lab::TaskTimes>) {
    let lab = Lab::new(scenario).unwrap_or_else(|error| panic!("{error}"));
    let mut seen = Seen::default();
    let mut world = lab.world(scenario, &mut seen).expect("a world");
    let outcome = run(&mut world, scenario, |_| {}).expect("it runs");
    let times = (0..world.tasks()).map(|task| world.times(Task(task)));
    let times = times.collect();
    drop(world);
    (outcome, seen, times)
}

/// Within so many percent.
fn near(value: u64, expected: u64, percent: u64) -> bool {
    value.abs_diff(expected) * 100 <= expected * percent
}

#[test]
fn interrupts_delay_vcpus_as_long_as_they_last() {
    let operations = |noise: &str| {
        let scenario = alone(2, &format!("host_noise = {noise}"));
        let (outcome, seen, _) = ran(&scenario);
        (outcome.operations(None), seen.interrupts, outcome.host_ns)
    };
    let (without, ticks, none) = operations("\"off\"");
    // 1,000 a second, 100 us each: a tenth, and an exit and an entry of 1 us.
    let (with, all, host_ns) =
        operations("{ interrupts = { every = \"1ms\", lasts = \"100us\" } }");
    // Those that arrive outside of a guest cause no exit.
    assert!(near(all - ticks, 7_000, 6), "{ticks} and {all} interrupts");
    assert!(near(with, without * 899 / 1_000, 1), "{with} of {without}");
    assert_eq!(none, [0, 0]);
    assert!(
        host_ns.iter().all(|ns| near(*ns, 400_000_000, 5)),
        "{host_ns:?}"
    );
}

#[test]
fn threads_run_as_often_and_as_long_as_they_should() {
    let scenario = alone(
        2,
        "host_noise = { bound_threads = { every = \"10ms\", lasts = { exponential = \"50us\" } }, \
         unbound_threads = { every = \"20ms\", lasts = \"200us\" } }",
    );
    let (outcome, seen, times) = ran(&scenario);
    assert_eq!(times.len(), 6, "2 vCPUs, 2 bound threads, 2 others");
    for (task, runs, mean_ns) in [
        (2, 400, 50_000),
        (3, 400, 50_000),
        (4, 200, 200_000),
        (5, 200, 200_000),
    ] {
        let times = times[task];
        // Each run begins with a switch of 1.2 us.
        let expected_ns = runs * (mean_ns + 1_200);
        assert!(near(times.waits, runs, 15), "task {task}: {times:?}");
        assert!(
            near(times.running_ns, expected_ns, 20),
            "task {task}: {times:?}"
        );
    }
    let threads_ns: u64 = times[2..].iter().map(|times| times.running_ns).sum();
    assert_eq!(outcome.host_ns.iter().sum::<u64>(), threads_ns);
    let bound = |task: u32| seen.runs.iter().filter(move |run| run.2 == Task(task));
    assert!(bound(2).all(|run| run.1 == Cpu(0)) && bound(3).all(|run| run.1 == Cpu(1)));
}

#[test]
fn vcpus_start_one_after_the_other() {
    let scenario = alone(
        8,
        "host_noise = { vcpu_start = { uniform = [\"10us\", \"20us\"] } }",
    );
    let (_, seen, times) = ran(&scenario);
    let first = |task| {
        seen.runs
            .iter()
            .find(|run| run.2 == Task(task))
            .expect("it runs")
            .0
    };
    let starts: Vec<u64> = (0..8).map(first).collect();
    let mut in_order = starts.clone();
    in_order.sort_unstable();
    assert_ne!(in_order, starts, "in random order");
    assert!(in_order[0] >= 10_000, "{starts:?}");
    for pair in in_order.windows(2) {
        let gap_ns = pair[1] - pair[0];
        assert!((10_000..=21_000).contains(&gap_ns), "{starts:?}");
    }
    for (times, start_ns) in times.iter().zip(&starts) {
        assert!(
            times.halted_ns <= *start_ns && times.halted_ns >= 10_000,
            "{times:?}"
        );
    }
}

#[test]
fn ticks_are_at_once_unless_they_are_skewed() {
    let first_ticks = |lab: &str| {
        let scenario = alone(4, &format!("host_noise = \"off\"\n{lab}"));
        let lab = Lab::new(&scenario).expect("a lab");
        #[derive(Default)]
        struct Ticks(Vec<(Cpu, u64)>);
        impl Observer for &mut Ticks {
            fn on_event(&mut self, now_ns: u64, cpu: Cpu, _: Option<Task>, what: TraceEvent) {
                let interrupt = ExitReason::Interrupt;
                let known = self.0.iter().any(|tick| tick.0 == cpu);
                if what == (TraceEvent::Exit { reason: interrupt }) && now_ns > 0 && !known {
                    self.0.push((cpu, now_ns));
                }
            }
        }
        let mut ticks = Ticks::default();
        let mut world = lab.world(&scenario, &mut ticks).expect("a world");
        world.run_until(9_000_000).expect("it runs");
        drop(world);
        ticks.0.sort_unstable();
        ticks.0.iter().map(|tick| tick.1).collect::<Vec<u64>>()
    };
    assert_eq!(first_ticks(""), [4_000_000; 4]);
    // tick_setup_sched_timer(): half a period by the number of CPUs, each.
    let skewed = [4_000_000, 500_000, 1_000_000, 1_500_000];
    assert_eq!(first_ticks("skew_tick = true"), skewed);
}

#[test]
fn tasks_have_names_under_every_scheduler() {
    for scheduler in known_names() {
        for noise in [
            "\"off\"",
            "\"idle\"",
            "{ bound_threads = { every = \"1ms\", lasts = \"9us\" } }",
        ] {
            let lab = format!("scheduler = \"{scheduler}\"\nhost_noise = {noise}\ncpu_hogs = 1");
            let scenario = alone(2, &lab);
            let lab = Lab::new(&scenario).expect("a lab");
            let world = lab.world(&scenario, ()).expect("a world");
            let names = TraceIds::of(&scenario, lab.host()).tasks;
            assert_eq!(names.len(), world.tasks() as usize, "{scheduler}, {noise}");
            let noisy = scheduler != "gang" && noise != "\"off\"";
            let kernel = names
                .iter()
                .filter(|task| task.name.starts_with("kworker/"));
            assert_eq!(kernel.count() > 0, noisy, "{scheduler}, {noise}");
        }
    }
}

/// A gang's time slots have no place for a thread of one pCPU: its work is that of interrupts.
#[test]
fn noise_leaves_gangs_together() {
    let scenario = alone(2, "scheduler = \"gang\"\nhost_noise = \"busy\"");
    let (outcome, seen, times) = ran(&scenario);
    assert_eq!(times.len(), 2);
    assert!(seen.interrupts > 1_000, "{}", seen.interrupts);
    assert!(
        outcome.host_ns.iter().all(|ns| *ns > 5_000_000),
        "{:?}",
        outcome.host_ns
    );
}

#[test]
fn noise_that_leaves_no_time_is_refused() {
    let scenario = alone(
        2,
        "host_noise = { interrupts = { every = \"1ms\", lasts = \"300us\" }, bound_threads = { every = \"1ms\", lasts = \"200us\" } }",
    );
    let refused = Lab::new(&scenario).expect_err("too much").to_string();
    assert!(refused.contains("50 % of all CPU time"), "{refused}");
    let less = alone(
        2,
        "host_noise = { interrupts = { every = \"1ms\", lasts = \"499us\" } }",
    );
    ran(&less);
}

#[test]
fn seeds_differ_in_noise_alone() {
    let done = |seed: u64| {
        let mut scenario = alone(2, "host_noise = \"idle\"");
        scenario.seed = seed;
        let (outcome, seen, _) = ran(&scenario);
        (outcome.trace_events, seen.runs)
    };
    assert_eq!(done(1), done(1));
    assert_ne!(done(1), done(2));
}

/// A recording names the thread of the host that ran instead of a vCPU.
#[test]
fn who_ran_instead_is_recorded() {
    let scenario = alone(
        1,
        "host_noise = { bound_threads = { every = \"5ms\", lasts = \"30us\" } }",
    );
    let lab = Lab::new(&scenario).expect("a lab");
    let names = TraceIds::of(&scenario, lab.host());
    let kworker = names.tasks.iter().position(|task| task.name == "kworker/0");
    let kworker = thread(Task(kworker.expect("there is one") as u32));
    let (mut instead, mut others) = (0, 0);
    let events = HostEvents::new(&names, |event: Event| {
        assert_eq!(event.vm, Some(0), "only vCPUs are observed");
        if let What::SwitchOut {
            next_thread,
            next_vm,
            ..
        } = event.what
        {
            match next_thread == kworker && next_vm.is_none() {
                true => instead += 1,
                false => others += 1,
            }
        }
    });
    let mut world = lab.world(&scenario, events).expect("a world");
    run(&mut world, &scenario, |_| {}).expect("it runs");
    drop(world);
    assert!(near(instead, 800, 15), "{instead}, {others}");
    assert_eq!(others, 0);
}
