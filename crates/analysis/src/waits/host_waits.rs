// SPDX-License-Identifier: MIT OR Apache-2.0
//! The waits of vCPUs as a host can rebuild them: from pause-loop exits, from where vCPUs were when they left their CPUs, and
//! from the interrupts they sent.
//!
//! A pause-loop exit says that the vCPU spun for one window. Before the first exit of a wait lies that window; after the last
//! one a remainder that nobody sees, shorter than a window. A vCPU that leaves its CPU inside a known spin loop spins; one
//! that leaves it elsewhere, or sends an interrupt, does not.
//!
//! What guests that cooperate say of their vCPUs (abi/guest/pv_page.h): claims, believed for the guest that makes them.

use unspin_abi as abi;
use unspin_events::{Event, GuestMode, What};

use crate::waits::{
    presence::Left,
    spin_locations::{Locations, WindowTime},
};

/// A wait at one place in the guest's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWait {
    /// Who waited.
    pub vcpu: u16,
    /// The spin loop; `None` where the host cannot see instruction pointers.
    pub location: Option<u64>,
    /// When it began, as far as that is known: one window before the first exit, or when the interrupt was sent.
    pub begin_ns: u64,
    /// When it ended, as far as that is known.
    pub end_ns: u64,
    /// It had not ended before.
    pub end_not_before_ns: u64,
    /// It had ended by then.
    pub end_not_after_ns: u64,
    /// It was seen to do something else afterwards; otherwise it only took too long for a wait that went on.
    pub seen_over: bool,
    /// Its last pause-loop exit: until then, a whole window had passed in the guest without what it waited for. 0: none.
    pub seen_ns: u64,
    /// The guest's name for it: when it asked, by its own clock, and whether for answers; where it gives pv pages.
    pub has_pv_page: Option<(u64, bool)>,
    /// Pause-loop exits.
    pub exits: u32,
    /// How it went on for the last time, see [`RESUMPTIONS`].
    pub resumption: usize,
    /// When IPIs reached it since.
    pub arrivals_ns: Vec<u64>,
    /// The interrupts that it sent just before.
    pub sent: Option<Sent>,
}

/// Interrupts that a vCPU sent in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When the first went out.
    pub first_ns: u64,
    /// And the last.
    pub last_ns: u64,
    /// Their vector.
    pub vector: u8,
    /// To whom.
    pub receivers: Vec<u16>,
    /// The vCPU was seen spinning hardly longer than a window after that, as far as it had a CPU.
    pub close: bool,
}

/// Ways in which a wait goes on in the guest: after time off the CPU or not, and with an IPI to be taken first or not.
pub const RESUMPTIONS: usize = 4;

/// Its place among them.
pub fn resumption(resumed: bool, pending: bool) -> usize {
    usize::from(resumed) * 2 + usize::from(pending)
}

/// Rebuilds the waits of one vCPU; takes its events in order.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    vcpu: u16,
    /// What the guest said with the event at hand.
    pv_page: Option<PvPage>,
    open: Option<HostWait>,
    /// Since when it is in the guest, as far as that is known.
    entered_ns: u64,
    /// It has made a pause-loop exit and was not entered again.
    handling: bool,
    sent: Option<Sent>,
    /// When it got its CPU, while it was not entered since.
    switched_in_ns: Option<u64>,
    /// When it last lost it.
    switched_out_ns: Option<u64>,
    /// How long it took to be in the guest again after it got a CPU.
    pub(crate) entry_samples: Vec<u64>,
    /// How long a pause-loop exit took that did not end in a switch.
    pub(crate) handling_samples: Vec<u64>,
    /// It was off its CPU since it was last in the guest.
    resumed: bool,
    /// An IPI waits for it.
    pending: bool,
    /// When others have come while it was in the guest.
    arrivals_ns: Vec<u64>,
    on_cpu: bool,
    /// How long waits that went on were delayed after the guest was entered, by [`resumption`].
    pub(crate) delay_samples: [Vec<u64>; RESUMPTIONS],
}

/// Samples kept of each time.
const SAMPLES_MAX: usize = 4096;

impl Follower {
    /// For that vCPU.
    pub fn new(vcpu: u16) -> Follower {
        Follower {
            vcpu,
            on_cpu: true,
            ..Follower::default()
        }
    }

    /// Takes the vCPU's next event; `done` gets the waits that are over.
    pub fn follow(
        &mut self,
        event: &Event,
        locations: &Locations,
        pv_page: Option<PvPage>,
        done: &mut Vec<HostWait>,
    ) {
        self.pv_page = pv_page;
        let now_ns = event.time_ns;
        match event.what {
            What::SwitchIn { .. } => {
                self.switched_in_ns = Some(now_ns);
                self.on_cpu = true;
                self.arrivals_ns.clear();
                if !self.handling {
                    self.entered_ns = now_ns;
                }
            }
            What::SwitchOut { .. } => {
                if let Some(left) = Left::of(event) {
                    self.leave(now_ns, &left, locations, done);
                }
                self.switched_in_ns = None;
                self.switched_out_ns = Some(now_ns);
                self.resumed = true;
                self.on_cpu = false;
            }
            What::PauseEntry { outside_ns, .. } => {
                self.handling = false;
                self.entered_ns = now_ns;
                match self.switched_in_ns.take() {
                    Some(since_ns) => {
                        keep(&mut self.entry_samples, now_ns.saturating_sub(since_ns))
                    }
                    None => keep(&mut self.handling_samples, outside_ns),
                }
            }
            What::PauseExit {
                guest_rip,
                inside_ns,
                other_exits,
                interrupt_exits,
                ..
            } => {
                let location = guest_rip.map(|rip| locations.canonical(rip));
                let resets = u64::from(other_exits) + u64::from(interrupt_exits);
                let window = locations.window(location);
                self.pause(now_ns, location, inside_ns.into(), resets, window, done);
            }
            What::Ipi {
                receiver_vcpu,
                vector,
                ..
            } if receiver_vcpu != self.vcpu => {
                self.send(now_ns, receiver_vcpu, vector, locations, done)
            }
            _ => {}
        }
    }

    /// Ends the wait under way where it was last seen: the record stops here, or is broken.
    pub fn cut(&mut self, done: &mut Vec<HostWait>) {
        if let Some(mut wait) = self.open.take() {
            wait.end_ns = wait.end_not_before_ns;
            wait.end_not_after_ns = u64::MAX;
            done.push(wait);
        }
        *self = Follower::new(self.vcpu);
    }

    fn pause(
        &mut self,
        now_ns: u64,
        location: Option<u64>,
        inside_ns: u64,
        resets: u64,
        window: WindowTime,
        done: &mut Vec<HostWait>,
    ) {
        let since_entry_ns = now_ns.saturating_sub(self.entered_ns);
        let same = self
            .open
            .as_ref()
            .is_some_and(|wait| wait.location == location);
        let told = self.told_to_be_the_same();
        // Each other exit starts the window anew, so a wait without end may take that much longer to exit.
        let straight_ns = window.longest_ns().saturating_mul(1 + resets);
        let straight = inside_ns <= window.longest_ns() && since_entry_ns <= straight_ns;
        if same && told.unwrap_or(straight) {
            let delay_ns = since_entry_ns.saturating_sub(inside_ns);
            keep(
                &mut self.delay_samples[resumption(self.resumed, self.pending)],
                delay_ns,
            );
            if let Some(wait) = &mut self.open {
                wait.exits += 1;
                wait.end_not_before_ns = now_ns;
                wait.seen_ns = now_ns;
            }
        } else {
            let rest_ns = if same && resets == 0 {
                window.rest_ns()
            } else {
                0
            };
            let seen_over = told.is_some() || !same || inside_ns > window.longest_ns();
            self.end_within(window, since_entry_ns, seen_over, done);
            // The PAUSEs of one window, all of them if they took no longer than a window; otherwise there was more between.
            let spun_ns = if inside_ns <= window.longest_ns() {
                inside_ns
            } else {
                window.typical_ns.saturating_sub(rest_ns)
            };
            self.begin(
                now_ns,
                now_ns.saturating_sub(spun_ns),
                location,
                straight_ns,
            );
            if let Some(wait) = &mut self.open {
                wait.exits = 1;
                wait.seen_ns = now_ns;
            }
        }
        self.handling = true;
        self.switched_in_ns = None;
        self.resumed = false;
        self.pending = false;
        self.arrivals_ns.clear();
    }

    /// Another vCPU has sent it an IPI.
    pub fn receive(&mut self, now_ns: u64) {
        if self.handling || !self.on_cpu {
            self.pending = true;
        } else if self.arrivals_ns.len() < 16 {
            self.arrivals_ns.push(now_ns);
        }
    }

    /// Whether the guest says that the wait under way goes on; `None`: it does not say.
    fn told_to_be_the_same(&self) -> Option<bool> {
        let pv_page = self.pv_page?;
        let (asked_tsc, answers) = self.open.as_ref()?.has_pv_page?;
        let same = pv_page.waits() && pv_page.asked_tsc == asked_tsc;
        Some(same && pv_page.waits_for_answers() == answers)
    }

    /// Opens a wait that is seen at `now_ns` and began at `begin_ns`, or with the interrupts sent less than `straight_ns` ago.
    fn begin(&mut self, now_ns: u64, begin_ns: u64, location: Option<u64>, straight_ns: u64) {
        let mut sent = self.sent.take();
        if let Some(sent) = &mut sent {
            let on_cpu_ns = self
                .switched_out_ns
                .filter(|out_ns| *out_ns > sent.last_ns)
                .map_or(now_ns.saturating_sub(sent.last_ns), |_| {
                    now_ns.saturating_sub(self.entered_ns)
                });
            sent.close = on_cpu_ns <= straight_ns;
        }
        self.open = Some(HostWait {
            vcpu: self.vcpu,
            location,
            begin_ns,
            end_ns: now_ns,
            end_not_before_ns: now_ns,
            end_not_after_ns: u64::MAX,
            has_pv_page: self
                .pv_page
                .filter(PvPage::waits)
                .map(|pv_page| (pv_page.asked_tsc, pv_page.waits_for_answers())),
            seen_over: false,
            seen_ns: 0,
            exits: 0,
            resumption: 0,
            arrivals_ns: Vec::new(),
            sent,
        });
    }

    fn leave(&mut self, now_ns: u64, left: &Left, locations: &Locations, done: &mut Vec<HostWait>) {
        if self.handling {
            if let Some(wait) = &mut self.open {
                wait.end_not_before_ns = now_ns;
            }
            return;
        }
        let user = left.mode == Some(GuestMode::User) || !left.runnable;
        let spins_at = left
            .guest_rip
            .filter(|_| !user)
            .and_then(|rip| locations.near(rip));
        let told = self.told_to_be_the_same();
        let spins_at = match (self.pv_page, told) {
            (Some(pv_page), _) if !pv_page.waits() => None,
            // In an interrupt's handler, say: it waits all the same.
            (_, Some(true)) => self.open.as_ref().and_then(|wait| wait.location),
            _ => spins_at,
        };
        let since_entry_ns = now_ns.saturating_sub(self.entered_ns);
        if left.mode == Some(GuestMode::User) {
            self.sent = None; // whatever it sent, it does not spin for the answers
        }
        let Some(location) = spins_at else {
            let window = locations.window(self.open.as_ref().and_then(|wait| wait.location));
            self.end_within(window, since_entry_ns, true, done);
            return;
        };
        let window = locations.window(Some(location));
        let same = self
            .open
            .as_ref()
            .is_some_and(|wait| wait.location == Some(location));
        if same && told.unwrap_or(since_entry_ns <= 2 * window.longest_ns()) {
            if let Some(wait) = &mut self.open {
                wait.end_not_before_ns = now_ns;
            }
            return;
        }
        self.end_within(window, since_entry_ns, !same, done);
        // Cut off somewhere in its first window: in the middle, for all that is known.
        let spun_ns = window.rest_ns().min(since_entry_ns);
        self.begin(
            now_ns,
            now_ns - spun_ns,
            Some(location),
            window.longest_ns(),
        );
    }

    fn send(
        &mut self,
        now_ns: u64,
        receiver: u16,
        vector: u8,
        locations: &Locations,
        done: &mut Vec<HostWait>,
    ) {
        let window = locations.window(self.open.as_ref().and_then(|wait| wait.location));
        if !self.handling {
            let since_entry_ns = now_ns.saturating_sub(self.entered_ns);
            self.end_within(window, since_entry_ns, true, done);
        }
        match &mut self.sent {
            Some(sent)
                if sent.vector == vector
                    && now_ns.saturating_sub(sent.last_ns) <= window.longest_ns()
                    && !sent.receivers.contains(&receiver) =>
            {
                sent.last_ns = now_ns;
                sent.receivers.push(receiver);
            }
            _ => {
                self.sent = Some(Sent {
                    first_ns: now_ns,
                    last_ns: now_ns,
                    vector,
                    receivers: vec![receiver],
                    close: false,
                });
            }
        }
    }

    /// Ends the wait under way: it did not last another window after the last entry, and is over now, which is
    /// `since_entry_ns` after that.
    fn end_within(
        &mut self,
        window: WindowTime,
        since_entry_ns: u64,
        seen_over: bool,
        done: &mut Vec<HostWait>,
    ) {
        let Some(mut wait) = self.open.take() else {
            return;
        };
        let last_ns = self.entered_ns.max(wait.end_not_before_ns);
        wait.end_not_before_ns = last_ns;
        wait.seen_over = seen_over;
        wait.resumption = resumption(self.resumed, self.pending);
        wait.arrivals_ns = std::mem::take(&mut self.arrivals_ns);
        self.pending = false;
        self.resumed = false;
        wait.end_ns = last_ns + window.rest_ns().min(since_entry_ns);
        wait.end_not_after_ns = last_ns + window.longest_ns().min(since_entry_ns);
        done.push(wait);
    }
}

fn keep(samples: &mut Vec<u64>, sample: u64) {
    if samples.len() < SAMPLES_MAX {
        samples.push(sample);
    }
}

/// What a pv page said at a switch out or a pause-loop exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PvPage {
    /// It holds a lock.
    pub holding: bool,
    /// `enum unspin_pv_page_waiting`.
    pub waiting: u8,
    /// The guest's clock when it asked for the lock or for answers last: tells one wait from the next.
    pub asked_tsc: u64,
}

impl PvPage {
    /// Whether it spins.
    pub fn waits(&self) -> bool {
        u32::from(self.waiting) != abi::UNSPIN_PV_PAGE_NOT_WAITING
    }

    /// Whether it spins for answers.
    pub fn waits_for_answers(&self) -> bool {
        u32::from(self.waiting) == abi::UNSPIN_PV_PAGE_WAITS_FOR_ANSWERS
    }
}

/// The pv page given with the event at exactly `time_ns`; the page is read in the same program, a moment later at most.
pub(crate) fn pv_page_at(pv_page: Option<&Vec<(u64, [u64; 3])>>, time_ns: u64) -> Option<PvPage> {
    let pv_page = pv_page?;
    let last = pv_page.partition_point(|&(at_ns, _)| at_ns < time_ns);
    let &(at_ns, [flags, _, asked_tsc]) = pv_page.get(last)?;
    (at_ns == time_ns).then_some(PvPage {
        holding: flags >> abi::UNSPIN_PV_PAGE_HOLDING_SHIFT & 0xff != 0,
        waiting: (flags >> abi::UNSPIN_PV_PAGE_WAITING_SHIFT) as u8,
        asked_tsc,
    })
}
