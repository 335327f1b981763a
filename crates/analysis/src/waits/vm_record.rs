// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a host knows of one VM over some time: where its vCPUs were, their waits, and what its spin loops are.

use std::collections::BTreeMap;

use unspin_events::{Event, What};

use crate::waits::{
    host_waits::{Follower, HostWait, RESUMPTIONS, pv_page_at},
    presence::{self, GuestTimes, Presence},
    spin_locations::{Kind, Locations, Naming},
};

/// One VM's events, taken apart.
#[derive(Debug, Default)]
pub struct VmRecord {
    pub(crate) presence: BTreeMap<u16, Presence>,
    pub(crate) guest: BTreeMap<u16, GuestTimes>,
    pub(crate) waits: BTreeMap<u16, Vec<HostWait>>,
    pub(crate) loops: BTreeMap<Option<u64>, SpinLoop>,
    pub(crate) times: Times,
    /// The VM's pv pages, by vCPU, in order of time.
    pub(crate) pv_page: BTreeMap<u16, Vec<(u64, [u64; 3])>>,
}

/// What a spin loop is, learnt from its waits.
#[derive(Clone, Debug, PartialEq)]
pub struct SpinLoop {
    /// What is waited for there.
    pub kind: Kind,
    /// Who comes first is served first; `None`: too little was seen to tell.
    pub in_order: Option<bool>,
    /// Mean time that the lock is held, in the holder's CPU time.
    pub hold_ns: f64,
    /// What a pause-loop window takes there.
    pub window_ns: u64,
    /// Waits.
    pub waits: u64,
    /// Pause-loop exits.
    pub exits: u64,
    /// The ends of its waits, by time.
    pub(crate) ends: Vec<End>,
}

impl SpinLoop {
    /// Forgets its history; what was learnt from it stays.
    pub(crate) fn forget_ends(&mut self) {
        self.ends = Vec::new();
    }
}

/// The end of a wait: see [`HostWait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub ns: u64,
    pub vcpu: u16,
    pub not_before_ns: u64,
    pub not_after_ns: u64,
    pub begin_ns: u64,
    pub seen_ns: u64,
    pub seen_over: bool,
}

/// How long things take on this host, by the VM's own events. 0 where there was none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// From a switch in to the guest: of the entries after pause-loop exits the shortest but for one in ten, since these
    /// also finish kvm_vcpu_on_spin().
    pub entry_ns: u64,
    /// A pause-loop exit without a switch, median.
    pub handling_ns: u64,
    /// What came between entry and spinning in waits that went on, mean, by [`crate::waits::host_waits::resumption`].
    pub delays_ns: [u64; RESUMPTIONS],
    /// The longest of the loops' windows: nothing finer is seen.
    pub window_ns: u64,
}

impl VmRecord {
    /// From all events of VM `vm` in `events`, which are in order of time. `ipis_seen`: whether IPIs are in them.
    pub fn new(vm: u32, events: &[Event], naming: &Naming, ipis_seen: bool) -> VmRecord {
        let own = || events.iter().filter(move |event| event.vm == Some(vm));
        let mut locations = Locations::new(naming.clone());
        own().for_each(|event| locations.learn(event));
        locations.settle();
        let pv_page = pv_pages_of(own());
        let (mut followers, mut waits) = followed(own(), &locations, &pv_page);
        let mut record = VmRecord {
            presence: presence::of_vm(vm, own()),
            times: times(&followers, &locations, &waits),
            pv_page,
            ..VmRecord::default()
        };
        followers
            .values_mut()
            .for_each(|follower| follower.cut(&mut waits));
        record.follow_guests(own());
        record.learn_kinds(&waits, &locations, ipis_seen);
        for wait in &mut waits {
            record.refine(wait);
        }
        for wait in waits {
            record.waits.entry(wait.vcpu).or_default().push(wait);
        }
        record.keep_apart();
        record.learn_order();
        record.split_overtaken(&locations);
        record.collect_ends();
        record.learn_holds();
        record.end_at_once();
        record.collect_ends();
        record.learn_holds();
        record
    }

    /// All waits, by vCPU and time.
    pub fn waits(&self) -> impl Iterator<Item = &HostWait> {
        self.waits.values().flatten()
    }

    /// What is known of the spin loops.
    pub fn loops(&self) -> &BTreeMap<Option<u64>, SpinLoop> {
        &self.loops
    }

    /// How long things take.
    pub fn times(&self) -> Times {
        self.times
    }

    /// Where the vCPUs were.
    pub fn presence(&self) -> &BTreeMap<u16, Presence> {
        &self.presence
    }

    /// What it waits for: as the guest says, else as its spin loop tells.
    pub(crate) fn kind_of(&self, wait: &HostWait) -> Kind {
        let spin_loop = self.loops.get(&wait.location);
        match (wait.has_pv_page, spin_loop) {
            (Some((_, true)), _) => Kind::Call,
            (Some((_, false)), _) => Kind::Lock,
            (None, spin_loop) => spin_loop.map_or(Kind::Unknown, |spin_loop| spin_loop.kind),
        }
    }

    fn follow_guests<'a>(&mut self, events: impl Iterator<Item = &'a Event>) {
        let entry_ns = self.times.entry_ns;
        for event in events {
            let Some(vcpu) = event.vcpu else { continue };
            let times = self.guest.entry(vcpu);
            times
                .or_insert_with(|| GuestTimes::new(entry_ns))
                .follow(event);
        }
        self.guest.values_mut().for_each(GuestTimes::end);
    }

    /// A vCPU is in one wait at a time: where two were rebuilt to overlap, the first ends where the second begins.
    fn keep_apart(&mut self) {
        for waits in self.waits.values_mut() {
            waits.sort_by_key(|wait| wait.begin_ns);
            for index in 1..waits.len() {
                let begin_ns = waits[index].begin_ns;
                let wait = &mut waits[index - 1];
                wait.end_ns = wait.end_ns.min(begin_ns);
            }
        }
    }

    fn collect_ends(&mut self) {
        for spin_loop in self.loops.values_mut() {
            (spin_loop.waits, spin_loop.exits) = (0, 0);
            spin_loop.ends.clear();
        }
        for wait in self.waits.values().flatten() {
            let Some(spin_loop) = self.loops.get_mut(&wait.location) else {
                continue;
            };
            spin_loop.waits += 1;
            spin_loop.exits += u64::from(wait.exits);
            spin_loop.ends.push(End {
                ns: wait.end_ns,
                vcpu: wait.vcpu,
                not_before_ns: wait.end_not_before_ns,
                not_after_ns: wait.end_not_after_ns,
                begin_ns: wait.begin_ns,
                seen_ns: wait.seen_ns,
                seen_over: wait.seen_over,
            });
        }
        for spin_loop in self.loops.values_mut() {
            spin_loop.ends.sort_by_key(|end| (end.ns, end.vcpu));
        }
    }

    /// The wait that the vCPU is in at `at_ns`.
    pub(crate) fn waiting_at(&self, vcpu: u16, at_ns: u64) -> Option<&HostWait> {
        let waits = self.waits.get(&vcpu)?;
        let last = waits
            .partition_point(|wait| wait.begin_ns <= at_ns)
            .checked_sub(1)?;
        Some(&waits[last]).filter(|wait| at_ns < wait.end_ns)
    }

    /// When the vCPU begins to wait for the first time at or after `at_ns`; `u64::MAX`: not any more.
    pub(crate) fn next_begin(&self, vcpu: u16, at_ns: u64) -> u64 {
        let waits = self.waits.get(&vcpu).map_or(&[][..], |waits| waits);
        let next = waits.partition_point(|wait| wait.begin_ns < at_ns);
        waits.get(next).map_or(u64::MAX, |wait| wait.begin_ns)
    }

    /// The vCPU's CPU time between the two moments.
    pub(crate) fn on_time(&self, vcpu: u16, from_ns: u64, until_ns: u64) -> u64 {
        let pieces = self.presence.get(&vcpu);
        let pieces = pieces.map(|presence| presence.on_between(from_ns, until_ns));
        let lengths = pieces.iter().flatten();
        lengths.map(|(begin_ns, end_ns)| end_ns - begin_ns).sum()
    }
}

/// The pv pages of each vCPU.
fn pv_pages_of<'a>(events: impl Iterator<Item = &'a Event>) -> BTreeMap<u16, Vec<(u64, [u64; 3])>> {
    let mut pv_page: BTreeMap<u16, Vec<(u64, [u64; 3])>> = BTreeMap::new();
    for event in events {
        if let (Some(vcpu), What::PvPage { arguments }) = (event.vcpu, event.what) {
            pv_page
                .entry(vcpu)
                .or_default()
                .push((event.time_ns, arguments));
        }
    }
    pv_page
}

/// Follows every vCPU; the waits that are over, and the followers for those that are not.
fn followed<'a>(
    events: impl Iterator<Item = &'a Event>,
    locations: &Locations,
    pv_page: &BTreeMap<u16, Vec<(u64, [u64; 3])>>,
) -> (BTreeMap<u16, Follower>, Vec<HostWait>) {
    let mut followers: BTreeMap<u16, Follower> = BTreeMap::new();
    let mut waits = Vec::new();
    for event in events {
        let Some(vcpu) = event.vcpu else { continue };
        let follower = followers.entry(vcpu);
        let follower = follower.or_insert_with(|| Follower::new(vcpu));
        let pv_page = pv_page_at(pv_page.get(&vcpu), event.time_ns);
        follower.follow(event, locations, pv_page, &mut waits);
        if let What::Ipi { receiver_vcpu, .. } = event.what {
            let receiver = followers.get_mut(&receiver_vcpu);
            if let Some(receiver) = receiver.filter(|_| receiver_vcpu != vcpu) {
                receiver.receive(event.time_ns);
            }
        }
    }
    (followers, waits)
}

fn times(followers: &BTreeMap<u16, Follower>, locations: &Locations, waits: &[HostWait]) -> Times {
    let sorted = |of: &dyn Fn(&Follower) -> &[u64]| {
        let mut all: Vec<u64> = followers
            .values()
            .flat_map(|follower| of(follower).iter().copied())
            .collect();
        all.sort_unstable();
        all
    };
    let entries = sorted(&|follower| &follower.entry_samples);
    let handlings = sorted(&|follower| &follower.handling_samples);
    let mut delays_ns = [0; RESUMPTIONS];
    for (class, delay_ns) in delays_ns.iter_mut().enumerate() {
        let samples = sorted(&|follower| &follower.delay_samples[class]);
        *delay_ns = samples.iter().sum::<u64>() / (samples.len() as u64).max(1);
    }
    let windows = waits.iter().map(|wait| locations.window(wait.location));
    Times {
        entry_ns: entries.get(entries.len() / 10).copied().unwrap_or(0),
        handling_ns: handlings.get(handlings.len() / 2).copied().unwrap_or(0),
        delays_ns,
        window_ns: windows.map(|window| window.typical_ns).max().unwrap_or(0),
    }
}
