// SPDX-License-Identifier: MIT OR Apache-2.0
//! Ground truth of spin time: the guest's log of waits joined with the raw switch trace.
//!
//! A wait spins while its vCPU is on a CPU between asking and having. At each such moment the log says who held the
//! lock or who got it next, or which receivers had not answered, and the trace says whether that one was on a CPU.

use std::collections::BTreeMap;

use unspin_events::{GuestMode, GuestWait, TscClock, WaitKind};

use crate::{
    explain::cause::{Cause, CauseTimes},
    waits::presence::{Left, Place, Presence},
};

/// Rules of the guest's lock that the log does not show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Ticket locks: who got it next was the only one who could.
    Fifo,
    /// Preemptable ticket locks: who came first goes first, unless the others' patience ends.
    FifoUntilTimeout,
    /// Whoever runs may take it: a free lock is not waited for by one who runs.
    None,
}

impl Order {
    /// That of a lock, by the scenario's word.
    pub fn of_lock(name: &str) -> Order {
        match name {
            "ticket" => Order::Fifo,
            "preemptable_ticket" => Order::FifoUntilTimeout,
            _ => Order::None,
        }
    }
}

/// Some spin time of one vCPU with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Who spun.
    pub vcpu: u16,
    /// From.
    pub begin_ns: u64,
    /// Until.
    pub end_ns: u64,
    /// Why.
    pub cause: Cause,
    /// The vCPU that was waited for, where there is one.
    pub blamed: Option<u16>,
}

/// One wait of the guest's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrueWait {
    /// Who waited.
    pub vcpu: u16,
    /// For what.
    pub kind: WaitKind,
    /// Asked.
    pub begin_ns: u64,
    /// Had it.
    pub end_ns: u64,
    /// Time on a CPU between the two, by cause.
    pub spin_time: CauseTimes,
    /// The same in order of time; neighbours differ.
    pub slices: Vec<Slice>,
}

impl TrueWait {
    /// What covers most of the spin time; `None` when nobody spun.
    pub fn cause(&self) -> Option<Cause> {
        self.spin_time.majority()
    }
}

/// One acquisition, in host time.
#[derive(Clone, Copy)]
struct Spin {
    vcpu: u16,
    asked_ns: u64,
    got_ns: u64,
    released_ns: u64,
}

/// A receiver's answer to a sender's shootdown, in host time. Ordered by sender, receiver, time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Answer {
    sender: u16,
    receiver: u16,
    time_ns: u64,
}

/// Everything that the causes of one VM's waits follow from.
struct GroundTruth<'a> {
    presence: &'a BTreeMap<u16, Presence>,
    spins: BTreeMap<u16, Vec<Spin>>,
    answers: Vec<Answer>,
    order: Order,
}

/// The causes of all waits in the log of one VM. The log must hold every acquisition, or the holder is not known.
pub fn ground_truth(
    waits: &[GuestWait],
    clock: &TscClock,
    order: Order,
    presence: &BTreeMap<u16, Presence>,
) -> Vec<TrueWait> {
    let ground_truth = GroundTruth {
        presence,
        spins: spins(waits, clock),
        answers: answers(waits, clock),
        order,
    };
    let mut all: Vec<TrueWait> = waits
        .iter()
        .filter(|wait| wait.kind != WaitKind::Answer && wait.spins > 0)
        .map(|wait| ground_truth.wait(wait, clock))
        .collect();
    all.sort_by_key(|wait| (wait.begin_ns, wait.vcpu));
    all
}

/// The acquisitions of each lock in order. Who had it released it at the latest when the next one had it: the guest may be
/// interrupted between letting go and writing that down.
fn spins(waits: &[GuestWait], clock: &TscClock) -> BTreeMap<u16, Vec<Spin>> {
    let mut locks: BTreeMap<u16, Vec<Spin>> = BTreeMap::new();
    for wait in waits.iter().filter(|wait| wait.kind == WaitKind::Lock) {
        locks.entry(wait.lock).or_default().push(Spin {
            vcpu: wait.vcpu,
            asked_ns: clock.ns(wait.begin_tsc),
            got_ns: clock.ns(wait.end_tsc),
            released_ns: wait.released_tsc.map_or(u64::MAX, |tsc| clock.ns(tsc)),
        });
    }
    for spins in locks.values_mut() {
        spins.sort_by_key(|spin| (spin.got_ns, spin.vcpu));
        for index in 1..spins.len() {
            let next_ns = spins[index].got_ns;
            let spin = &mut spins[index - 1];
            spin.released_ns = spin.released_ns.min(next_ns);
        }
    }
    locks
}

/// Who answered whose shootdown, and when.
fn answers(waits: &[GuestWait], clock: &TscClock) -> Vec<Answer> {
    let mut answers: Vec<Answer> = waits
        .iter()
        .filter(|wait| wait.kind == WaitKind::Answer && wait.targets != 0)
        .map(|wait| Answer {
            sender: wait.targets.trailing_zeros() as u16,
            receiver: wait.vcpu,
            time_ns: clock.ns(wait.begin_tsc),
        })
        .collect();
    answers.sort_unstable();
    answers
}

impl GroundTruth<'_> {
    fn wait(&self, wait: &GuestWait, clock: &TscClock) -> TrueWait {
        let (begin_ns, end_ns) = (clock.ns(wait.begin_tsc), clock.ns(wait.end_tsc));
        let mut ground_truth = TrueWait {
            vcpu: wait.vcpu,
            kind: wait.kind,
            begin_ns,
            end_ns,
            spin_time: CauseTimes::default(),
            slices: Vec::new(),
        };
        let Some(own) = self.presence.get(&wait.vcpu) else {
            return ground_truth;
        };
        let mut cuts: Vec<u64> = self
            .presence
            .values()
            .flat_map(|presence| presence.cuts(begin_ns, end_ns))
            .chain(self.changes_of(wait, begin_ns, end_ns))
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        for (from_ns, until_ns) in own.on_between(begin_ns, end_ns) {
            let first = cuts.partition_point(|&cut| cut <= from_ns);
            let last = cuts.partition_point(|&cut| cut < until_ns);
            let mut at_ns = from_ns;
            for &cut in cuts[first..last].iter().chain([&until_ns]) {
                let (cause, blamed) = self.cause_at(wait, begin_ns, at_ns);
                ground_truth.add(at_ns, cut, cause, blamed);
                at_ns = cut;
            }
        }
        ground_truth
    }

    /// Moments at which the one waited for may change, other than by switches.
    fn changes_of(&self, wait: &GuestWait, begin_ns: u64, end_ns: u64) -> Vec<u64> {
        match wait.kind {
            WaitKind::Lock => {
                let spins = self.spins.get(&wait.lock).map_or(&[][..], |spins| spins);
                let first = spins.partition_point(|spin| spin.released_ns <= begin_ns);
                spins[first..]
                    .iter()
                    .take_while(|spin| spin.got_ns < end_ns)
                    .flat_map(|spin| [spin.got_ns, spin.released_ns])
                    .filter(|&ns| ns > begin_ns && ns < end_ns)
                    .collect()
            }
            _ => receivers(wait.targets)
                .filter_map(|receiver| self.answered_ns(wait.vcpu, receiver, begin_ns))
                .filter(|&ns| ns > begin_ns && ns < end_ns)
                .collect(),
        }
    }

    fn cause_at(&self, wait: &GuestWait, begin_ns: u64, at_ns: u64) -> (Cause, Option<u16>) {
        match wait.kind {
            WaitKind::Lock => self.lock_cause(wait, at_ns),
            _ => self.call_cause(wait, begin_ns, at_ns),
        }
    }

    fn lock_cause(&self, wait: &GuestWait, at_ns: u64) -> (Cause, Option<u16>) {
        let spins = self.spins.get(&wait.lock).map_or(&[][..], |spins| spins);
        let next = spins.partition_point(|spin| spin.got_ns <= at_ns);
        let holder = next.checked_sub(1).map(|last| spins[last]);
        if let Some(holder) = holder.filter(|spin| at_ns < spin.released_ns) {
            return match self.left(holder.vcpu, at_ns) {
                Some(_) => (Cause::HolderPreempted, Some(holder.vcpu)),
                None => (Cause::Contention, Some(holder.vcpu)),
            };
        }
        let waiting = |spin: &&Spin| spin.asked_ns <= at_ns;
        let awaited = match self.order {
            // The first to ask of those who have not had it yet; later ones in the list asked later or at most a few at once.
            Order::FifoUntilTimeout => spins[next..]
                .iter()
                .take(2 * self.presence.len())
                .filter(waiting)
                .min_by_key(|spin| spin.asked_ns),
            _ => spins.get(next).filter(waiting),
        };
        let Some(awaited) = awaited else {
            return (Cause::Contention, None);
        };
        match (self.left(awaited.vcpu, at_ns), self.order) {
            (None, _) => (Cause::Contention, Some(awaited.vcpu)),
            // One who runs takes a free lock: it had been taken already by who has not written that down yet.
            (Some(_), Order::None) => (Cause::HolderPreempted, Some(awaited.vcpu)),
            (Some(_), _) => (Cause::NextWaiterPreempted, Some(awaited.vcpu)),
        }
    }

    /// Of the receivers that have not answered, the one that will be the last to do so.
    fn call_cause(&self, wait: &GuestWait, begin_ns: u64, at_ns: u64) -> (Cause, Option<u16>) {
        let late = receivers(wait.targets)
            .map(|receiver| {
                let answered_ns = self.answered_ns(wait.vcpu, receiver, begin_ns);
                (answered_ns.unwrap_or(u64::MAX), receiver)
            })
            .filter(|&(answered_ns, _)| answered_ns > at_ns);
        let off = late.filter_map(|(answered_ns, receiver)| {
            let left = self.left(receiver, at_ns)?;
            Some((answered_ns, receiver, left))
        });
        match off.max_by_key(|&(answered_ns, receiver, _)| (answered_ns, receiver)) {
            None => (Cause::Contention, None),
            Some((_, receiver, left)) => (call_cause(&left), Some(receiver)),
        }
    }

    fn answered_ns(&self, sender: u16, receiver: u16, begin_ns: u64) -> Option<u64> {
        let from = Answer {
            sender,
            receiver,
            time_ns: begin_ns,
        };
        let first = self.answers.partition_point(|answer| *answer < from);
        self.answers
            .get(first)
            .filter(|answer| (answer.sender, answer.receiver) == (sender, receiver))
            .map(|answer| answer.time_ns)
    }

    fn left(&self, vcpu: u16, at_ns: u64) -> Option<Left> {
        match self.presence.get(&vcpu)?.at(at_ns).1 {
            Place::Off(left) => Some(left),
            _ => None,
        }
    }
}

impl TrueWait {
    fn add(&mut self, begin_ns: u64, end_ns: u64, cause: Cause, blamed: Option<u16>) {
        self.spin_time.add(cause, end_ns - begin_ns);
        match self.slices.last_mut() {
            Some(last) if (last.end_ns, last.cause, last.blamed) == (begin_ns, cause, blamed) => {
                last.end_ns = end_ns;
            }
            _ => self.slices.push(Slice {
                vcpu: self.vcpu,
                begin_ns,
                end_ns,
                cause,
                blamed,
            }),
        }
    }
}

/// The cause when a function call's receiver left its CPU like that.
pub fn call_cause(left: &Left) -> Cause {
    match (left.runnable, left.mode) {
        (false, _) => Cause::CallHalted,
        (true, Some(GuestMode::User)) => Cause::CallUser,
        (true, Some(GuestMode::Kernel)) => Cause::CallKernel,
        (true, None) => Cause::Unknown,
    }
}

/// The numbers of the bits that are set.
fn receivers(targets: u64) -> impl Iterator<Item = u16> {
    (0..64).filter(move |vcpu| targets >> vcpu & 1 == 1)
}
