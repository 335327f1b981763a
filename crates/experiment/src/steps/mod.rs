// SPDX-License-Identifier: MIT OR Apache-2.0
//! In which order columns are measured: work that goes on while policies come and go, as a list of steps.
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
    /// Another sched_ext scheduler, the rival of that index.
    Rival(usize),
    /// The lock at a point of that number, under the host's own scheduler; what is compared is the lock.
    Lock(usize),
}

impl Column {
    /// Whether another scheduler than the host's own may schedule then: ours or a rival.
    pub fn steers(self) -> bool {
        matches!(
            self,
            Column::RefuseYields | Column::Policy(_) | Column::Rival(_)
        )
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
    /// The rival of that index.
    Rival(usize),
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

/// Those of the policies that leave the host's own scheduler in place, a bit for each. One beyond the 64th counts as steering.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unsteered(u64);

impl Unsteered {
    /// All policies, however many.
    pub const ALL: Unsteered = Unsteered(u64::MAX);

    /// Of policies in order, each of which leaves the host's scheduler in place or does not.
    pub fn of(unsteered: impl IntoIterator<Item = bool>) -> Unsteered {
        let bit = |(at, unsteered): (usize, bool)| match unsteered {
            true => 1u64.checked_shl(at as u32).unwrap_or(0),
            false => 0,
        };
        Unsteered(unsteered.into_iter().enumerate().map(bit).sum())
    }

    fn contains(self, policy: usize) -> bool {
        self.0 == u64::MAX || self.0.checked_shr(policy as u32).unwrap_or(0) & 1 == 1
    }
}

/// Which columns there are beside stock.
#[derive(Clone, Copy, Debug)]
pub struct Columns {
    /// Whether there is an ideal.
    pub ideal: bool,
    /// Whether stock is measured twice; where nothing is left to chance that says nothing.
    pub null: bool,
    /// How many policies there are.
    pub policies: usize,
    /// Those of them that leave the host's scheduler in place.
    pub unsteered: Unsteered,
    /// How many rivals there are.
    pub rivals: usize,
    /// Whether our scheduler is wanted for any of them: then there is `refuse-yields`, too.
    pub steer: bool,
}

impl Columns {
    /// Who schedules while nobody decides, before that policy or after it.
    fn neutral(self, policy: usize) -> Steered {
        match self.unsteered.contains(policy) {
            true => Steered::Not,
            false => Steered::RefuseYields,
        }
    }
}

/// All steps of so many pairs with these columns.
pub fn steps(pairs: usize, columns: Columns) -> Vec<Step> {
    let mut steps = Vec::new();
    for (block, first) in (0..pairs).step_by(2).enumerate() {
        let of_block: Vec<usize> = (first..pairs.min(first + 2)).collect();
        let seed = block as u64;
        let last = first + 2 >= pairs;
        if columns.ideal && block % 2 == 0 {
            ideal(&mut steps, seed, &of_block);
        }
        loaded(&mut steps, seed, &of_block, columns, last);
        if columns.ideal && block % 2 == 1 {
            ideal(&mut steps, seed, &of_block);
        }
    }
    steps
}

/// All steps where locks are compared, of which number `lock` is measured at the point `points[lock]`: a point's locks one
/// after the other, every second repetition backwards, so that what the machine does meanwhile meets them alike.
#[cfg(feature = "hosts")]
pub fn locks(points: &[usize], repetitions: usize) -> Vec<Step> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|&lock| points[lock]);
    let mut steps = Vec::new();
    for repetition in 0..repetitions {
        let measure = |&lock: &usize| Step::Measure(Column::Lock(lock), repetition);
        steps.extend(order.iter().map(measure));
        order.reverse();
    }
    steps
}

fn ideal(steps: &mut Vec<Step>, seed: u64, pairs: &[usize]) {
    steps.push(Step::Start(Vms::Ideal, seed));
    steps.extend(pairs.iter().map(|&pair| Step::Measure(Column::Ideal, pair)));
    steps.push(Step::Stop);
}

fn loaded(steps: &mut Vec<Step>, seed: u64, pairs: &[usize], of: Columns, explain: bool) {
    let mut columns = vec![Column::Stock];
    columns.extend(of.null.then_some(Column::StockAgain));
    // Before ours: a block has one attachment of ours then, its columns next to one another in both pairs.
    let (hosts, ours): (Vec<usize>, Vec<usize>) =
        (0..of.policies).partition(|policy| of.unsteered.contains(*policy));
    columns.extend((0..of.rivals).map(Column::Rival));
    columns.extend(hosts.into_iter().map(Column::Policy));
    columns.extend(of.steer.then_some(Column::RefuseYields));
    columns.extend(ours.into_iter().map(Column::Policy));
    if of.steer {
        steps.push(Step::Load(Programs::Scheduler));
    }
    if explain {
        steps.push(Step::Load(Programs::Observer));
    }
    steps.push(Step::Start(Vms::Loaded, seed));
    let mut now = Steered::Not;
    for &pair in pairs {
        for &column in &columns {
            steer(steps, &mut now, steered(column), of);
            steps.push(Step::Measure(column, pair));
        }
        columns.reverse();
    }
    // Guests finish their iterations under the host's own scheduler; a convoy under `refuse-yields` would take long.
    steer(steps, &mut now, Steered::Not, of);
    steps.push(if explain { Step::Explain } else { Step::Stop });
}

/// Changes who schedules, if it is another one. Between two policies nobody decides for a while: what one of them leaves
/// behind, a lock with a convoy or without, must not be the next one's beginning. A rival begins and ends with the host's own
/// scheduler: the kernel has room for one sched_ext scheduler.
fn steer(steps: &mut Vec<Step>, now: &mut Steered, to: Steered, of: Columns) {
    let between = match (*now, to) {
        (from, next) if from == next => None,
        (Steered::Policy(from), Steered::Policy(to)) => match of.neutral(from) {
            Steered::Not => Some(Steered::Not),
            _ => Some(of.neutral(to)),
        },
        (Steered::Policy(one), Steered::RefuseYields)
        | (Steered::RefuseYields, Steered::Policy(one)) => match of.neutral(one) {
            Steered::Not => Some(Steered::Not),
            _ => None,
        },
        (Steered::Not, _) | (_, Steered::Not) => None,
        (Steered::Rival(_), _) | (_, Steered::Rival(_)) => Some(Steered::Not),
        _ => None,
    };
    if let Some(between) = between {
        steer(steps, now, between, of);
    }
    if *now != to {
        *now = to;
        steps.extend([Step::Steer(to), Step::Discard]);
    }
}

/// Who schedules in a column.
fn steered(column: Column) -> Steered {
    match column {
        Column::Ideal | Column::Stock | Column::StockAgain | Column::Lock(_) => Steered::Not,
        Column::RefuseYields => Steered::RefuseYields,
        Column::Policy(policy) => Steered::Policy(policy),
        Column::Rival(rival) => Steered::Rival(rival),
    }
}

#[cfg(test)]
mod tests;
