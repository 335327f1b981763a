// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the host sees of its VMs, window by window: useful and spin time by the programs of `auto` (bpf/useful_time), run and wait time
//! of vCPUs' threads by the kernel's own figures (/proc/PID/task/TID/schedstat).

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    time::{Duration, Instant},
};

use procfs::{
    FromRead,
    process::{Schedstat, Stat},
};
use unspin_agent::{Error, UsefulTimeMeter};
use unspin_policy::auto::UsefulTime;
use unspin_vms::{Look, look};

/// Threads are listed again after so many windows: a second. To list one takes as long as to read it.
const LISTED_EVERY: u32 = 4;
/// So many threads are read at most, some 10 us each four times a second: 4 % of a CPU. VMs beyond it are measured by their useful time alone.
const THREADS_MAX: usize = 1024;
/// A VM that wants less of a CPU has nothing to lose: a fiftieth, as `auto` has it (docs/decisions/auto.md, trials).
const IDLE: u32 = 50;

/// One VM's part of a window, or of a phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VmWindow {
    /// Its vCPUs' threads on a CPU, guest and KVM together; ns.
    pub run_ns: u64,
    /// The same without a CPU, and ready to run; ns.
    pub wait_ns: u64,
    /// Its vCPUs in their guest; ns.
    pub guest_ns: u64,
    /// Of it spinning; ns.
    pub spin_ns: u64,
    /// Of each vCPU's thread that waited in a window, how long before each run, ns: the wait by the runs that began.
    pub delays_ns: Vec<u64>,
}

/// All VMs, by number, and the sleeper.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// How long it is.
    pub length: Duration,
    /// By number.
    pub vms: BTreeMap<usize, VmWindow>,
    /// How late the sleeper woke up each time, ns.
    pub late_ns: Vec<u64>,
}

impl VmWindow {
    /// Time in the guest that was not spun, ns.
    pub fn useful_ns(&self) -> u64 {
        self.guest_ns.saturating_sub(self.spin_ns)
    }

    /// Time in which its vCPUs ran or wanted to, ns; `None`: next to nothing, nobody can harm it.
    fn wanted_ns(&self, length: Duration) -> Option<u64> {
        let wanted_ns = self.run_ns + self.wait_ns;
        let idle_ns = (length / IDLE).as_nanos();
        (u128::from(wanted_ns) >= idle_ns && wanted_ns > 0).then_some(wanted_ns)
    }

    /// Useful time as a share of the time in which vCPUs ran or waited, 0 to 1. A load that becomes less does not change it.
    pub fn useful_share(&self, length: Duration) -> Option<f64> {
        let wanted_ns = self.wanted_ns(length)?;
        Some((self.useful_ns() as f64 / wanted_ns as f64).min(1.0))
    }

    /// Spin time as a share of the time in the guest, percent.
    pub fn spin_percent(&self, length: Duration) -> Option<f64> {
        self.wanted_ns(length)?;
        (self.guest_ns > 0)
            .then(|| 100.0 * (self.spin_ns as f64 / self.guest_ns as f64).clamp(0.0, 1.0))
    }

    /// 99th percentile of `delays_ns`.
    pub fn run_delay_p99_ns(&self, length: Duration) -> Option<u64> {
        self.wanted_ns(length)?;
        percentile(&self.delays_ns, 0.99)
    }

    fn add(&mut self, other: &VmWindow) {
        self.run_ns += other.run_ns;
        self.wait_ns += other.wait_ns;
        self.guest_ns += other.guest_ns;
        self.spin_ns += other.spin_ns;
        self.delays_ns.extend(&other.delays_ns);
    }
}

impl Window {
    /// 99th percentile of the sleeper's delays, ns.
    pub fn sleeper_p99_ns(&self) -> Option<u64> {
        percentile(&self.late_ns, 0.99)
    }

    /// Both, one after the other.
    pub(crate) fn add(&mut self, other: &Window) {
        self.length += other.length;
        self.late_ns.extend(&other.late_ns);
        for (number, vm) in &other.vms {
            self.vms.entry(*number).or_default().add(vm);
        }
    }
}

/// The least of the values that so large a share of them does not exceed; `None`: there are none.
pub fn percentile(values: &[u64], share: f64) -> Option<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// A VM that was seen. Numbers are places in [`Reader::vms`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmAbout {
    /// Its process.
    pub process: u32,
    /// What its manager calls it, else its program's name.
    pub name: String,
    start_ticks: u64,
}

/// Reads windows, one after the other.
pub(crate) struct Reader {
    meter: UsefulTimeMeter,
    vms: Vec<VmAbout>,
    /// Numbers of those that are there, by process.
    numbers: BTreeMap<u32, usize>,
    threads: BTreeMap<u32, Thread>,
    sums: BTreeMap<u32, UsefulTime>,
    when: Instant,
    windows: u32,
    /// VMs of which there was no room for the threads.
    unread: BTreeSet<usize>,
}

struct Thread {
    process: u32,
    counted: Option<Counted>,
}

impl Reader {
    /// Attaches the programs.
    ///
    /// # Errors
    /// When KVM is not loaded, rights are missing or the kernel refuses.
    pub(crate) fn attach() -> Result<Reader, Error> {
        Ok(Reader {
            meter: UsefulTimeMeter::attach()?,
            vms: Vec::new(),
            numbers: BTreeMap::new(),
            threads: BTreeMap::new(),
            sums: BTreeMap::new(),
            when: Instant::now(),
            windows: 0,
            unread: BTreeSet::new(),
        })
    }

    /// Every VM that was ever seen, by number.
    pub(crate) fn vms(&self) -> &[VmAbout] {
        &self.vms
    }

    /// VMs of which run and wait times are not read: there are too many threads.
    pub(crate) fn unread(&self) -> usize {
        self.unread.len()
    }

    /// What was done since the last call, without the sleeper.
    ///
    /// # Errors
    /// When the kernel refuses to read a map.
    pub(crate) fn read(&mut self) -> Result<Window, Error> {
        let now = Instant::now();
        let mut window = Window {
            length: now - self.when,
            ..Window::default()
        };
        self.when = now;
        let sums = self.meter.read()?;
        for (process, sum) in &sums {
            let before = self.sums.get(process);
            let (Some(before), Some(number)) = (before, self.numbers.get(process)) else {
                continue; // It is seen from now on.
            };
            let grown = sum.since(before);
            let vm = window.vms.entry(*number).or_default();
            (vm.guest_ns, vm.spin_ns) = (grown.guest_ns, grown.spin_ns);
        }
        self.sums = sums;
        self.read_threads(&mut window);
        if self.windows % LISTED_EVERY == 0 {
            self.list()?;
        }
        self.windows += 1;
        Ok(window)
    }

    fn read_threads(&mut self, window: &mut Window) {
        let length_ns = u64::try_from(window.length.as_nanos()).unwrap_or(u64::MAX);
        for (id, thread) in &mut self.threads {
            let Some(number) = self.numbers.get(&thread.process) else {
                continue;
            };
            let folder = format!("/proc/{}/task/{id}", thread.process);
            // It may have ended.
            let Ok(read) = Schedstat::from_file(format!("{folder}/schedstat")) else {
                continue;
            };
            let waits = || is_ready(&folder);
            let grown = match &mut thread.counted {
                Some(counted) => counted.grown(&read, length_ns, waits),
                new => {
                    *new = Some(Counted::of(&read));
                    continue;
                }
            };
            let vm = window.vms.entry(*number).or_default();
            vm.run_ns += grown.run_ns;
            vm.wait_ns += grown.wait_ns;
            vm.delays_ns.extend(grown.delay_ns);
        }
    }

    /// VMs and threads come and go.
    fn list(&mut self) -> Result<(), Error> {
        let mut by_process: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (thread, process) in self.meter.threads()?.read()? {
            by_process.entry(process).or_default().push(thread);
        }
        self.numbers
            .retain(|process, _| by_process.contains_key(process));
        let mut room = THREADS_MAX;
        let mut kept = BTreeMap::new();
        self.unread.clear();
        for (process, threads) in by_process {
            let number = self.number(process);
            match room.checked_sub(threads.len()) {
                None => drop(self.unread.insert(number)),
                Some(rest) => {
                    room = rest;
                    for thread in threads {
                        let before = self.threads.remove(&thread);
                        let counted = before.and_then(|before| before.counted);
                        kept.insert(thread, Thread { process, counted });
                    }
                }
            }
        }
        self.threads = kept;
        Ok(())
    }

    /// The number of the VM that this process runs now.
    fn number(&mut self, process: u32) -> usize {
        if let Some(number) = self.numbers.get(&process) {
            return *number;
        }
        let (name, start_ticks) = match look(Path::new("/proc"), process) {
            Look::Found(vm) => (vm.identity.called().unwrap_or(vm.comm), vm.start_ticks),
            Look::Hidden | Look::Ended => ("hidden".to_owned(), 0),
        };
        let about = VmAbout {
            process,
            name,
            start_ticks,
        };
        let known = self.vms.iter().position(|vm| *vm == about);
        let number = known.unwrap_or_else(|| {
            self.vms.push(about);
            self.vms.len() - 1
        });
        self.numbers.insert(process, number);
        number
    }
}

/// Whether that thread is ready to run (proc_pid_stat(5), field 3): one that did not run meanwhile has waited.
fn is_ready(folder: &str) -> bool {
    Stat::from_file(format!("{folder}/stat")).is_ok_and(|stat| stat.state == 'R')
}

/// What a thread had done at the last reading.
struct Counted {
    run_ns: u64,
    delay_ns: u64,
    runs: u64,
    /// Of a wait that goes on, what was counted already: the kernel counts it when it ends (sched_info_arrive(), kernel/sched/stats.h, Linux 7.2).
    credited_ns: u64,
}

/// What it has done since.
#[derive(Debug, PartialEq, Eq)]
struct Grown {
    run_ns: u64,
    wait_ns: u64,
    /// How long it waited before each run; `None`: it did not.
    delay_ns: Option<u64>,
}

impl Counted {
    fn of(read: &Schedstat) -> Counted {
        Counted {
            run_ns: read.sum_exec_runtime,
            delay_ns: read.run_delay,
            runs: read.pcount,
            credited_ns: 0,
        }
    }

    fn grown(&mut self, read: &Schedstat, length_ns: u64, waits: impl Fn() -> bool) -> Grown {
        let run_ns = read.sum_exec_runtime.saturating_sub(self.run_ns);
        let delay_ns = read.run_delay.saturating_sub(self.delay_ns);
        let runs = read.pcount.saturating_sub(self.runs);
        if run_ns == 0 && runs == 0 {
            if !waits() {
                return Grown {
                    run_ns: 0,
                    wait_ns: 0,
                    delay_ns: None,
                };
            }
            self.credited_ns += length_ns;
            return Grown {
                run_ns: 0,
                wait_ns: length_ns,
                delay_ns: Some(self.credited_ns),
            };
        }
        let credited_ns = match runs {
            0 => 0,
            _ => self.credited_ns,
        };
        *self = Counted::of(read);
        Grown {
            run_ns,
            wait_ns: delay_ns.saturating_sub(credited_ns),
            delay_ns: delay_ns.checked_div(runs),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_millis(250);
    const LENGTH_NS: u64 = 250_000_000;

    fn read(run: u64, delay: u64, runs: u64) -> Schedstat {
        let text = format!("{run} {delay} {runs}\n");
        Schedstat::from_read(text.as_bytes()).expect("three numbers")
    }

    #[test]
    fn a_thread_that_runs_waits_so_long_before_each_run() {
        let mut counted = Counted::of(&read(100, 1_000, 5));
        let grown = counted.grown(&read(160, 1_900, 8), LENGTH_NS, || false);
        let expected = Grown {
            run_ns: 60,
            wait_ns: 900,
            delay_ns: Some(300),
        };
        assert_eq!(grown, expected);
        // It goes on without a switch.
        let grown = counted.grown(&read(200, 1_900, 8), LENGTH_NS, || true);
        assert_eq!((grown.run_ns, grown.wait_ns, grown.delay_ns), (40, 0, None));
    }

    #[test]
    fn a_wait_that_goes_on_is_seen_and_counted_once() {
        let mut counted = Counted::of(&read(100, 0, 1));
        let stays = read(100, 0, 1);
        for windows in 1..=2 {
            let grown = counted.grown(&stays, LENGTH_NS, || true);
            assert_eq!(grown.wait_ns, LENGTH_NS);
            assert_eq!(grown.delay_ns, Some(windows * LENGTH_NS));
        }
        // It ends after 2.5 windows.
        let grown = counted.grown(&read(101, 5 * LENGTH_NS / 2, 2), LENGTH_NS, || false);
        assert_eq!(grown.wait_ns, LENGTH_NS / 2);
        assert_eq!(grown.delay_ns, Some(5 * LENGTH_NS / 2));
        // One that sleeps does not wait.
        let asleep = read(101, 5 * LENGTH_NS / 2, 2);
        let grown = counted.grown(&asleep, LENGTH_NS, || false);
        assert_eq!((grown.wait_ns, grown.delay_ns), (0, None));
    }

    #[test]
    fn shares_are_of_what_a_vm_wants() {
        let busy = VmWindow {
            run_ns: 100_000_000,
            wait_ns: 300_000_000,
            guest_ns: 90_000_000,
            spin_ns: 45_000_000,
            delays_ns: vec![5, 1, 9],
        };
        let share = busy.useful_share(LENGTH).expect("it runs");
        assert!((share - 45.0 / 400.0).abs() < 1e-12, "{share}");
        assert_eq!(busy.spin_percent(LENGTH), Some(50.0));
        assert_eq!(busy.run_delay_p99_ns(LENGTH), Some(9));
        let idle = VmWindow {
            run_ns: 4_000_000,
            ..busy.clone()
        };
        let idle = VmWindow { wait_ns: 0, ..idle };
        assert_eq!(idle.useful_share(LENGTH), None);
        assert_eq!(idle.spin_percent(LENGTH), None);
        assert_eq!(VmWindow::default().useful_share(Duration::ZERO), None);
        // One that wants to and gets nothing is not idle.
        let starved = VmWindow {
            wait_ns: LENGTH_NS,
            ..VmWindow::default()
        };
        assert_eq!(starved.useful_share(LENGTH), Some(0.0));
        assert_eq!(starved.spin_percent(LENGTH), None);
    }

    #[test]
    fn windows_add_up() {
        let vm = |run_ns| VmWindow {
            run_ns,
            delays_ns: vec![run_ns],
            ..VmWindow::default()
        };
        let window = |number, run_ns| Window {
            length: LENGTH,
            vms: [(number, vm(run_ns))].into(),
            late_ns: vec![run_ns],
        };
        let mut sum = window(1, 5);
        sum.add(&window(2, 6));
        sum.add(&window(1, 7));
        assert_eq!(sum.length, 3 * LENGTH);
        assert_eq!((sum.vms[&1].run_ns, sum.vms[&2].run_ns), (12, 6));
        assert_eq!(sum.vms[&1].delays_ns, [5, 7]);
        assert_eq!(sum.sleeper_p99_ns(), Some(7));
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        assert_eq!(percentile(&[], 0.99), None);
        assert_eq!(percentile(&[7], 0.5), Some(7));
        let hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(percentile(&hundred, 0.5), Some(50));
        assert_eq!(percentile(&hundred, 0.99), Some(99));
        assert_eq!(percentile(&hundred, 1.0), Some(100));
    }
}
