// SPDX-License-Identifier: MIT OR Apache-2.0
//! The host around a scheduler: busy processes, cgroups, CPUs; and what is said of the scheduler that is attached.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use unspin_agent::{SteerOptions, Steerer};

/// What /sys/kernel/sched_ext says: "disabled", "enabled" ...
pub fn state() -> String {
    let state =
        fs::read_to_string("/sys/kernel/sched_ext/state").expect("the kernel has sched_ext");
    state.trim().to_owned()
}

/// A process of one thread that uses all the CPU time it gets, until it is dropped.
pub struct Busy(Child);

impl Busy {
    /// With that nice value, in that cgroup.
    pub fn start(nice: i32, cgroup: Option<&Cgroup>) -> Busy {
        let own = std::env::current_exe().expect("procfs is mounted");
        let mut command = Command::new(own);
        command.arg("busy").stdout(Stdio::null());
        // SAFETY: setpriority() is async-signal-safe and takes numbers only.
        unsafe {
            command.pre_exec(
                move || match libc::setpriority(libc::PRIO_PROCESS, 0, nice) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                },
            );
        }
        let child = command.spawn().expect("it is this very binary");
        if let Some(cgroup) = cgroup {
            cgroup.adopt(child.id());
        }
        Busy(child)
    }

    /// So many threads instead of one.
    pub fn threads(threads: u32) -> Busy {
        let own = std::env::current_exe().expect("procfs is mounted");
        let mut command = Command::new(own);
        command.args(["busy", &threads.to_string()]);
        Busy(
            command
                .stdout(Stdio::null())
                .spawn()
                .expect("this very binary"),
        )
    }

    /// One that the kernel runs BPF programs for: nearly always where it cannot be moved to another CPU.
    pub fn stuck() -> Busy {
        let own = std::env::current_exe().expect("procfs is mounted");
        let mut command = Command::new(own);
        Busy(command.arg("stuck").spawn().expect("this very binary"))
    }

    /// CPU time so far: the first number of /proc/PID/schedstat.
    pub fn cpu_time(&self) -> Duration {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.0.id()));
        let text = text.expect("it runs");
        let ns = text.split(' ').next().and_then(|word| word.parse().ok());
        Duration::from_nanos(ns.expect("a number"))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it was killed");
    }
}

/// CPU time of each in that time.
pub fn shares(processes: &[&Busy], time: Duration) -> Vec<f64> {
    // Those that have just started, or have been moved, catch up first.
    std::thread::sleep(Duration::from_millis(250));
    let times = || processes.iter().map(|process| process.cpu_time());
    let before: Vec<Duration> = times().collect();
    std::thread::sleep(time);
    let spent = times()
        .zip(before)
        .map(|(now, then)| (now - then).as_secs_f64());
    spent.collect()
}

/// A cgroup with the cpu controller, until it is dropped.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// At that place below the root, with that weight.
    pub fn new(place: &str, weight: u32) -> Cgroup {
        let folder = PathBuf::from("/sys/fs/cgroup").join(place);
        let parent = folder.parent().expect("below the root");
        fs::write(parent.join("cgroup.subtree_control"), "+cpu").expect("the cpu controller");
        fs::create_dir(&folder).expect("a new cgroup");
        fs::write(folder.join("cpu.weight"), weight.to_string()).expect("a weight");
        Cgroup(folder)
    }

    /// Where it is.
    pub fn folder(&self) -> &PathBuf {
        &self.0
    }

    /// A process moves into it, with all its threads.
    pub fn adopt(&self, process: u32) {
        fs::write(self.0.join("cgroup.procs"), process.to_string()).expect("it takes a process");
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // A process that was killed may take a moment to leave.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{} stays busy", self.0.display());
    }
}

/// Lets a process of one thread run on these CPUs only; 0: the calling thread.
pub fn pin(process: u32, cpus: &[usize]) {
    // SAFETY: a set of our own; the calls touch nothing else.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            libc::CPU_SET(*cpu, &mut set);
        }
        let done = libc::sched_setaffinity(process as i32, size_of_val(&set), &set);
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

/// Puts a CPU off or on.
pub fn set_online(cpu: u32, online: bool) {
    let file = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    fs::write(file, if online { "1" } else { "0" }).expect("CPUs can be unplugged");
}

/// The value of a counter.
pub fn counter(steerer: &Steerer, name: &str) -> u64 {
    let counters = steerer.counters().expect("the kernel tells");
    let found = counters.iter().find(|counter| counter.counter == name);
    found.expect("a counter of that name").value
}

/// Nothing ended the scheduler, and it did the scheduling.
#[track_caller]
pub fn still_there(steerer: &Steerer) {
    assert_eq!(steerer.ended().expect("the kernel tells"), None);
    assert_eq!(state(), "enabled");
    assert!(counter(steerer, "switches") > 0);
}

/// Shares are within 2 % of what they should be.
#[track_caller]
pub fn are_close(measured: &[f64], weights: &[f64]) {
    let (sum, weight) = (measured.iter().sum::<f64>(), weights.iter().sum::<f64>());
    for (time, wanted) in measured.iter().zip(weights) {
        let (share, wanted) = (time / sum, wanted / weight);
        assert!(
            (share / wanted - 1.0).abs() < 0.02,
            "{measured:?} for weights {weights:?}: a share is {share:.4} instead of {wanted:.4}"
        );
    }
    println!("  {measured:.3?} for {weights:?}");
}

/// Until the scheduler's state is that.
pub fn wait_for(wanted: &str, limit: Duration) {
    let began = Instant::now();
    while state() != wanted {
        assert!(began.elapsed() < limit, "after {limit:?} it is {}", state());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A scheduler as it is without options.
pub fn attach() -> Steerer {
    match Steerer::attach(&SteerOptions::default()) {
        Ok(steerer) => steerer,
        Err(error) => panic!("{error}"),
    }
}
