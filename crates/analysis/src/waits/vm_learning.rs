// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a VM's spin loops are, learnt from hindsight: locks or function calls, in order or not, held for how long.

use std::collections::BTreeMap;

use crate::{
    exponential::mean_between,
    waits::{
        host_waits::{HostWait, resumption},
        spin_locations::{Kind, Locations},
        vm_record::{End, SpinLoop, VmRecord},
    },
};

/// A loop whose waits follow an IPI of their own so often (of 10) waits for answers; one where no more than half do waits
/// for something else, and between the two nothing is said. VEE'21's function calls always send first.
const CALL_OF_TEN: u64 = 9;
/// A lock serves in order unless more than one in so many is served before one who came earlier. Where the order is that
/// of the queue only waits that were rebuilt wrongly can look overtaken; without an order, whoever runs overtakes whoever
/// does not.
const OVERTAKEN_ONE_IN: u64 = 10;
/// Fewer occasions tell nothing: test-and-test-and-set locks overtook in one to two of four (measured over the ground truth loads);
/// where one of four is overtaken, so many pass without it once in a thousand times.
const ORDER_SEEN_MIN: u64 = 24;
/// Rounds until the mean stands still.
const ROUNDS: u32 = 50;

impl VmRecord {
    pub(crate) fn learn_kinds(
        &mut self,
        waits: &[HostWait],
        locations: &Locations,
        ipis_seen: bool,
    ) {
        let mut counts: BTreeMap<Option<u64>, (u64, u64)> = BTreeMap::new();
        for wait in waits {
            let count = counts.entry(wait.location).or_default();
            count.0 += 1;
            count.1 += u64::from(wait.sent.as_ref().is_some_and(|sent| sent.close));
        }
        for (location, (all, sent)) in counts {
            let by_ipis = if !ipis_seen {
                Kind::Unknown
            } else if sent * 10 >= all * CALL_OF_TEN {
                Kind::Call
            } else if sent * 2 <= all {
                Kind::Lock
            } else {
                Kind::Unknown
            };
            let spin_loop = SpinLoop {
                kind: locations.kind_by_name(location).unwrap_or(by_ipis),
                in_order: None,
                hold_ns: 0.0,
                window_ns: locations.window(location).typical_ns,
                waits: 0,
                exits: 0,
                ends: Vec::new(),
            };
            self.loops.insert(location, spin_loop);
        }
    }

    /// Where a wait began and ended, by what it waited for and what came between.
    pub(crate) fn refine(&self, wait: &mut HostWait) {
        let call = self.kind_of(wait) == Kind::Call;
        if let Some(sent) = wait.sent.as_ref().filter(|_| call) {
            // The sender leaves the guest before the IPI is seen: half of what a pause-loop exit takes.
            wait.begin_ns = sent.first_ns.saturating_sub(self.times.handling_ns / 2);
        }
        let entered_ns = wait.end_not_before_ns;
        if wait.end_ns == entered_ns {
            return;
        }
        let mut delay_ns = self.times.delays_ns[wait.resumption];
        for &arrival_ns in &wait.arrivals_ns {
            if (entered_ns..entered_ns + delay_ns).contains(&arrival_ns) {
                delay_ns += self.times.delays_ns[1];
            }
        }
        wait.end_not_after_ns += delay_ns;
        match wait.sent.as_ref().filter(|_| call) {
            Some(sent) => {
                let answers = sent.receivers.iter().filter_map(|receiver| {
                    self.guest.get(receiver)?.interruptible_after(sent.first_ns)
                });
                let answered_ns = answers.max().unwrap_or(0);
                let noticed_ns = (entered_ns + delay_ns).max(answered_ns);
                wait.end_ns = noticed_ns.min(wait.end_not_after_ns);
            }
            None => wait.end_ns += delay_ns,
        }
    }

    /// Whether somebody who came later was served while another one, off its CPU, went on waiting.
    pub(crate) fn learn_order(&mut self) {
        let locations: Vec<Option<u64>> = self.loops.keys().copied().collect();
        for location in locations {
            let (mut overtook, mut queued) = (0, 0);
            let waits = self.waits().filter(|wait| wait.location == location);
            for wait in waits {
                let (before, behind) = self.served_meanwhile(wait);
                overtook += before;
                queued += behind;
            }
            if let Some(spin_loop) = self.loops.get_mut(&location) {
                let in_order = overtook * OVERTAKEN_ONE_IN <= overtook + queued;
                spin_loop.in_order = (overtook + queued >= ORDER_SEEN_MIN).then_some(in_order);
            }
        }
    }

    /// Of those who came while `wait`'s vCPU was off its CPU: how many were served before it was back, and how many not.
    fn served_meanwhile(&self, wait: &HostWait) -> (u64, u64) {
        let (mut overtook, mut queued) = (0, 0);
        let presence = &self.presence[&wait.vcpu];
        let first = presence.index_at(wait.begin_ns).unwrap_or(0);
        let absences = presence.changes()[first..]
            .windows(2)
            .map(|pair| (pair[0], pair[1].0))
            .take_while(|(_, back_ns)| *back_ns <= wait.end_not_before_ns)
            .filter(|((left_ns, place), _)| !place.is_on() && *left_ns >= wait.begin_ns);
        for ((left_ns, _), back_ns) in absences {
            for (_, waits) in self.waits.iter().filter(|(vcpu, _)| **vcpu != wait.vcpu) {
                let first = waits.partition_point(|other| other.begin_ns <= left_ns);
                let came = waits[first..]
                    .iter()
                    .take_while(|other| other.begin_ns < back_ns);
                for other in came.filter(|other| other.location == wait.location) {
                    let served = other.end_not_after_ns < back_ns;
                    overtook += u64::from(served);
                    queued += u64::from(!served);
                }
            }
        }
        (overtook, queued)
    }

    /// In a lock that serves in order nobody is overtaken: one who seems to be had it in between, and asked again so soon
    /// that both waits look like one. Cuts such waits in two.
    pub(crate) fn split_overtaken(&mut self, locations: &Locations) {
        let loops = self.loops.iter();
        let ordered: Vec<Option<u64>> = loops
            .filter(|(_, spin_loop)| {
                spin_loop.in_order == Some(true) && spin_loop.kind == Kind::Lock
            })
            .map(|(location, _)| *location)
            .collect();
        for location in ordered {
            let over = self
                .waits()
                .filter(|wait| wait.location == location && wait.seen_over);
            let mut served: Vec<(u64, u64, u16)> = over
                .map(|wait| (wait.end_not_after_ns, wait.begin_ns, wait.vcpu))
                .collect();
            served.sort_unstable();
            let window = locations.window(location);
            for waits in std::mem::take(&mut self.waits).into_values() {
                self.split_all(waits, location, &served, window.longest_ns());
            }
        }
    }

    /// Puts the waits of one vCPU back, cut where they were overtaken.
    fn split_all(
        &mut self,
        mut waits: Vec<HostWait>,
        location: Option<u64>,
        served: &[(u64, u64, u16)],
        longest_ns: u64,
    ) {
        let mut index = 0;
        while index < waits.len() {
            let wait = &mut waits[index];
            index += 1;
            if wait.location != location || wait.has_pv_page.is_some() {
                continue; // hinted: told apart already
            }
            let first = served.partition_point(|&(end_ns, _, _)| end_ns <= wait.begin_ns);
            let overtaker = served[first..]
                .iter()
                .take_while(|(end_ns, _, _)| *end_ns < wait.end_not_before_ns)
                .find(|&&(_, begin_ns, other)| {
                    other != wait.vcpu && begin_ns > wait.begin_ns + longest_ns
                });
            if let Some(&(overtaken_ns, _, _)) = overtaker {
                if let Some(second) = self.split(wait, overtaken_ns) {
                    waits.insert(index, second);
                }
            }
        }
        if let Some(vcpu) = waits.first().map(|wait| wait.vcpu) {
            self.waits.insert(vcpu, waits);
        }
    }

    /// Cuts the wait in its longest stay in the guest before it was overtaken: there it was served, asked again and spun for
    /// a window, which takes longer than a window. The second part; `None`: there was no such stay.
    fn split(&self, wait: &mut HostWait, overtaken_ns: u64) -> Option<HostWait> {
        let times = self.guest.get(&wait.vcpu)?.times();
        let window_ns = self.loops.get(&wait.location)?.window_ns;
        let last = times.partition_point(|&(entered_ns, _)| entered_ns < overtaken_ns);
        let place = (1..last)
            .rev()
            .take_while(|&at| times[at].0 > wait.begin_ns)
            .max_by_key(|&at| times[at].1 - times[at].0)?;
        let (entered_ns, left_ns) = times[place];
        if left_ns - entered_ns <= window_ns * 3 / 2 || left_ns >= wait.end_ns {
            return None;
        }
        let second = HostWait {
            begin_ns: left_ns.saturating_sub(window_ns).max(entered_ns),
            sent: None,
            ..wait.clone()
        };
        wait.end_ns = entered_ns;
        wait.end_not_before_ns = entered_ns;
        wait.end_not_after_ns = second.begin_ns;
        wait.seen_ns = times[place - 1].1;
        wait.seen_over = true;
        Some(second)
    }

    /// The mean time that locks are held. Each slice's end is known to lie between two moments only; the mean that makes
    /// all of them likeliest, were slices exponential, comes from expectation and maximisation in slices (Dempster, Laird
    /// and Rubin 1977).
    pub(crate) fn learn_holds(&mut self) {
        let mut means = Vec::new();
        for (location, spin_loop) in &self.loops {
            let pairs = spin_loop
                .ends
                .windows(2)
                .filter(|pair| pair[1].begin_ns < pair[0].ns && pair[0].vcpu != pair[1].vcpu);
            let slices: Vec<(f64, f64)> = pairs
                .map(|pair| {
                    let (least, most) = self.hold_bounds(&pair[0], pair[1].ns, pair[1].seen_ns);
                    (least as f64, most as f64)
                })
                .collect();
            if slices.is_empty() {
                continue;
            }
            let mean_of = |of: &dyn Fn(f64, f64) -> f64| {
                slices
                    .iter()
                    .map(|&(least, most)| of(least, most))
                    .sum::<f64>()
                    / slices.len() as f64
            };
            let mut mean = mean_of(&|least, most| (least + most) / 2.0);
            for _ in 0..ROUNDS {
                if mean > 0.0 {
                    mean = mean_of(&|least, most| mean_between(least, most, mean));
                }
            }
            means.push((*location, mean));
        }
        for (location, mean) in means {
            if let Some(spin_loop) = self.loops.get_mut(&location) {
                spin_loop.hold_ns = mean;
            }
        }
    }

    /// Who comes back as the next one to a lock in order that is free by then has it at once, not after a rest of spinning.
    pub(crate) fn end_at_once(&mut self) {
        let mut waits = std::mem::take(&mut self.waits);
        for wait in waits.values_mut().flatten() {
            let Some(spin_loop) = self.loops.get(&wait.location) else {
                continue;
            };
            let returned = wait.resumption >= resumption(true, false);
            if !returned
                || spin_loop.in_order != Some(true)
                || wait.end_ns <= wait.end_not_before_ns
            {
                continue;
            }
            let ends = &spin_loop.ends;
            let before = ends.partition_point(|end| end.ns < wait.end_ns);
            let last = ends[..before]
                .iter()
                .rev()
                .find(|end| end.vcpu != wait.vcpu);
            let free_ns = last.map_or(0, |end| end.ns + spin_loop.hold_ns as u64);
            if free_ns <= wait.end_not_before_ns {
                let delay_ns = self.times.delays_ns[wait.resumption];
                wait.end_ns = wait.end_ns.min(wait.end_not_before_ns + delay_ns);
            }
        }
        self.waits = waits;
    }

    /// How long at least and at most the holder had the lock, in its CPU time: the next one had it at `next_ns`, and was
    /// last seen without it at `seen_ns`.
    pub(crate) fn hold_bounds(&self, holder: &End, next_ns: u64, seen_ns: u64) -> (u64, u64) {
        let until_ns = self.next_begin(holder.vcpu, holder.ns).min(next_ns);
        let most = self.on_time(holder.vcpu, holder.ns, until_ns);
        let least = self.on_time(holder.vcpu, holder.ns, seen_ns.max(holder.ns));
        (least.min(most), most)
    }
}
