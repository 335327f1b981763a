// SPDX-License-Identifier: MIT OR Apache-2.0
//! A first look at a whole stream: which vCPUs there are, and where events are missing. An analysis that reads in order of
//! time must know both before it begins.

use std::collections::{BTreeMap, BTreeSet};

use unspin_events::{Event, What};

/// How far back a loss may reach, nanoseconds. A `Lost` event is written when the ring is drained and stands for all since
/// the drain before, which is 20 ms earlier unless the reader was held up; 1 s is what we trust it not to exceed.
pub const LOSS_REACH_NS: u64 = 1_000_000_000;

/// A stretch of time from which events are missing; both ends belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its first nanosecond.
    pub from_ns: u64,
    /// Its last.
    pub to_ns: u64,
}

/// How far after a hole (a segment of a recording that is missing) events of its neighbours may still come, nanoseconds:
/// segments hold a second each and overlap by less.
const HOLE_OVERLAP_NS: u64 = 1_000_000_000;

/// What a stream is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// By VM, the vCPUs that any event names. One that never ran while it was observed is not among them: it slept all the
    /// time, or a scheduler starved it.
    pub vms: BTreeMap<u32, BTreeSet<u16>>,
    /// In order of time, apart from each other.
    pub gaps: Vec<Gap>,
    /// Events lost, as far as the stream says; `None`: some, and nobody knows how many.
    pub lost_events: Option<u64>,
    hole_ns: Option<u64>,
    /// Time of the first event.
    pub first_ns: Option<u64>,
    /// Time of the last.
    pub last_ns: Option<u64>,
}

impl Default for Survey {
    fn default() -> Survey {
        Survey {
            vms: BTreeMap::new(),
            gaps: Vec::new(),
            lost_events: Some(0),
            hole_ns: None,
            first_ns: None,
            last_ns: None,
        }
    }
}

impl Survey {
    /// Looks at all events, in order of time.
    pub fn of<'event>(events: impl IntoIterator<Item = &'event Event>) -> Survey {
        let mut survey = Survey::default();
        for event in events {
            survey.add(event);
        }
        survey
    }

    /// Looks at one more event, no earlier than those before.
    pub fn add(&mut self, event: &Event) {
        self.first_ns.get_or_insert(event.time_ns);
        self.last_ns = Some(event.time_ns);
        self.widen_hole(event.time_ns);
        if let What::Lost { events, lost_kind } = event.what {
            let known = (events != u64::MAX).then_some(events);
            self.lost_events = self
                .lost_events
                .zip(known)
                .map(|(sum, events)| sum.saturating_add(events));
            self.add_gap(event.time_ns);
            // Not events are missing before this one, but a piece of the recording around it.
            if lost_kind == 0 && known.is_none() {
                self.hole_ns = Some(event.time_ns);
            }
        } else if let (Some(vm), Some(vcpu)) = (event.vm, event.vcpu) {
            let vcpus = self.vms.entry(vm).or_default();
            vcpus.insert(vcpu);
            if let What::Ipi { receiver_vcpu, .. } = event.what {
                vcpus.insert(receiver_vcpu);
            }
        }
    }

    /// Events are missing anywhere: nothing in the stream can be relied on.
    pub fn all_is_lost(&mut self) {
        self.gaps = vec![Gap {
            from_ns: 0,
            to_ns: u64::MAX,
        }];
    }

    /// A hole ends with the first event that cannot be its neighbour's.
    fn widen_hole(&mut self, time_ns: u64) {
        let (Some(hole_ns), Some(gap)) = (self.hole_ns, self.gaps.last_mut()) else {
            return;
        };
        gap.to_ns = time_ns;
        if time_ns - hole_ns > HOLE_OVERLAP_NS {
            self.hole_ns = None;
        }
    }

    /// How many vCPUs of that VM were seen.
    pub fn vcpus(&self, vm: u32) -> usize {
        self.vms.get(&vm).map_or(0, BTreeSet::len)
    }

    fn add_gap(&mut self, to_ns: u64) {
        let from_ns = to_ns.saturating_sub(LOSS_REACH_NS);
        match self.gaps.last_mut() {
            Some(last) if last.to_ns >= from_ns => last.to_ns = to_ns,
            _ => self.gaps.push(Gap { from_ns, to_ns }),
        }
    }
}

/// Goes through the gaps as time passes.
#[derive(Clone, Debug, Default)]
pub struct GapWalk {
    gaps: Vec<Gap>,
    next: usize,
}

/// Where a moment lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nothing is missing since the moment before.
    Whole,
    /// Something is missing between the moment before and this one, or around it.
    AfterLoss,
}

impl GapWalk {
    /// Begins before the first of them.
    pub fn new(gaps: &[Gap]) -> GapWalk {
        GapWalk {
            gaps: gaps.to_vec(),
            next: 0,
        }
    }

    /// Moves on to `time_ns`, no earlier than before.
    pub fn at(&mut self, time_ns: u64) -> Moment {
        let mut moment = Moment::Whole;
        while let Some(gap) = self.gaps.get(self.next) {
            if gap.from_ns > time_ns {
                break;
            }
            moment = Moment::AfterLoss;
            if gap.to_ns >= time_ns {
                break;
            }
            self.next += 1;
        }
        moment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(time_ns: u64) -> Event {
        Event::lost(time_ns, 3, 1)
    }

    #[test]
    fn losses_reach_back_and_join() {
        let reach = LOSS_REACH_NS;
        let survey = Survey::of(&[lost(5), lost(2 * reach), lost(5 * reach)]);
        let gap = |from_ns, to_ns| Gap { from_ns, to_ns };
        assert_eq!(
            survey.gaps,
            [gap(0, 5), gap(reach, 2 * reach), gap(4 * reach, 5 * reach)]
        );
        assert_eq!(survey.lost_events, Some(9));
        let joined = Survey::of(&[lost(reach), lost(reach + 1)]);
        assert_eq!(joined.gaps, [gap(0, reach + 1)]);
    }

    #[test]
    fn a_hole_reaches_to_what_cannot_be_its_neighbour() {
        let hole = |time_ns| Event {
            what: What::Lost {
                events: u64::MAX,
                lost_kind: 0,
            },
            ..lost(time_ns)
        };
        let second = |seconds: u64| seconds * HOLE_OVERLAP_NS;
        let event = |time_ns| Event {
            what: What::KvmVcpuOnSpin,
            ..lost(time_ns)
        };
        let times = [second(5), second(5) + 1, second(6), second(60), second(61)];
        let mut stream = vec![hole(second(5))];
        stream.extend(times.map(event));
        let survey = Survey::of(&stream);
        let gap = Gap {
            from_ns: second(4),
            to_ns: second(60),
        };
        assert_eq!(survey.gaps, [gap]);
        assert_eq!(survey.lost_events, None);
    }

    #[test]
    fn a_walk_notices_gaps_that_lie_between_two_moments() {
        let gaps = [
            Gap {
                from_ns: 10,
                to_ns: 20,
            },
            Gap {
                from_ns: 30,
                to_ns: 40,
            },
        ];
        let mut walk = GapWalk::new(&gaps);
        let moments = [5, 9, 10, 20, 21, 22, 50, 51].map(|time_ns| walk.at(time_ns));
        use Moment::{AfterLoss, Whole};
        assert_eq!(
            moments,
            [
                Whole, Whole, AfterLoss, AfterLoss, AfterLoss, Whole, AfterLoss, Whole
            ]
        );
    }
}
