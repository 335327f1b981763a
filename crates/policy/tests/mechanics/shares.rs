// SPDX-License-Identifier: MIT OR Apache-2.0
//! All rules together: in an abstract queue CPU time follows weights, whatever the tasks' weights and slices are.

use super::{MS, SLICE_NS};
use proptest::prelude::*;
use unspin_policy::mechanics::{
    GroupWeight, NICE_0_WEIGHT, QueueClock, Weight, before, charged_vtime_ns, placed_vtime_ns,
    start_vtime_ns,
};

/// The longest slice, which lasts until the tick after its end.
const LONGEST_NS: u64 = SLICE_NS + 4 * MS;

struct Task {
    weight: Weight,
    vtime_ns: u64,
    ran_ns: u64,
}

/// One queue and one CPU; all tasks are always runnable.
struct Queue {
    clock: QueueClock,
    tasks: Vec<Task>,
}

impl Queue {
    fn new(begin_ns: u64, weights: &[Weight]) -> Queue {
        let clock = QueueClock {
            now_ns: begin_ns,
            offset_ns: 0,
        };
        let tasks = weights.iter().map(|weight| Task {
            weight: *weight,
            vtime_ns: start_vtime_ns(clock.now_ns, *weight, SLICE_NS),
            ran_ns: 0,
        });
        Queue {
            tasks: tasks.collect(),
            clock,
        }
    }

    fn least(&self, but: Option<usize>) -> Option<usize> {
        let tasks = (0..self.tasks.len()).filter(|task| Some(*task) != but);
        tasks.reduce(|least, task| {
            match before(self.tasks[task].vtime_ns, self.tasks[least].vtime_ns) {
                true => task,
                false => least,
            }
        })
    }

    /// The first task runs for this long.
    fn run(&mut self, ran_ns: u64) {
        let first = self.least(None).expect("tasks");
        let waits = self
            .least(Some(first))
            .map(|task| self.tasks[task].vtime_ns);
        self.clock.advance(self.tasks[first].vtime_ns, waits);
        let task = &mut self.tasks[first];
        let clock_ns = self.clock.now_ns;
        task.ran_ns += ran_ns;
        task.vtime_ns = charged_vtime_ns(task.vtime_ns, task.weight, ran_ns, clock_ns, SLICE_NS);
        task.vtime_ns = placed_vtime_ns(task.vtime_ns, task.weight, 0, clock_ns, SLICE_NS);
    }
}

/// A weight from SCHED_IDLE to nice -20, often one of the ends.
fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(3_u32),
        Just(88_761),
        Just(NICE_0_WEIGHT),
        3_u32..=88_761
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Each task's share differs from the other tasks' by at most a slice of each; no slice is longer than
    /// `LONGEST_NS`.
    #[test]
    fn shares_follow_weights(
        weights in prop::collection::vec(weight(), 1..12),
        begin_ns in prop_oneof![Just(0_u64), Just(u64::MAX - 50 * MS), any::<u64>()],
        slices in prop::collection::vec(1_u64..=LONGEST_NS, 1..2_000),
    ) {
        let all: u64 = weights.iter().map(|weight| u64::from(*weight)).sum();
        let flat: Vec<Weight> = weights.iter().map(|weight| Weight::flat(*weight, [])).collect();
        let mut queue = Queue::new(begin_ns, &flat);
        let ran_ns: u64 = slices.iter().sum();
        slices.iter().for_each(|slice_ns| queue.run(*slice_ns));
        for (task, weight) in queue.tasks.iter().zip(&weights) {
            let share = f64::from(*weight) / all as f64;
            let expected_ns = share * ran_ns as f64;
            // The task that ran last is a slice ahead of the others by its weight, one that has not run yet a slice
            // behind.
            let allowed_ns = (LONGEST_NS + SLICE_NS) as f64 * (1.0 + share * weights.len() as f64);
            let off_ns = (task.ran_ns as f64 - expected_ns).abs();
            prop_assert!(off_ns <= allowed_ns + 1_000.0, "{} of {}: {} ns, not {}", weight, all, task.ran_ns, expected_ns);
        }
    }

    /// The same for two groups: a group's share depends on its weight, not on its number of tasks.
    #[test]
    fn shares_follow_weights_of_groups(
        one in 10_u32..=102_400,
        other in 10_u32..=102_400,
        members in (1_usize..6, 1_usize..6),
    ) {
        let group = |weight, members: usize| {
            let mut group = GroupWeight::new(weight);
            (0..members).for_each(|_| { group.add(NICE_0_WEIGHT.into()); });
            group
        };
        let groups = [(group(one, members.0), members.0), (group(other, members.1), members.1)];
        let flat: Vec<Weight> = groups
            .iter()
            .flat_map(|(group, members)| vec![Weight::flat(NICE_0_WEIGHT, [group]); *members])
            .collect();
        let mut queue = Queue::new(0, &flat);
        let share = f64::from(one) / f64::from(one + other);
        let steps = 20_000_u64;
        (0..steps).for_each(|_| queue.run(4 * MS));
        let of_one: u64 = queue.tasks[..members.0].iter().map(|task| task.ran_ns).sum();
        let off_ns = (of_one as f64 - share * (steps * 4 * MS) as f64).abs();
        prop_assert!(off_ns <= (12 * (LONGEST_NS + SLICE_NS)) as f64, "{of_one} ns, {off_ns} off");
    }

    /// A task that sleeps, however long, gains at most its reach: it cannot keep others from the CPU for longer.
    #[test]
    fn sleep_is_not_saved(
        weights in prop::collection::vec(weight(), 2..6),
        awake_ns in 1_u64..10_000 * MS,
    ) {
        let flat: Vec<Weight> = weights.iter().map(|weight| Weight::flat(*weight, [])).collect();
        let mut queue = Queue::new(0, &flat);
        let sleeper = queue.tasks.remove(0);
        while queue.tasks.iter().map(|task| task.ran_ns).sum::<u64>() < awake_ns {
            queue.run(4 * MS);
        }
        let clock_ns = queue.clock.now_ns;
        let vtime_ns = placed_vtime_ns(sleeper.vtime_ns, sleeper.weight, 0, clock_ns, SLICE_NS);
        queue.tasks.push(Task { vtime_ns, ran_ns: 0, ..sleeper });
        let last = queue.tasks.len() - 1;
        let mut in_a_row_ns = 0;
        while queue.least(None) == Some(last) {
            queue.run(MS / 10);
            in_a_row_ns += MS / 10;
        }
        // Its reach, and as far as the others are ahead of the clock themselves: a slice of the lightest of them.
        let lightest = flat[1..].iter().min().expect("others");
        let ahead_ns = lightest.weighted_ns(LONGEST_NS);
        let cost = sleeper.weight.weighted_ns(MS) as f64 / MS as f64;
        let allowed_ns = (2 * SLICE_NS + 4 * MS) as f64 + ahead_ns as f64 / cost + MS as f64;
        prop_assert!(in_a_row_ns as f64 <= allowed_ns, "{in_a_row_ns} ns, {allowed_ns} allowed");
    }
}
