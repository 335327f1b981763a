// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds waits: the caller of `policy/mechanics/starvation_bound.h`, as bpf/scheduler/waits/starvation_bound.bpf.h is.

use unspin_policy::mechanics::{LAST_COMPARED, before, reweighted_vtime_ns};

use super::Steer;
use crate::ids::{Cpu, Task};

impl Steer {
    /// Limits the virtual times of the last tasks of that queue, and scales what they are ahead to a weight that has grown; returns
    /// whether one was moved.
    fn bring_forward(&mut self, queue: Option<Cpu>, latest_ns: u64) -> bool {
        let waiting = match queue {
            None => &self.shared,
            Some(cpu) => &self.own[cpu.index()],
        };
        let last = waiting.iter().rev().take(LAST_COMPARED);
        let last: Vec<Task> = last.map(|key| Task(key.1)).collect();
        let clock_ns = self.clock(queue).now_ns;
        let mut moved = false;
        for task in last {
            let (entity, weight) = (&self.tasks[task.index()], self.flat_weight(task));
            let (from_ns, charged) = (entity.vtime_ns, entity.charged_weight);
            let vtime_ns = reweighted_vtime_ns(from_ns, clock_ns, charged, weight);
            let vtime_ns = if before(latest_ns, vtime_ns) {
                latest_ns
            } else {
                vtime_ns
            };
            if before(vtime_ns, from_ns) {
                self.requeue_at(task, vtime_ns);
                self.tasks[task.index()].charged_weight = weight;
                moved = true;
            }
        }
        moved
    }

    /// Brings tasks forward that wait for this pCPU too far ahead: one of each queue each period, and one at each
    /// choice of the pCPU while there are more. Unlike in BPF, the task that ran last waits in its queue already.
    pub(super) fn bound_starvation(&mut self, now_ns: u64, cpu: Cpu) {
        let shared_now_ns = self.shared_clock.now_ns;
        self.shared_rate.measure(shared_now_ns, now_ns);
        let here = &mut self.cpus[cpu.index()];
        let measured = here.rate.measure(here.front_ns, now_ns);
        if !measured && !here.behind {
            return;
        }
        let (front_ns, rate, slice_ns) = (here.front_ns, here.rate, self.slice_ns);
        let offset_ns = self.clocks[cpu.index()].offset_ns;
        let shared_rate = self.shared_rate;
        let latest_own_ns = rate.latest_own_ns(front_ns, offset_ns, slice_ns);
        let latest_shared_ns =
            rate.latest_shared_ns(front_ns, shared_now_ns, &shared_rate, slice_ns);
        let own = self.bring_forward(Some(cpu), latest_own_ns);
        let shared = self.bring_forward(None, latest_shared_ns);
        self.cpus[cpu.index()].behind = own || shared;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ids::Group,
        scheduler::{Allowed, Enqueue, HostScheduler, NICE_0_WEIGHT},
        topology::Topology,
    };
    use unspin_policy::mechanics::{ClockRate, TICK_NS};

    const MS: u64 = 1_000_000;
    const CPU: Cpu = Cpu(0);
    /// Beside these, a task of the least weight runs each 8 s and more: 4 ms move it 400 ms ahead, and the clock
    /// advances 50 ms a second.
    const HEAVY: u32 = 20;
    const RUN_NS: u64 = 30_000 * MS;

    /// One pCPU, that many tasks of nice 0 and then one of the least weight, all always runnable and, if `pinned`,
    /// allowed on that pCPU only.
    fn beside_heavy_ones(pinned: bool) -> Steer {
        let mut steer = Steer::new(Topology::new(1, 1, 1, 1).expect("one pCPU"), 3 * MS);
        let allowed = || match pinned {
            true => Allowed::Only(vec![CPU]),
            false => Allowed::All,
        };
        for weight in [NICE_0_WEIGHT; HEAVY as usize].into_iter().chain([1]) {
            let task = steer.add_task(Group(0), weight, allowed(), None);
            steer.enqueue(0, task, CPU, Enqueue::New);
        }
        steer
    }

    /// The longest time between two slices of the lightest task, and of any other, ns. `rule`: whether waits are
    /// bounded.
    fn longest_waits_ns(mut steer: Steer, rule: bool) -> (u64, u64) {
        let mut ran_at_ns = [0; HEAVY as usize + 1];
        let mut longest_ns = ran_at_ns;
        let mut now_ns = 0;
        for step in 0.. {
            // Slices of some ticks, of varying length: with equal slices the front would stand for a whole round.
            now_ns += (1 + step * 5 % 7) * MS;
            if now_ns > RUN_NS {
                break;
            }
            if !rule {
                // Measured just now at each step, so the bound is never checked.
                let mut never = ClockRate::default();
                never.measure(0, now_ns.max(64 * MS));
                (steer.cpus[0].rate, steer.cpus[0].behind) = (never, false);
            }
            steer.put_previous(now_ns, CPU, true);
            let task = steer.pick_next(now_ns, CPU).expect("tasks").index();
            longest_ns[task] = longest_ns[task].max(now_ns - ran_at_ns[task]);
            ran_at_ns[task] = now_ns;
        }
        for (longest_ns, ran_at_ns) in longest_ns.iter_mut().zip(ran_at_ns) {
            *longest_ns = (*longest_ns).max(RUN_NS - ran_at_ns);
        }
        let heavy = &longest_ns[..HEAVY as usize];
        (
            longest_ns[HEAVY as usize],
            *heavy.iter().max().expect("some"),
        )
    }

    #[test]
    fn the_lightest_beside_heavy_ones_gets_a_slice_in_some_two_seconds() {
        for pinned in [false, true] {
            let (lightest_ns, heavy_ns) = longest_waits_ns(beside_heavy_ones(pinned), true);
            assert!(
                (1_500 * MS..2_500 * MS).contains(&lightest_ns),
                "{lightest_ns}"
            );
            assert!(heavy_ns <= 3 * u64::from(HEAVY) * TICK_NS, "{heavy_ns}");
        }
    }

    #[test]
    fn by_its_weight_alone_it_waits_longer_than_the_watchdog_lets_it() {
        for pinned in [false, true] {
            let (lightest_ns, _) = longest_waits_ns(beside_heavy_ones(pinned), false);
            assert!(lightest_ns > 8_000 * MS, "{lightest_ns}");
        }
    }
}
