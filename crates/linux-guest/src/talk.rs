// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest says, line by line, and what is made of it. A guest is not trusted: lines and totals are bounded, and a
//! number that cannot be is refused.
//!
//! All of it together is what a run of Linux guests brought ([`Report`]).

use crate::load::Load;
use crate::outcome::{self, Outcome};

/// Longest line taken; the kernel's own log lines have at most some 1,000 bytes.
pub const LINE_BYTES: u64 = 4096;
/// Most bytes of the guest's log that are kept.
const LOG_BYTES: usize = 64 << 10;
/// Most bytes of what a load wrote in one run.
const OUTPUT_BYTES: usize = 64 << 10;
/// Most runs that are kept.
const RUNS: usize = 100_000;
/// The kernel shows CPU time in hundredths of a second (USER_HZ, Documentation/filesystems/proc.rst).
const TICK_NS: u64 = 10_000_000;
/// A year: no guest boots longer.
const LONGEST_S: f64 = 366.0 * 86_400.0;

/// What the guest's kernel has counted, over all its CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rescheduling interrupts (`RES` of /proc/interrupts).
    pub reschedules: u64,
    /// Function-call interrupts (`CAL`): all of them, shootdowns among them.
    pub function_calls: u64,
    /// TLB shootdowns received (`TLB`).
    pub tlb_shootdowns: u64,
    /// Time that its vCPUs wanted to run and did not, as the host told it; 0 without the steal-time feature.
    pub steal_ns: u64,
}

impl Counts {
    fn since(self, earlier: Counts) -> Counts {
        Counts {
            reschedules: self.reschedules.saturating_sub(earlier.reschedules),
            function_calls: self.function_calls.saturating_sub(earlier.function_calls),
            tlb_shootdowns: self.tlb_shootdowns.saturating_sub(earlier.tlb_shootdowns),
            steal_ns: self.steal_ns.saturating_sub(earlier.steal_ns),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Counts) -> Counts {
        Counts {
            reschedules: self.reschedules.saturating_add(other.reschedules),
            function_calls: self.function_calls.saturating_add(other.function_calls),
            tlb_shootdowns: self.tlb_shootdowns.saturating_add(other.tlb_shootdowns),
            steal_ns: self.steal_ns.saturating_add(other.steal_ns),
        }
    }
}

/// One run of the load, as the guest saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What the load says of it.
    pub outcome: Outcome,
    /// What the guest's kernel counted from the end of the run before (the order to begin, for the first) to its end.
    pub counts: Counts,
}

/// Everything that one guest has said so far.
#[derive(Clone, Debug)]
pub struct Said {
    /// What it runs.
    pub load: Load,
    /// Its kernel's release.
    pub kernel: Option<String>,
    /// Lines of its kernel's log about paravirtual features.
    pub log: String,
    /// Its kernel's own time when it was ready, in nanoseconds since the kernel's start.
    pub ready_ns: Option<u64>,
    /// Whole runs.
    pub runs: Vec<Run>,
    /// Symbols of its kernel as /proc/kallsyms has them; `None` until asked for.
    pub symbols: Option<String>,
    /// All symbols are there.
    pub symbols_whole: bool,
    /// Why its load failed.
    pub failed: Option<String>,
    counting: Counts,
    counted: Option<Counts>,
    /// What the load has written in this run.
    output: String,
    outcome: Option<Outcome>,
}

impl Said {
    /// Nothing yet, of a guest that runs this load.
    pub fn of(load: Load) -> Said {
        Said {
            load,
            kernel: None,
            log: String::new(),
            ready_ns: None,
            runs: Vec::new(),
            symbols: None,
            symbols_whole: false,
            failed: None,
            counting: Counts::default(),
            counted: None,
            output: String::new(),
            outcome: None,
        }
    }

    /// From now on lines are symbols, until the guest says "end".
    pub fn expect_symbols(&mut self) {
        self.symbols = Some(String::new());
    }

    /// Takes one line, without its end.
    ///
    /// # Errors
    /// Why the line cannot be.
    pub fn take(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(symbols) = self.symbols.as_mut().filter(|_| !self.symbols_whole) {
            if line == "end" {
                self.symbols_whole = true;
            } else {
                symbols.push_str(line);
                symbols.push('\n');
            }
            return Ok(());
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "kernel" => self.kernel = Some(rest.to_owned()),
            "log" if self.log.len() + rest.len() < LOG_BYTES => {
                self.log.push_str(rest);
                self.log.push('\n');
            }
            "log" => return Err("its log is too long"),
            "ready" => self.ready_ns = Some(seconds(rest)?),
            "said" if self.output.len() + rest.len() < OUTPUT_BYTES => {
                self.output.push_str(rest);
                self.output.push('\n');
            }
            "said" => return Err("its load says too much"),
            "run" => {
                let output = std::mem::take(&mut self.output);
                self.outcome = Some(outcome::parse(self.load, &output)?);
            }
            "count" => self.count(rest)?,
            "failed" => self.failed = Some(rest.to_owned()),
            _ => return Err("no such word"),
        }
        Ok(())
    }

    /// One line of counters; the CPU time comes last and ends a run.
    fn count(&mut self, rest: &str) -> Result<(), &'static str> {
        let (name, numbers) = rest.split_once(':').ok_or("a count needs a name")?;
        let numbers = numbers
            .split_whitespace()
            .map_while(|number| number.parse::<u64>().ok());
        let total = |numbers: &mut dyn Iterator<Item = u64>| {
            numbers.fold(0, |sum: u64, number| sum.saturating_add(number))
        };
        match name {
            "RES" => self.counting.reschedules = total(&mut { numbers }),
            "CAL" => self.counting.function_calls = total(&mut { numbers }),
            "TLB" => self.counting.tlb_shootdowns = total(&mut { numbers }),
            // user nice system idle iowait irq softirq steal (Documentation/filesystems/proc.rst, 1.7)
            "cpu" => {
                let ticks = { numbers }.nth(7).ok_or("no steal time in it")?;
                self.counting.steal_ns = ticks.saturating_mul(TICK_NS);
                return self.end_of_run();
            }
            _ => return Err("no such count"),
        }
        Ok(())
    }

    fn end_of_run(&mut self) -> Result<(), &'static str> {
        let earlier = self.counted.replace(self.counting);
        match (earlier, self.outcome.take()) {
            (None, None) => Ok(()),
            (Some(earlier), Some(outcome)) if self.runs.len() < RUNS => {
                self.runs.push(Run {
                    outcome,
                    counts: self.counting.since(earlier),
                });
                Ok(())
            }
            (Some(_), Some(_)) => Err("too many runs"),
            _ => Err("runs and counts do not alternate"),
        }
    }
}

/// Seconds with a fraction, as nanoseconds.
fn seconds(text: &str) -> Result<u64, &'static str> {
    match text.trim().parse::<f64>() {
        Ok(value) if (0.0..LONGEST_S).contains(&value) => Ok((value * 1e9) as u64),
        _ => Err("not a time"),
    }
}

/// The run as a whole.
#[derive(Clone, Debug)]
pub struct Report {
    /// The command that each guest repeated.
    pub command: String,
    /// From the order to begin until every VM had done its runs, by this host's clock.
    pub window_ns: u64,
    /// Each VM.
    pub vms: Vec<VmReport>,
    /// The guest kernel's symbols, as its /proc/kallsyms has them, when they were asked for.
    pub symbols: Option<String>,
}

/// One VM.
#[derive(Clone, Debug)]
pub struct VmReport {
    /// `linux0`, `linux1`, ...; QEMU's process is named so too.
    pub name: String,
    /// Process id of its QEMU.
    pub process: u32,
    /// The guest kernel's release.
    pub kernel: Option<String>,
    /// From the start of QEMU until the guest was ready, by this host's clock.
    pub boot_ns: Option<u64>,
    /// From the start of the guest's kernel until then, by the guest's clock.
    pub guest_boot_ns: Option<u64>,
    /// The runs that were waited for.
    pub runs: Vec<Run>,
}

impl VmReport {
    /// Mean time of a run; `None` without one.
    pub fn mean_load_ns(&self) -> Option<f64> {
        let total: f64 = self.runs.iter().map(|run| run.outcome.load_ns as f64).sum();
        (!self.runs.is_empty()).then(|| total / self.runs.len() as f64)
    }

    /// Shortest and longest run; `None` without one.
    pub fn range_load_ns(&self) -> Option<(u64, u64)> {
        let times = || self.runs.iter().map(|run| run.outcome.load_ns);
        Some((times().min()?, times().max()?))
    }

    /// Mean of what each run says of something; `None` without a run, or where one does not say it.
    pub fn mean(&self, of: impl Fn(&Outcome) -> Option<f64>) -> Option<f64> {
        let values: Option<Vec<f64>> = self.runs.iter().map(|run| of(&run.outcome)).collect();
        let values = values.filter(|values| !values.is_empty())?;
        Some(values.iter().sum::<f64>() / values.len() as f64)
    }

    /// What the guest counted in its runs; `None` without one.
    pub fn counts(&self) -> Option<Counts> {
        self.runs.iter().map(|run| run.counts).reduce(Counts::plus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(lines: &str) -> Said {
        let mut said = Said::of(Load::Hackbench);
        for line in lines.lines() {
            said.take(line)
                .unwrap_or_else(|why| panic!("{line:?}: {why}"));
        }
        said
    }

    const COUNTS: &str = "count RES:  85   91 Rescheduling interrupts\ncount CAL: 20 30 Function call interrupts\n\
                          count TLB: 1 2 TLB shootdowns\ncount cpu: 82 0 1700 1870 0 0 111 4553 0 0\n";

    #[test]
    fn a_guest_from_start_to_its_first_run() {
        let after = COUNTS.replace("85", "95").replace("4553", "4560");
        let said = said(&format!(
            "kernel 7.2.12\nlog [0.1] kvm-guest: PV spinlocks enabled\nready 3.25\n{COUNTS}said Each sender\n\
             said Time: 1.437\nrun\n{after}"
        ));
        assert_eq!(said.kernel.as_deref(), Some("7.2.12"));
        assert_eq!(said.log, "[0.1] kvm-guest: PV spinlocks enabled\n");
        assert_eq!(said.ready_ns, Some(3_250_000_000));
        let counts = Counts {
            reschedules: 10,
            steal_ns: 70_000_000,
            ..Counts::default()
        };
        let outcome = Outcome {
            load_ns: 1_437_000_000,
            ..Outcome::default()
        };
        assert_eq!(said.runs, [Run { outcome, counts }]);
    }

    #[test]
    fn a_run_counts_when_its_counters_are_whole() {
        let half = format!("{COUNTS}said Time: 1\nrun\ncount RES: 9 9\n");
        assert!(said(&half).runs.is_empty());
    }

    #[test]
    fn symbols_are_lines_until_the_end() {
        let mut said = Said::of(Load::Hackbench);
        said.expect_symbols();
        for line in ["ffffffff81000000 T _text", "run 1", "end", "ready 2"] {
            said.take(line).expect(line);
        }
        assert_eq!(
            said.symbols.as_deref(),
            Some("ffffffff81000000 T _text\nrun 1\n")
        );
        assert!(said.symbols_whole && said.ready_ns == Some(2_000_000_000));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in [
            "",
            "what",
            "ready",
            "ready -1",
            "ready NaN",
            "ready 1e300",
            // A run of which the load said no time.
            "run",
            "count RES",
            "count XYZ: 1",
            "count cpu: 1 2 3",
        ] {
            assert!(Said::of(Load::Hackbench).take(line).is_err(), "{line:?}");
        }
        // Two runs without counts between, or counts without a run.
        for lines in [
            format!("{COUNTS}{COUNTS}"),
            format!("said Time: 1\nrun\n{COUNTS}"),
            // What was said of one run does not count for the next.
            format!("{COUNTS}said Time: 1\nrun\n{COUNTS}run\n{COUNTS}"),
        ] {
            let mut said = Said::of(Load::Hackbench);
            assert!(
                lines.lines().any(|line| said.take(line).is_err()),
                "{lines}"
            );
        }
        let mut said = Said::of(Load::Hackbench);
        for word in ["log", "said"] {
            let line = format!("{word} {}", "x".repeat(4000));
            assert!((0..20).any(|_| said.take(&line).is_err()));
        }
    }

    #[test]
    fn without_a_run_nothing_is_known() {
        let mut vm = VmReport {
            name: "linux0".into(),
            process: 1,
            kernel: None,
            boot_ns: None,
            guest_boot_ns: None,
            runs: Vec::new(),
        };
        assert_eq!(
            (vm.mean_load_ns(), vm.range_load_ns(), vm.counts()),
            (None, None, None)
        );
        for load_ns in [3, 1, 5] {
            let counts = Counts {
                function_calls: load_ns,
                ..Counts::default()
            };
            let outcome = Outcome {
                load_ns,
                p99_ns: Some(2 * load_ns),
                ..Outcome::default()
            };
            vm.runs.push(Run { outcome, counts });
        }
        assert_eq!(vm.mean_load_ns(), Some(3.0));
        assert_eq!(vm.range_load_ns(), Some((1, 5)));
        assert_eq!(vm.mean(|of| of.p99_ns.map(|ns| ns as f64)), Some(6.0));
        assert_eq!(vm.mean(Outcome::requests_per_s), None);
        assert_eq!(vm.counts().map(|counts| counts.function_calls), Some(9));
    }
}
