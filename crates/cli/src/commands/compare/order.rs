// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which order a comparison does what: VMs that keep running while policies come and go, as a list of steps.
//!
//! docs/method.md: ABBA in one boot, what follows a change left out. Two pairs are a block, A B and
//! B A, in one set of VMs; block b runs from seed + b. The ideal is another set of VMs, before the loaded one in even blocks
//! and after it in odd ones.

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    /// One VM with as many vCPUs as CPUs, alone.
    Ideal,
    /// The scenario under the host's own scheduler.
    Stock,
    /// The same once more: stock against stock must include 1.
    StockAgain,
    /// Our scheduler, every directed yield refused.
    RefuseYields,
    /// Our scheduler with the policy of that index.
    Policy(usize),
}

impl Column {
    /// Whether our scheduler schedules then.
    pub fn steers(self) -> bool {
        matches!(self, Column::RefuseYields | Column::Policy(_))
    }
}

/// Which VMs run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vms {
    /// The ideal's.
    Ideal,
    /// The scenario's.
    Loaded,
}

/// Who schedules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Steered {
    /// The host's own scheduler.
    Not,
    /// Ours without a policy.
    RefuseYields,
    /// The policy of that index: ours, or the host's where it is for windows alone.
    Policy(usize),
}

/// BPF programs that are attached later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Programs {
    /// Our scheduler.
    Scheduler,
    /// Those that say for whom stock's vCPUs spin.
    Observer,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What these VMs will meet goes into the kernel, while the host is idle: beside them that takes many times as long.
    Load(Programs),
    /// The VMs are made, from that seed beyond the scenario's, and warmed up.
    Start(Vms, u64),
    /// Another scheduler or policy, from now on.
    Steer(Steered),
    /// So much is left out after a change.
    Discard,
    /// A window of that column, for that pair.
    Measure(Column, usize),
    /// For whom stock's vCPUs spin is looked at, outside of all windows, and the VMs end.
    Explain,
    /// The VMs end.
    Stop,
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Policies {
    /// How many policies there are.
    pub count: usize,
    /// Whether our scheduler is wanted for any of them: then there is `refuse-yields`, too.
    pub steer: bool,
}

impl Policies {
    /// Who schedules while nobody decides.
    fn neutral(self) -> Steered {
        if self.steer {
            Steered::RefuseYields
        } else {
            Steered::Not
        }
    }
}

/// All steps of so many pairs with these policies.
pub fn steps(pairs: usize, policies: Policies) -> Vec<Step> {
    let mut steps = Vec::new();
    for (block, first) in (0..pairs).step_by(2).enumerate() {
        let of_block: Vec<usize> = (first..pairs.min(first + 2)).collect();
        let seed = block as u64;
        let last = first + 2 >= pairs;
        if block % 2 == 0 {
            ideal(&mut steps, seed, &of_block);
        }
        loaded(&mut steps, seed, &of_block, policies, last);
        if block % 2 == 1 {
            ideal(&mut steps, seed, &of_block);
        }
    }
    steps
}

fn ideal(steps: &mut Vec<Step>, seed: u64, pairs: &[usize]) {
    steps.push(Step::Start(Vms::Ideal, seed));
    steps.extend(pairs.iter().map(|&pair| Step::Measure(Column::Ideal, pair)));
    steps.push(Step::Stop);
}

fn loaded(steps: &mut Vec<Step>, seed: u64, pairs: &[usize], policies: Policies, explain: bool) {
    let mut columns = vec![Column::Stock, Column::StockAgain];
    if policies.steer {
        columns.push(Column::RefuseYields);
    }
    columns.extend((0..policies.count).map(Column::Policy));
    if policies.steer {
        steps.push(Step::Load(Programs::Scheduler));
    }
    if explain {
        steps.push(Step::Load(Programs::Observer));
    }
    steps.push(Step::Start(Vms::Loaded, seed));
    let mut now = Steered::Not;
    for &pair in pairs {
        for &column in &columns {
            steer(steps, &mut now, steered(column), policies);
            steps.push(Step::Measure(column, pair));
        }
        columns.reverse();
    }
    // Guests finish their iterations under the host's own scheduler; a convoy under `refuse-yields` would take long.
    steer(steps, &mut now, Steered::Not, policies);
    steps.push(if explain { Step::Explain } else { Step::Stop });
}

/// Changes who schedules, if it is another one. Between two policies nobody decides for a while: what one of them leaves
/// behind, a lock with a convoy or without, must not be the next one's beginning.
fn steer(steps: &mut Vec<Step>, now: &mut Steered, to: Steered, policies: Policies) {
    if let (Steered::Policy(from), Steered::Policy(next)) = (*now, to) {
        if from != next {
            steer(steps, now, policies.neutral(), policies);
        }
    }
    if *now != to {
        *now = to;
        steps.extend([Step::Steer(to), Step::Discard]);
    }
}

/// Who schedules in a column.
fn steered(column: Column) -> Steered {
    match column {
        Column::Ideal | Column::Stock | Column::StockAgain => Steered::Not,
        Column::RefuseYields => Steered::RefuseYields,
        Column::Policy(policy) => Steered::Policy(policy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Policies of our scheduler.
    fn of(count: usize) -> Policies {
        Policies {
            count,
            steer: count > 0,
        }
    }

    /// The steps as a machine would see them: which VMs run, who schedules, since what nothing was left out.
    fn follow(steps: &[Step], policies: Policies, mut measured: impl FnMut(Column, usize, u64)) {
        let (mut vms, mut now, mut fresh) = (None, Steered::Not, false);
        let mut loaded = Vec::new();
        for &step in steps {
            match step {
                Step::Load(programs) => {
                    assert_eq!(vms, None, "beside VMs: {steps:?}");
                    loaded.push(programs);
                }
                Step::Start(which, seed) => {
                    assert_eq!((vms, now), (None, Steered::Not), "{steps:?}");
                    vms = Some((which, seed));
                }
                Step::Steer(to) => {
                    if let Steered::Policy(_) = to {
                        assert_eq!(now, policies.neutral(), "a policy inherits: {steps:?}");
                    }
                    if now == Steered::Not && policies.steer {
                        assert_eq!(loaded[0], Programs::Scheduler, "{steps:?}");
                        loaded.remove(0);
                    }
                    assert!(to != now && vms.is_some_and(|(vms, _)| vms == Vms::Loaded));
                    (now, fresh) = (to, true);
                }
                Step::Discard => fresh = false,
                Step::Measure(column, pair) => {
                    let (which, seed) = vms.expect("VMs run");
                    assert!(!fresh, "{column:?} right after a change: {steps:?}");
                    assert_eq!(which == Vms::Ideal, column == Column::Ideal);
                    assert_eq!(now, steered(column));
                    measured(column, pair, seed);
                }
                Step::Explain | Step::Stop => {
                    if step == Step::Explain {
                        assert_eq!(loaded.pop(), Some(Programs::Observer), "{steps:?}");
                    }
                    assert_eq!((now, fresh), (Steered::Not, false), "{steps:?}");
                    vms = None;
                }
            }
        }
        assert_eq!((vms, loaded), (None, Vec::new()));
    }

    #[test]
    fn every_pair_has_every_column_once_under_its_own_scheduler() {
        let windows = Policies {
            count: 3,
            steer: false,
        };
        let some = [(1, of(0)), (1, of(1)), (2, of(1)), (3, of(2)), (7, of(5))];
        for (pairs, policies) in some.into_iter().chain([(1, windows), (4, windows)]) {
            let mut seen = Vec::new();
            follow(&steps(pairs, policies), policies, |column, pair, seed| {
                assert_eq!(seed, pair as u64 / 2);
                seen.push((pair, column));
            });
            seen.sort();
            let mut expected = vec![Column::Ideal, Column::Stock, Column::StockAgain];
            if policies.steer {
                expected.push(Column::RefuseYields);
            }
            expected.extend((0..policies.count).map(Column::Policy));
            let expected: Vec<_> = (0..pairs)
                .flat_map(|pair| expected.iter().map(move |&column| (pair, column)))
                .collect();
            assert_eq!(seen, expected, "{pairs} pairs, {policies:?}");
        }
    }

    #[test]
    fn the_second_pair_of_a_block_goes_back() {
        let mut order = Vec::new();
        follow(&steps(2, of(1)), of(1), |column, _, _| order.push(column));
        use Column::{Ideal, Policy, RefuseYields, Stock, StockAgain};
        let forth = [Stock, StockAgain, RefuseYields, Policy(0)];
        let back = [Policy(0), RefuseYields, StockAgain, Stock];
        assert_eq!(order, [&[Ideal, Ideal][..], &forth, &back].concat());
    }

    #[test]
    fn vms_keep_running_and_one_attach_serves_a_block() {
        let steps = steps(4, of(2));
        let count = |wanted: fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).count();
        assert_eq!(count(|step| matches!(step, Step::Start(Vms::Loaded, _))), 2);
        assert_eq!(count(|step| matches!(step, Step::Start(Vms::Ideal, _))), 2);
        // Refused, first, refused, second; refused, first, refused, and away: eight changes a block; one attaches, one detaches.
        assert_eq!(count(|step| matches!(step, Step::Steer(_))), 2 * 8);
        assert_eq!(count(|step| matches!(step, Step::Steer(Steered::Not))), 2);
        assert_eq!(count(|step| matches!(step, Step::Explain)), 1);
        // The ideal comes before the loaded VMs in block 0, after them in block 1.
        assert_eq!(steps[0], Step::Start(Vms::Ideal, 0));
        assert_eq!(steps[steps.len() - 4], Step::Start(Vms::Ideal, 1));
    }
}
