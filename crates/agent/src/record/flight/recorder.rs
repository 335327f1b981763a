// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ring as what takes a stream's events, with what is asked of it from outside.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard},
    time::SystemTime,
};

use unspin_events::{
    Event,
    facts::{Facts, VmFacts},
};
use unspin_recording::{
    Ended, Error, Summary,
    ring::{Dropped, Kept, Ring, RingCounts, RingExtent, Trigger},
};

use super::spin_share::{SpinShares, WINDOW_NS};
use crate::{Names, monotonic_ns, record::sink::Sink};

/// How often shares are looked at.
const SHARES_INTERVAL_NS: u64 = 1_000_000_000;
/// A full disk is told so often at most.
const FULL_INTERVAL_NS: u64 = 60_000_000_000;
/// How often who is gone is forgotten.
const FORGET_INTERVAL_NS: u64 = 10_000_000_000;

/// What happened that somebody may want to know at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// A span is being kept, in that folder.
    Begun(Trigger, PathBuf),
    /// The span in that folder goes on for longer.
    Joined(Trigger, PathBuf),
    /// That span is whole.
    Whole(PathBuf),
    /// As many spans are kept as may be.
    TooMany(Trigger),
    /// The disk has no room for a span.
    NoRoom(Trigger),
    /// The disk is full: so many segments went before their time, and so many events could not be written, since this was said last.
    DiskFull {
        /// Segments.
        segments: u64,
        /// Events.
        unwritten_events: u64,
    },
}

/// How a flight recorder does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What of the ring is there.
    pub extent: RingExtent,
    /// What happened to it.
    pub counts: RingCounts,
    /// A span is being kept.
    pub is_keeping: bool,
}

/// Between the recorder and whoever watches over it.
#[derive(Debug, Default)]
pub struct Desk {
    asked: Mutex<VecDeque<Trigger>>,
    news: Mutex<VecDeque<News>>,
    status: Mutex<Status>,
}

impl Desk {
    /// Keeps what is around this moment, soon.
    pub fn keep(&self, reason: &str, subject: &str, detail: &str) {
        lock(&self.asked).push_back(moment(reason, subject, detail));
    }

    /// What happened since the last time.
    pub fn news(&self) -> Vec<News> {
        lock(&self.news).drain(..).collect()
    }

    /// How it does, as of a moment ago.
    pub fn status(&self) -> Status {
        lock(&self.status).clone()
    }
}

/// That happened now.
pub(super) fn moment(reason: &str, subject: &str, detail: &str) -> Trigger {
    let since_1970 = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Trigger {
        reason: reason.to_owned(),
        subject: subject.to_owned(),
        detail: detail.to_owned(),
        at_ns: monotonic_ns(),
        unix_ns: u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here can panic half way.
    mutex
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What takes the events.
pub(super) struct FlightRecorder {
    ring: Ring,
    desk: Arc<Desk>,
    keep_ns: u64,
    shares: Option<SpinShares>,
    shares_at_ns: u64,
    /// Who the VMs are, by number: for names of folders.
    vm_names: Vec<(u32, String)>,
    names_then: u64,
    forget_at_ns: u64,
    told: (Dropped, u64),
    full_told_ns: Option<u64>,
    whole: Option<PathBuf>,
}

impl FlightRecorder {
    pub fn new(
        ring: Ring,
        desk: Arc<Desk>,
        keep_ns: u64,
        spin_share_percent: Option<u32>,
    ) -> FlightRecorder {
        FlightRecorder {
            ring,
            desk,
            keep_ns,
            shares: spin_share_percent.map(SpinShares::new),
            shares_at_ns: 0,
            vm_names: Vec::new(),
            names_then: 0,
            forget_at_ns: 0,
            told: (Dropped::default(), 0),
            full_told_ns: None,
            whole: None,
        }
    }

    /// A VM as tables call it, or by its number while nobody knows more.
    fn called(&self, vm: u32) -> String {
        let known = self.vm_names.iter().find(|(number, _)| *number == vm);
        known.map_or_else(|| format!("vm{vm}"), |(_, name)| name.clone())
    }

    fn look_at_shares(&mut self, now_ns: u64) {
        let due = now_ns >= self.shares_at_ns.saturating_add(SHARES_INTERVAL_NS);
        let Some(shares) = self.shares.as_mut().filter(|_| due) else {
            return;
        };
        self.shares_at_ns = now_ns;
        for risen in shares.risen(now_ns) {
            let detail = format!(
                "{} % of its CPU time spun for {} s",
                risen.percent,
                WINDOW_NS / 1_000_000_000
            );
            let subject = self.called(risen.vm);
            self.desk.keep("spin-share", &subject, &detail);
        }
    }

    fn keep_what_was_asked_for(&mut self) -> Result<(), Error> {
        let asked: Vec<Trigger> = lock(&self.desk.asked).drain(..).collect();
        for trigger in asked {
            let news = match self.ring.keep(trigger.clone())? {
                Kept::Begun(folder) => News::Begun(trigger, folder),
                Kept::Joined(folder) => News::Joined(trigger, folder),
                Kept::TooMany => News::TooMany(trigger),
                Kept::NoRoom => News::NoRoom(trigger),
            };
            lock(&self.desk.news).push_back(news);
        }
        Ok(())
    }

    fn tell(&mut self, now_ns: u64) {
        let counts = self.ring.counts();
        let mut news = lock(&self.desk.news);
        if counts.last_span != self.whole {
            self.whole.clone_from(&counts.last_span);
            news.extend(counts.last_span.clone().map(News::Whole));
        }
        let (dropped, unwritten) = self.told;
        let segments = counts.dropped.disk_full_segments - dropped.disk_full_segments;
        let unwritten_events = counts.unwritten_events - unwritten;
        let told_ns = self.full_told_ns;
        let is_due = told_ns.is_none_or(|told_ns| now_ns >= told_ns + FULL_INTERVAL_NS);
        if is_due && (segments > 0 || unwritten_events > 0) {
            news.push_back(News::DiskFull {
                segments,
                unwritten_events,
            });
            self.told = (counts.dropped, counts.unwritten_events);
            self.full_told_ns = Some(now_ns);
        }
        *lock(&self.desk.status) = Status {
            extent: self.ring.extent(),
            counts: counts.clone(),
            is_keeping: self.ring.is_keeping(),
        };
    }
}

impl Sink for FlightRecorder {
    fn append(&mut self, events: &[Event]) -> Result<(), Error> {
        if let Some(shares) = &mut self.shares {
            events.iter().for_each(|event| shares.take(event));
        }
        self.ring.append(events)
    }

    fn tick(&mut self, now_ns: u64) -> Result<(), Error> {
        self.look_at_shares(now_ns);
        self.keep_what_was_asked_for()?;
        self.ring.tick(now_ns)?;
        self.tell(now_ns);
        Ok(())
    }

    fn put_names(&mut self, names: &mut Names, now_ns: u64) {
        if now_ns >= self.forget_at_ns.saturating_add(FORGET_INTERVAL_NS) {
            self.forget_at_ns = now_ns;
            let oldest_ns = now_ns.saturating_sub(self.keep_ns);
            names.forget(self.ring.first_ns().unwrap_or(oldest_ns).min(oldest_ns));
        }
        let is_news = names.changes() != self.names_then;
        self.names_then = names.changes();
        let called = |vm: &VmFacts| Some((vm.vm, vm.identity.called()?));
        self.vm_names = names.vms().iter().filter_map(called).collect();
        self.ring.set_vms(names.vms());
        if is_news {
            self.ring.set_tasks(names.tasks(), names.left_out());
        }
    }

    fn facts_mut(&mut self) -> &mut Facts {
        self.ring.facts_mut()
    }

    fn bytes_written(&self) -> u64 {
        self.ring.counts().bytes_written
    }

    fn finish(self: Box<Self>, ended: Ended, because: Option<String>) -> Result<Summary, Error> {
        let FlightRecorder { ring, desk, .. } = *self;
        let done = ring.finish(ended, because)?;
        *lock(&desk.status) = Status {
            extent: done.extent,
            counts: done.counts,
            is_keeping: false,
        };
        Ok(done.summary)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use unspin_recording::ring::RingOptions;

    use super::{
        super::test_events::{MS, slice},
        *,
    };

    fn recorder(folder: &Path, desk: &Arc<Desk>, percent: Option<u32>) -> Box<FlightRecorder> {
        let options = RingOptions {
            spans_max: 1,
            ..RingOptions::new(60_000 * MS, 1 << 30)
        };
        let keep_ns = options.keep_ns;
        let at = Trigger::default();
        let ring = Ring::begin(folder, Facts::default(), options, at).expect("room");
        Box::new(FlightRecorder::new(
            ring,
            Arc::clone(desk),
            keep_ns,
            percent,
        ))
    }

    /// Of VM 7's only vCPU, which spins for six of ten milliseconds in windows of one.
    fn ten_milliseconds(from_ns: u64) -> Vec<Event> {
        slice(from_ns, from_ns + 10 * MS - 1, 7, 6)
    }

    #[test]
    fn a_vm_that_spins_is_kept_under_its_name_and_the_next_trigger_joins() {
        let folder = tempfile::tempdir().expect("a folder");
        let desk = Arc::new(Desk::default());
        let mut recorder = recorder(folder.path(), &desk, Some(40));
        let mut names = Names::default();
        for tick in 0..700 {
            let begin_ns = tick * 10 * MS;
            let events = ten_milliseconds(begin_ns);
            events.iter().for_each(|event| names.see(event));
            recorder.append(&events).expect("room");
            recorder.put_names(&mut names, begin_ns);
            recorder.tick(begin_ns + 10 * MS).expect("room");
        }
        let news = desk.news();
        let [News::Begun(trigger, kept)] = &news[..] else {
            panic!("one span: {news:?}")
        };
        assert_eq!(
            (trigger.reason.as_str(), trigger.subject.as_str()),
            ("spin-share", "vm7")
        );
        assert_eq!(trigger.detail, "60 % of its CPU time spun for 5 s");
        assert!(
            kept.to_string_lossy().ends_with("Z-spin-share-vm7"),
            "{kept:?}"
        );
        assert!(desk.status().is_keeping);
        desk.keep("signal", "", "SIGUSR1");
        recorder.tick(7_010 * MS).expect("room");
        assert!(matches!(&desk.news()[..], [News::Joined(..)]));
        recorder.finish(Ended::Finished, None).expect("room");
        let status = desk.status();
        assert_eq!((status.counts.spans, status.counts.joined_triggers), (1, 1));
        assert!(!status.is_keeping && status.extent.events == 700 * 8);
    }

    #[test]
    fn what_has_no_room_among_the_kept_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(folder.path().join("kept/one")).expect("room");
        let desk = Arc::new(Desk::default());
        let mut recorder = recorder(folder.path(), &desk, None);
        desk.keep("signal", "", "");
        recorder.tick(MS).expect("room");
        assert!(matches!(&desk.news()[..], [News::TooMany(_)]));
        assert_eq!(desk.status().counts.refused_triggers, 1);
    }
}
