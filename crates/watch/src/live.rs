// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watching this host from two threads: one reads the counters, one takes sampled bursts now and then.

use std::{
    io,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use unspin_agent::{ObserveOptions, WatchedHost, Watcher, host_facts};
use unspin_events::facts::KvmFacts;

use crate::{burst::burst, table::Table, view::HostView};

/// How long to wait for KVM, or whatever is missing, before it is tried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// A burst is taken when VMs have wasted more than this share of their CPU time since the last one: hosts without the disease pay for
/// counters only. Per mille.
const WORTH_A_BURST_PERMILLE: u64 = 5;

/// How to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveOptions {
    /// How often counters are read.
    pub interval: Duration,
    /// How often a burst is taken; `None`: never.
    pub burst_every: Option<Duration>,
    /// How long a burst lasts at most.
    pub burst_length: Duration,
}

impl Default for LiveOptions {
    /// Every other second; a second of each minute, or 100,000 events.
    fn default() -> LiveOptions {
        LiveOptions {
            interval: Duration::from_secs(2),
            burst_every: Some(Duration::from_secs(60)),
            burst_length: Duration::from_secs(1),
        }
    }
}

/// The host while it is watched, until this is dropped.
pub struct Live {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    table: Mutex<Table>,
    /// When the counters were last read, or tried to be.
    tried: Mutex<Instant>,
    stop: AtomicBool,
    /// Told when `stop` is set; with it goes an empty lock, for nobody holds the table while he waits.
    stopped: Condvar,
    waiting: Mutex<()>,
}

impl Live {
    /// Begins to watch. Where KVM is not loaded, or something else is missing, views say so, and it is tried again every 10 s.
    ///
    /// # Errors
    /// When no thread can be made.
    pub fn start(options: LiveOptions) -> io::Result<Live> {
        let shared = Arc::new(Shared {
            table: Mutex::default(),
            tried: Mutex::new(Instant::now()),
            stop: AtomicBool::new(false),
            stopped: Condvar::new(),
            waiting: Mutex::default(),
        });
        // The first reading is there when this returns.
        let mut reader = Reader {
            shared: Arc::clone(&shared),
            watcher: None,
            kvm: KvmFacts::default(),
            tried: None,
        };
        reader.tick();
        let mut live = Live {
            shared,
            threads: Vec::new(),
        };
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        let reading = named("unspin-reader").spawn(move || reader.run(options.interval))?;
        live.threads.push(reading);
        if let Some(every) = options.burst_every {
            let shared = Arc::clone(&live.shared);
            let sampling = move || sample(&shared, every, options.burst_length);
            live.threads.push(named("unspin-sampler").spawn(sampling)?);
        }
        Ok(live)
    }

    /// For how long nobody has read the counters, or tried to: much more than the interval means that the thread which does hangs.
    pub fn since_reading(&self) -> Duration {
        let tried = self.shared.tried.lock();
        tried
            .unwrap_or_else(|poisoned| poisoned.into_inner())
            .elapsed()
    }

    /// What is known now.
    pub fn view(&self) -> HostView {
        self.shared.table().view()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        // Whoever has just looked at `stop` holds this lock until he waits.
        drop(self.shared.waiting.lock());
        self.shared.stopped.notify_all();
        for thread in self.threads.drain(..) {
            // A panic there has been told, and ends nothing here.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits so long; true: it is over.
    fn pause(&self, time: Duration) -> bool {
        let waiting = self
            .waiting
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let waited = self
            .stopped
            .wait_timeout_while(waiting, time, |()| !self.stop.load(Ordering::Relaxed));
        drop(waited);
        self.stop.load(Ordering::Relaxed)
    }
}

struct Reader {
    shared: Arc<Shared>,
    watcher: Option<Watcher>,
    /// As it was then.
    kvm: KvmFacts,
    tried: Option<Instant>,
}

impl Reader {
    fn run(mut self, interval: Duration) {
        while !self.shared.pause(interval) {
            self.tick();
            let tried = self.shared.tried.lock();
            *tried.unwrap_or_else(|poisoned| poisoned.into_inner()) = Instant::now();
        }
    }

    fn tick(&mut self) {
        let due = self.tried.is_none_or(|at| at.elapsed() >= RETRY_INTERVAL);
        if self.watcher.is_none() && due {
            self.tried = Some(Instant::now());
            match Watcher::attach() {
                Ok(watcher) => {
                    self.watcher = Some(watcher);
                    self.kvm = host_facts(&ObserveOptions::default()).kvm;
                }
                Err(error) => self.shared.table().blind = Some(error.line()),
            }
        }
        let Some(watcher) = &self.watcher else { return };
        let read = watcher
            .read()
            .and_then(|host| Ok((host, watcher.health()?.recursion_misses())));
        let mut table = self.shared.table();
        match read {
            Ok((host, missed)) => {
                table.read(&host);
                table.limits = limits(&host, &self.kvm);
                table.health.missed_runs = missed;
                table.blind = None;
            }
            Err(error) => {
                table.health.failed_reads += 1;
                table.health.last_error = Some(error.line());
                table.blind = Some(error.line());
                table.forget();
                self.watcher = None;
            }
        }
    }
}

/// What this host's KVM does not show, and why.
fn limits(host: &WatchedHost, kvm: &KvmFacts) -> Vec<String> {
    let mut limits = Vec::new();
    if !host.sees_exits {
        limits.push(
            "neither kvm_amd nor kvm_intel is loaded: halts and spinning are not seen".to_owned(),
        );
    } else if let (Some(0), _) | (_, Some(0)) = kvm.window_and_gap() {
        limits.push(
            "blind: pause-loop exits are off (a parameter of KVM's module is 0), so spinning is not seen"
                .to_owned(),
        );
    }
    if !host.sees_yields {
        limits.push("this kernel does not show directed yields (CONFIG_FPROBE)".to_owned());
    }
    limits
}

fn sample(shared: &Shared, every: Duration, length: Duration) {
    let mut then = (0, 0);
    while !shared.pause(every) {
        let (now, vcpus) = {
            let table = shared.table();
            (table.run_and_waste_ns(), table.vcpus())
        };
        if !is_worth_it(then, now) {
            then = now;
            continue;
        }
        then = now;
        let taken = burst(length, vcpus, &shared.stop);
        let mut table = shared.table();
        match taken {
            Ok(burst) => table.add(burst),
            Err(error) => {
                table.health.failed_bursts += 1;
                table.health.last_error = Some(error.line());
            }
        }
    }
}

/// Whether VMs have wasted enough since then; both: CPU time and wasted time, ns. Sums fall when VMs go.
fn is_worth_it(then: (u64, u64), now: (u64, u64)) -> bool {
    let run_ns = now.0.saturating_sub(then.0);
    let waste_ns = now.1.saturating_sub(then.1);
    run_ns > 0 && u128::from(waste_ns) * 1000 >= u128::from(run_ns * WORTH_A_BURST_PERMILLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_are_for_hosts_that_waste_something() {
        assert!(!is_worth_it((0, 0), (0, 0)));
        assert!(!is_worth_it((100, 5), (1_100, 9)));
        assert!(is_worth_it((100, 5), (1_100, 10)));
        // VMs have gone: the sums are those of others.
        assert!(!is_worth_it((5_000, 900), (1_000, 10)));
    }

    #[test]
    fn what_kvm_does_not_show_is_said() {
        let host = |sees_exits, sees_yields| WatchedHost {
            sees_exits,
            sees_yields,
            ..WatchedHost::default()
        };
        let kvm = |window: &str| KvmFacts {
            module: Some("kvm_amd".to_owned()),
            parameters: [("pause_filter_count".to_owned(), Some(window.to_owned()))].into(),
        };
        assert_eq!(limits(&host(true, true), &kvm("3000")), [""; 0]);
        assert!(limits(&host(true, true), &kvm("0"))[0].contains("pause-loop exits are off"));
        let none = limits(&host(false, false), &KvmFacts::default());
        assert_eq!(none.len(), 2, "{none:?}");
    }

    #[test]
    fn a_host_that_cannot_be_watched_says_why_and_ends_at_once() {
        let options = LiveOptions {
            interval: Duration::from_secs(3600),
            burst_every: Some(Duration::from_secs(3600)),
            ..LiveOptions::default()
        };
        let began = Instant::now();
        let live = Live::start(options).expect("threads");
        let view = live.view();
        // Where KVM is loaded and this runs as root, it watches.
        assert!(view.blind.is_none() || view.vms.is_empty());
        drop(live);
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
