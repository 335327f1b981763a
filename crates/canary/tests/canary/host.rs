// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host around a canary: VMs in processes of their own, what is said of the scheduler, and who disturbs.

use std::{
    fs,
    hint::black_box,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use unspin_abi::LockKind;
use unspin_canary::{Limits, Measured, ProbeCommand, Request, SAMPLE_MIN};
use unspin_experiment::{Progress, Session};
use unspin_scenario::Vm;

use super::vms::{run_from, vm};

/// How long VMs run that are killed in the end: longer than any check.
const CHILD_MS: u64 = 3_600_000;

/// What this binary does when it is started with a word of its own.
pub fn child() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, lock, vcpus] = &words[..] {
        if word == "vm" {
            let (publishes, lock) = match lock.strip_prefix("telling-") {
                Some(lock) => (true, lock),
                None => (false, lock.as_str()),
            };
            let vm = Vm {
                lock: LockKind::from_name(lock).expect("a lock"),
                wakeup_every_iterations: 0,
                log_records: 0,
                pv_page: publishes,
                ..vm(vcpus.parse().expect("a number"))
            };
            run_from(7, CHILD_MS, vec![vm]);
        }
    }
}

/// VMs, killed when dropped.
pub struct Vms(Vec<Child>);

impl Vms {
    /// So many of so many vCPUs each, that fight for locks of that kind; `telling-`: with pv pages.
    pub fn start(count: usize, vcpus: u32, lock: &str) -> Vms {
        let own = std::env::current_exe().expect("procfs is mounted");
        let start = |_| {
            let mut command = Command::new(&own);
            command.args(["vm", lock, &vcpus.to_string()]);
            command
                .stdout(Stdio::null())
                .spawn()
                .expect("this very binary")
        };
        let vms = Vms((0..count).map(start).collect());
        // A convoy takes a while to form.
        thread::sleep(Duration::from_secs(1));
        vms
    }

    /// The numbers of their threads.
    pub fn threads(&self) -> Vec<i32> {
        let of = |vm: &Child| fs::read_dir(format!("/proc/{}/task", vm.id())).expect("it runs");
        let names = self.0.iter().flat_map(of);
        let numbers = names.map(|entry| entry.expect("a thread").file_name());
        let numbers = numbers.map(|name| name.to_str().and_then(|name| name.parse().ok()));
        numbers.map(|number| number.expect("a number")).collect()
    }

    /// Whether all of them still run.
    pub fn are_running(&mut self) -> bool {
        let mut each = self.0.iter_mut();
        each.all(|vm| vm.try_wait().expect("it is ours").is_none())
    }
}

impl Drop for Vms {
    fn drop(&mut self) {
        for vm in &mut self.0 {
            vm.kill().expect("it is ours");
            vm.wait().expect("it was killed");
        }
    }
}

/// Whether a sched_ext scheduler has the host.
pub fn is_steered() -> bool {
    let state = fs::read_to_string("/sys/kernel/sched_ext/state");
    state.expect("the kernel has sched_ext").trim() == "enabled"
}

/// A canary of that policy, two pairs of the shortest phases, that does not go on.
pub fn request(policy: &str) -> Request {
    let choice: unspin_agent::PolicyChoice = policy.parse().expect("a policy");
    Request {
        chosen: choice.ready(false).expect("it is built"),
        only_vms: false,
        pairs: 2,
        sample: SAMPLE_MIN,
        discard: Duration::from_secs(1),
        probe: None,
        limits: Limits::default(),
        keep: false,
    }
}

/// The same with a probe.
pub fn probed(policy: &str, command: &str) -> Request {
    Request {
        probe: Some(ProbeCommand {
            command: command.to_owned(),
            timeout: Duration::from_secs(2),
        }),
        ..request(policy)
    }
}

/// Prints lines of progress.
struct Lines;

impl Progress for Lines {
    fn line(&self, line: &str) {
        println!("  {line}");
    }
}

/// Runs it; the interrupt may come from anywhere.
pub fn run(
    request: Request,
    interrupt: &Arc<AtomicBool>,
    better: &mut dyn FnMut(&Measured),
) -> Result<Measured, unspin_canary::Error> {
    let session = Session {
        progress: &Lines,
        interrupt: Arc::clone(interrupt),
    };
    unspin_canary::run(request, &session, better)
}

/// While a sched_ext scheduler has the host, real-time threads, as many as there are CPUs, take all of them at once for so long again and
/// again; nobody does before or after.
pub struct Bursts {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Bursts {
    /// Of that length, with pauses as long, all by one clock: bursts that take turns leave a CPU to whoever wakes up.
    pub fn start(length: Duration) -> Bursts {
        let over = Arc::new(AtomicBool::new(false));
        let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get());
        let start = Instant::now();
        let threads = (0..cpus).map(|_| {
            let over = Arc::clone(&over);
            thread::spawn(move || disturb(&over, start, length))
        });
        let threads = threads.collect();
        Bursts { over, threads }
    }
}

fn disturb(over: &AtomicBool, start: Instant, length: Duration) {
    let parameter = libc::sched_param { sched_priority: 1 };
    // SAFETY: a parameter of our own that outlives the call; 0: the calling thread.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameter) };
    assert_eq!(done, 0, "as root");
    for burst in (0..).step_by(2) {
        if over.load(Ordering::Relaxed) {
            return;
        }
        let (begin, end) = (start + length * burst, start + length * (burst + 1));
        thread::sleep(begin.saturating_duration_since(Instant::now()));
        let takes = is_steered();
        while takes && Instant::now() < end {
            black_box(0);
        }
    }
}

impl Drop for Bursts {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("it does not panic");
        }
    }
}
