// SPDX-License-Identifier: MIT OR Apache-2.0
//! Memory is short: in the memory cgroup of whoever steers, for which all counts that the scheduler keeps of tasks, or in its maps
//! of cgroups.

use std::{
    fs,
    io::Read,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use unspin_agent::Steerer;
use unspin_testbed::check;

use crate::steerer::host::{Busy, attach, counter, shares, state, still_there};

const ROOT: &str = "/sys/fs/cgroup";

/// What this binary does when it is started as `steer-in FOLDER`: it steers from within that cgroup, until it is killed.
pub fn child() {
    let words: Vec<String> = std::env::args().skip(1).take(2).collect();
    let [word, folder] = &words[..] else {
        return;
    };
    if word != "steer-in" {
        return;
    }
    fs::write(Path::new(folder).join("cgroup.procs"), "0").expect("it takes this process");
    let _steerer = match Steerer::attach(&Default::default()) {
        Ok(steerer) => steerer,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1);
        }
    };
    loop {
        std::thread::park();
    }
}

/// A cgroup with a limit of memory, removed when dropped.
struct Limited(PathBuf);

impl Limited {
    fn new(name: &str, bytes: &str) -> Limited {
        let control = Path::new(ROOT).join("cgroup.subtree_control");
        fs::write(control, "+memory").expect("the memory controller");
        let folder = Path::new(ROOT).join(name);
        fs::create_dir(&folder).expect("a new cgroup");
        let limited = Limited(folder);
        limited.limit(bytes);
        limited
    }

    fn limit(&self, bytes: &str) {
        fs::write(self.0.join("memory.max"), bytes).expect("a limit");
    }

    /// A number of one of its files; of `memory.current` when `key` is empty.
    fn number(&self, file: &str, key: &str) -> u64 {
        let text = fs::read_to_string(self.0.join(file)).expect("a memory cgroup has it");
        let mut lines = text.lines();
        let word = lines
            .find_map(|line| line.strip_prefix(key))
            .expect("the key");
        word.trim().parse().expect("a number")
    }

    fn steer(&self) -> Child {
        let own = std::env::current_exe().expect("procfs is mounted");
        let mut command = Command::new(own);
        command.arg("steer-in").arg(&self.0).stderr(Stdio::piped());
        command.spawn().expect("this very binary")
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A child of this process that sleeps until it is killed.
struct Asleep(libc::pid_t);

impl Asleep {
    /// The error of fork() when there is none.
    fn fork() -> Result<Asleep, i32> {
        // SAFETY: the child makes two system calls that take numbers only.
        match unsafe { libc::fork() } {
            -1 => Err(std::io::Error::last_os_error()
                .raw_os_error()
                .expect("errno")),
            0 => loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            },
            child => Ok(Asleep(child)),
        }
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        // SAFETY: a child of ours that nobody has waited for, so the number is its own.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

check!(FAILURE: a_limit_of_memory_that_is_too_small_is_said);
/// Or, where its own pages do not fit either, the kernel kills it for want of memory: it has never scheduled then.
fn a_limit_of_memory_that_is_too_small_is_said() {
    let busy = Busy::start(0, None);
    let limited = Limited::new("tight", "4M");
    let mut child = limited.steer();
    let status = child.wait().expect("it is ours");
    let mut says = String::new();
    let mut stderr = child.stderr.take().expect("it is piped");
    stderr.read_to_string(&mut says).expect("it has ended");
    println!("  {status}: {}", says.trim());
    assert_eq!(state(), "disabled");
    if status.signal() != Some(libc::SIGKILL) {
        assert_eq!(status.code(), Some(1), "{says}");
        assert!(
            says.contains("memory is short") && says.contains("memory.max"),
            "{says}"
        );
    }
    assert!(shares(&[&busy], Duration::from_millis(200))[0] > 0.05);
}

check!(FAILURE: forks_fail_cleanly_when_its_memory_is_used_up);
/// The host's forks fail with ENOMEM, as fork(2) says, and go on when there is room again; nothing else happens.
fn forks_fail_cleanly_when_its_memory_is_used_up() {
    let busy = Busy::start(0, None);
    let limited = Limited::new("full", "max");
    let mut steerer = limited.steer();
    let began = Instant::now();
    while state() != "enabled" {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "it does not attach"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let used = limited.number("memory.current", "");
    limited.limit(&(used + (256 << 10)).to_string());
    let mut children = Vec::new();
    let refused = loop {
        match Asleep::fork() {
            Ok(child) => children.push(child),
            Err(errno) => break errno,
        }
        assert!(children.len() < 4_000, "there is no end to it");
    };
    println!(
        "  {} MiB used; errno {refused} after {} forks; {} killed for want of memory",
        used >> 20,
        children.len(),
        limited.number("memory.events", "oom_kill ")
    );
    assert_eq!(refused, libc::ENOMEM);
    // Who runs goes on, under our scheduler.
    assert!(shares(&[&busy], Duration::from_millis(200))[0] > 0.05);
    assert_eq!(state(), "enabled");
    assert!(steerer.try_wait().expect("it is ours").is_none());
    limited.limit("max");
    children.push(Asleep::fork().expect("there is room again"));
    drop(children);
    steerer.kill().expect("it is ours");
    steerer.wait().expect("it was killed");
    assert_eq!(state(), "disabled");
}

check!(STEERER_LONG: more_cgroups_than_there_is_room_for);
/// They count as the nearest one above that has room; none is refused.
fn more_cgroups_than_there_is_room_for() {
    let control = Path::new(ROOT).join("cgroup.subtree_control");
    fs::write(control, "+cpu").expect("the cpu controller");
    let steerer = attach();
    // Twice those that exist at attach, and 4,096.
    let folders: Vec<PathBuf> = (0..4_300)
        .map(|number| Path::new(ROOT).join(format!("crowd{number}")))
        .collect();
    for folder in &folders {
        let made = fs::create_dir(folder);
        made.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    }
    let folded = counter(&steerer, "groups_folded");
    println!("  {folded} of {} count as their parent", folders.len());
    assert!(folded > 0);
    // A task of one that has no room runs, and may go to one below it, and back.
    let last = folders.last().expect("many");
    let busy = Busy::start(0, None);
    let put = |folder: &Path| {
        fs::write(folder.join("cgroup.procs"), busy.id().to_string()).expect("it takes a process");
    };
    put(last);
    assert!(shares(&[&busy], Duration::from_millis(100))[0] > 0.05);
    put(Path::new(ROOT));
    let below = last.join("below");
    fs::write(last.join("cgroup.subtree_control"), "+cpu").expect("nobody is in it");
    fs::create_dir(&below).expect("any depth");
    // Its weight is nobody's, and above all not that of the root.
    fs::write(below.join("cpu.weight"), "10000").expect("a weight");
    put(&below);
    assert!(shares(&[&busy], Duration::from_millis(100))[0] > 0.05);
    put(Path::new(ROOT));
    fs::remove_dir(&below).expect("it is empty");
    for folder in &folders {
        fs::remove_dir(folder).expect("it is empty");
    }
    // Room is given back.
    let again = Path::new(ROOT).join("again");
    fs::create_dir(&again).expect("a new cgroup");
    assert_eq!(counter(&steerer, "groups_folded"), folded + 1);
    fs::remove_dir(&again).expect("it is empty");
    still_there(&steerer);
}
