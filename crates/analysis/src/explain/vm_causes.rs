// SPDX-License-Identifier: MIT OR Apache-2.0
//! For whom a VM spun, moment by moment.
//!
//! A function call waits for the receiver that takes the interrupt last. A lock in order is handed from one waiter to the
//! next, so the ends of its waits are its history: until the next one was seen without it somebody held it, then the last
//! one to have it for as long as such slices last, and after that it waited for the next one. A lock without order is
//! never free while somebody runs and waits: a vCPU that left its CPU in the kernel, elsewhere than in a spin loop, holds
//! it, unless somebody had the lock while it was away; else the holder runs.

use unspin_events::GuestMode;

use crate::{
    explain::{
        cause::Cause,
        ground_truth::{Slice, call_cause},
    },
    exponential::chance_beyond,
    waits::{
        host_waits::{HostWait, pv_page_at},
        presence::{Left, Place},
        spin_locations::Kind,
        vm_record::{End, VmRecord},
    },
};

/// What is likelier than four in five is said, the rest is unknown.
const SURE: f64 = 0.8;
/// Moments looked at in a piece of spin time without events: one in each quarter of a window, but no more than so many.
const MOMENTS_MAX: u64 = 64;

/// Who is waited for at a lock at some moment.
struct Around {
    /// The next to be served: when, who, its last pause-loop exit, and whether it is off its CPU.
    next: (u64, u16),
    next_seen_ns: u64,
    next_off: bool,
    /// vCPUs off their CPU who may hold the lock, the first to return first.
    holders: Vec<(u64, u16)>,
    /// Of some vCPU it is not known whether it may.
    unknown: bool,
}

impl VmRecord {
    /// SpinTime time of all waits, by vCPU and time; neighbours differ.
    pub fn explain(&self) -> Vec<Slice> {
        let mut slices = Vec::new();
        for wait in self.waits() {
            self.explain_wait(wait, &mut slices);
        }
        slices
    }

    /// SpinTime time of one wait, added to `slices`.
    pub fn explain_wait(&self, wait: &HostWait, slices: &mut Vec<Slice>) {
        let Some(presence) = self.presence.get(&wait.vcpu) else {
            return;
        };
        let cuts = self.cuts(wait);
        for (from_ns, until_ns) in presence.on_between(wait.begin_ns, wait.end_ns) {
            let first = cuts.partition_point(|&cut| cut <= from_ns);
            let last = cuts.partition_point(|&cut| cut < until_ns);
            let mut at_ns = from_ns;
            for &cut in cuts[first..last].iter().chain([&until_ns]) {
                let step_ns = (self.times.window_ns / 4)
                    .max((cut - at_ns) / MOMENTS_MAX)
                    .max(1);
                while at_ns < cut {
                    let next_ns = cut.min(at_ns.saturating_add(step_ns));
                    let (cause, blamed) = self.cause_at(wait, at_ns);
                    add(slices, wait.vcpu, (at_ns, next_ns), cause, blamed);
                    at_ns = next_ns;
                }
            }
        }
    }

    /// Moments within the wait at which the one waited for may change, in order.
    fn cuts(&self, wait: &HostWait) -> Vec<u64> {
        let (begin_ns, end_ns) = (wait.begin_ns, wait.end_ns);
        let others = self.waits.iter().filter(|(vcpu, _)| **vcpu != wait.vcpu);
        let bounds = others.flat_map(|(_, waits)| {
            let first = waits.partition_point(|other| other.end_ns <= begin_ns);
            waits[first..]
                .iter()
                .take_while(move |other| other.begin_ns < end_ns)
                .flat_map(|other| [other.begin_ns, other.end_ns])
        });
        let mut cuts: Vec<u64> = self
            .presence
            .values()
            .flat_map(|presence| presence.cuts(begin_ns, end_ns))
            .chain(bounds.filter(|&ns| ns > begin_ns && ns < end_ns))
            .collect();
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    fn cause_at(&self, wait: &HostWait, at_ns: u64) -> (Cause, Option<u16>) {
        match self.kind_of(wait) {
            Kind::Call => self.call_at(wait, at_ns),
            Kind::Lock => self.lock_at(wait, at_ns),
            Kind::Unknown => (Cause::Unknown, None),
        }
    }

    /// Who takes the interrupt last, of those off their CPU.
    fn call_at(&self, wait: &HostWait, at_ns: u64) -> (Cause, Option<u16>) {
        let Some(sent) = &wait.sent else {
            return (Cause::Unknown, None);
        };
        let receivers = sent.receivers.iter().filter_map(|&receiver| {
            let left = *self.presence.get(&receiver)?.at(at_ns).1.left()?;
            let times = self.guest.get(&receiver)?;
            let answers_ns = times.interruptible_after(sent.first_ns);
            let answers_ns = answers_ns.unwrap_or(u64::MAX);
            (answers_ns > at_ns).then_some((answers_ns, receiver, left))
        });
        let mut late: Vec<(u64, u16, Left)> = receivers.collect();
        late.sort_unstable_by_key(|&(answers_ns, receiver, _)| (answers_ns, receiver));
        let Some(&(last_ns, receiver, left)) = late.last() else {
            return (Cause::Contention, None);
        };
        let cause = call_cause(&left);
        // Who is last by less than an entry takes may as well be the last but one.
        let mut close = late
            .iter()
            .filter(|late| late.0.saturating_add(self.times.entry_ns) > last_ns);
        if close.any(|(_, _, left)| call_cause(left) != cause) {
            return (Cause::Unknown, None);
        }
        (cause, Some(receiver))
    }

    fn lock_at(&self, wait: &HostWait, at_ns: u64) -> (Cause, Option<u16>) {
        let around = self.around(wait, at_ns);
        let spin_loop = &self.loops[&wait.location];
        match spin_loop.in_order {
            Some(true) => {}
            None if around.next_off => return (Cause::Unknown, None),
            _ => return around.held(),
        }
        let last = spin_loop.ends.partition_point(|end| end.ns <= at_ns);
        let holder = last.checked_sub(1).map(|last| spin_loop.ends[last]);
        let holder =
            holder.filter(|end| end.vcpu != wait.vcpu && self.next_begin(end.vcpu, end.ns) > at_ns);
        if let Some((holder, left)) =
            holder.and_then(|end| Some((end, self.holder_left(&end, at_ns)?)))
        {
            let held = self.chance_held(&holder, &around, spin_loop.hold_ns, at_ns);
            if held >= SURE {
                let cause = if left {
                    Cause::HolderPreempted
                } else {
                    Cause::Contention
                };
                return (cause, Some(holder.vcpu));
            }
            if held > 1.0 - SURE {
                return (Cause::Unknown, None);
            }
        }
        if at_ns < around.next_seen_ns {
            return around.held();
        }
        let cause = if around.next_off {
            Cause::NextWaiterPreempted
        } else {
            Cause::Contention
        };
        (cause, Some(around.next.1))
    }

    /// Whether the last one to have the lock is off its CPU; `None`: it cannot have it any more, for it went to user mode
    /// or to sleep.
    fn holder_left(&self, holder: &End, at_ns: u64) -> Option<bool> {
        match self.presence.get(&holder.vcpu)?.at(at_ns).1 {
            Place::On { .. } => Some(false),
            Place::Off(left) if left.runnable && left.mode != Some(GuestMode::User) => Some(true),
            _ => None,
        }
    }

    fn chance_held(&self, holder: &End, around: &Around, hold_ns: f64, at_ns: u64) -> f64 {
        if at_ns < around.next_seen_ns {
            return 1.0;
        }
        let (least, most) = self.hold_bounds(holder, around.next.0, around.next_seen_ns);
        let so_far = self.on_time(holder.vcpu, holder.ns, at_ns);
        chance_beyond(least as f64, most as f64, hold_ns, so_far as f64)
    }

    fn around(&self, wait: &HostWait, at_ns: u64) -> Around {
        let mut around = Around {
            next: (wait.end_ns, wait.vcpu),
            next_seen_ns: wait.seen_ns,
            next_off: false,
            holders: Vec::new(),
            unknown: false,
        };
        for (&vcpu, presence) in self.presence.iter().filter(|(vcpu, _)| **vcpu != wait.vcpu) {
            let (since_ns, place) = presence.at(at_ns);
            let other = self.waiting_at(vcpu, at_ns);
            if let Some(other) = other.filter(|other| other.location == wait.location) {
                if (other.end_ns, vcpu) < around.next {
                    around.next = (other.end_ns, vcpu);
                    around.next_seen_ns = other.seen_ns;
                    around.next_off = !place.is_on();
                }
                continue;
            }
            match place {
                Place::On { .. } => {}
                Place::Lost => around.unknown = true,
                Place::Off(left) => match self.may_hold(vcpu, &left, other, since_ns) {
                    Some(true) => {
                        let until_ns = presence.on_after(at_ns).unwrap_or(u64::MAX);
                        if !self.served_between(wait.location, vcpu, since_ns, until_ns) {
                            around.holders.push((until_ns, vcpu));
                        }
                    }
                    Some(false) => {}
                    None => around.unknown = true,
                },
            }
        }
        around.holders.sort_unstable();
        around
    }

    /// Whether a vCPU that left like that at `left_ns` may hold a spinlock; `None`: where the guest was is not known.
    fn may_hold(
        &self,
        vcpu: u16,
        left: &Left,
        waits: Option<&HostWait>,
        left_ns: u64,
    ) -> Option<bool> {
        if let Some(pv_page) = pv_page_at(self.pv_page.get(&vcpu), left_ns) {
            return Some(pv_page.holding);
        }
        if !left.runnable || waits.is_some() {
            return Some(false);
        }
        left.mode.map(|mode| mode == GuestMode::Kernel)
    }

    /// Whether somebody else who waited there had the lock between the two moments, for sure.
    fn served_between(
        &self,
        location: Option<u64>,
        but: u16,
        since_ns: u64,
        until_ns: u64,
    ) -> bool {
        let ends = &self.loops[&location].ends;
        let first = ends.partition_point(|end| end.ns < since_ns);
        ends[first..]
            .iter()
            .take_while(|end| end.ns < until_ns)
            .any(|end| {
                end.vcpu != but
                    && end.seen_over
                    && end.not_before_ns >= since_ns
                    && end.not_after_ns <= until_ns
            })
    }
}

impl Around {
    /// Somebody holds the lock: one who is off its CPU, if there is such a one.
    fn held(&self) -> (Cause, Option<u16>) {
        match self.holders.first() {
            Some(&(_, vcpu)) => (Cause::HolderPreempted, Some(vcpu)),
            None if self.unknown => (Cause::Unknown, None),
            None => (Cause::Contention, None),
        }
    }
}

/// Adds a piece, to the last one where they are alike.
fn add(
    slices: &mut Vec<Slice>,
    vcpu: u16,
    (begin_ns, end_ns): (u64, u64),
    cause: Cause,
    blamed: Option<u16>,
) {
    let alike = (vcpu, begin_ns, cause, blamed);
    match slices.last_mut() {
        Some(last) if (last.vcpu, last.end_ns, last.cause, last.blamed) == alike => {
            last.end_ns = end_ns;
        }
        _ => slices.push(Slice {
            vcpu,
            begin_ns,
            end_ns,
            cause,
            blamed,
        }),
    }
}
