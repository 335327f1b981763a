// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything at once: stress-ng, VMs that come and are killed, a CPU that goes off and on. The kernel's watchdog, which
//! looks for tasks that nobody runs, must stay quiet.

use std::{
    fmt,
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};
use unspin_testbed::check;

use unspin_testbed::{Input, Options};

use super::{
    host::{counter, set_online, still_there},
    hostile::attaching::Killed,
    vms::steer,
};

/// Where it is installed, on this machine and in the testbed.
const PROGRAM: &str = "/usr/bin/stress-ng";

/// Tasks that fork, switch, sleep, yield, wait for futexes, and change CPU, nice value and scheduling class.
const STRESSORS: &str = "--cpu 1 --switch 1 --fork 1 --yield 1 --futex 1 --nanosleep 1 --pthread 1 --affinity 1 --nice 1 \
                         --schedpolicy 1 --timer 1 --pipe 1";

/// Take slices while VMs and CPUs come and go.
const POLICIES: [&str; 2] = [
    "loan,loan-cpl,kernel-exit,spin-samples",
    "ecs,candidates=strict",
];

/// A VM lives so long, a CPU is off and on so long.
const CHANGE_EVERY: Duration = Duration::from_millis(700);

/// stress-ng with its shared libraries.
pub fn bring(options: &mut Options) {
    let program = Path::new(PROGRAM);
    assert!(
        program.exists(),
        "{PROGRAM} is not there: make setup installs it"
    );
    options.inputs.extend(Input::program(program));
}

/// Killed, with all that it forked, when dropped.
struct StressNg(Child);

impl StressNg {
    fn start() -> StressNg {
        assert!(Path::new(PROGRAM).exists(), "`bring` brings it");
        let mut command = Command::new(PROGRAM);
        command.args(STRESSORS.split_whitespace()).args([
            "--temp-path",
            "/tmp",
            "--timeout",
            "0",
            "--quiet",
        ]);
        StressNg(command.stdout(Stdio::null()).spawn().expect("it runs"))
    }
}

impl Drop for StressNg {
    fn drop(&mut self) {
        // SAFETY: takes numbers only. SIGINT: it ends its children, too.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGINT) };
        self.0.wait().expect("it is ours");
    }
}

check!(STEERER_LONG: stressed_for_seconds);
/// For a few seconds, as in every `make test`.
pub fn stressed_for_seconds() {
    stressed(Duration::from_secs(4));
}

check!(STEERER_LONG: stressed_for_minutes);
/// For ten minutes.
#[allow(dead_code, reason = "in make test-long only")]
pub fn stressed_for_minutes() {
    stressed(Duration::from_secs(600));
}

/// With our scheduler, and before that, for 100 s at most, with the kernel's own: what a sleeper has to put up with there.
fn stressed(time: Duration) {
    let (_, stock) = load(time.min(Duration::from_secs(100)), |_| ());
    let steerer = steer(POLICIES[0], |options| options.candidates = true);
    let (changes, ours) = load(time, |change| {
        still_there(&steerer);
        let next = POLICIES[change as usize % POLICIES.len()].parse();
        let next = next.expect("policies");
        steerer.set_policies(next).expect("at any time");
    });
    assert!(changes as usize >= POLICIES.len(), "{changes}");
    println!("  {changes} VMs killed, {changes} times a CPU off and on");
    println!(
        "  {} loans, {} graces and grants, {} chosen at {} spins",
        counter(&steerer, "lent"),
        counter(&steerer, "granted"),
        counter(&steerer, "chosen"),
        counter(&steerer, "spins"),
    );
    println!("  a sleeper was late by {ours}; with the kernel's own scheduler by {stock}");
    assert!(counter(&steerer, "chosen") > 0);
    // Late by 82 to 199 ms in six runs of seconds: when one CPU of two is off, 25 to 30 tasks share the other, 4 ms each. By 631 ms
    // where stress-ng's thousand threads are woken together (docs/known-issues.md).
    assert!(ours.longest < Duration::from_millis(500), "{ours}");
}

/// By how much a sleeper was late.
#[derive(Default)]
struct Late {
    longest: Duration,
    /// When that was, since the load began, and how many threads there were.
    at: Duration,
    threads: String,
    /// How often it was later than [`GOAL`].
    often: u32,
}

/// No sleeper should be later.
const GOAL: Duration = Duration::from_millis(100);

impl fmt::Display for Late {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (longest, goal) = (self.longest.as_millis(), GOAL.as_millis());
        let (at, threads, often) = (self.at.as_secs(), &self.threads, self.often);
        write!(
            out,
            "{longest} ms at most (after {at} s, with {threads} threads on the host), by more than {goal} ms {often} times"
        )
    }
}

/// Sleeps a millisecond again and again until `over`.
fn sleep_again_and_again(over: &AtomicBool) -> Late {
    let (asked, start) = (Duration::from_millis(1), Instant::now());
    let mut late = Late::default();
    while !over.load(Ordering::Relaxed) {
        let began = Instant::now();
        std::thread::sleep(asked);
        let by = began.elapsed() - asked;
        late.often += u32::from(by > GOAL);
        if by > late.longest {
            late.longest = by;
            late.at = start.elapsed();
            late.threads = threads();
        }
    }
    late
}

/// How many threads there are: the fourth word of /proc/loadavg is RUNNABLE/ALL.
fn threads() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").expect("procfs is mounted");
    let word = text.split(' ').nth(3).and_then(|word| word.split_once('/'));
    word.expect("as the kernel writes it").1.to_owned()
}

/// Runs it all; how often things came and went, and by how much a sleeper was late.
fn load(time: Duration, each: impl Fn(u32)) -> (u32, Late) {
    let _stress = StressNg::start();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| sleep_again_and_again(&over));
        let changes = come_and_go(time, each);
        over.store(true, Ordering::Relaxed);
        (changes, sleeper.join().expect("it sleeps"))
    })
}

/// VMs are started and killed, the second CPU is unplugged and plugged in; how often.
fn come_and_go(time: Duration, each: impl Fn(u32)) -> u32 {
    let began = Instant::now();
    let mut changes = 0;
    while began.elapsed() < time {
        let _vm = Killed::start();
        std::thread::sleep(CHANGE_EVERY);
        set_online(1, false);
        std::thread::sleep(CHANGE_EVERY);
        set_online(1, true);
        std::thread::sleep(CHANGE_EVERY);
        changes += 1;
        each(changes);
    }
    changes
}
