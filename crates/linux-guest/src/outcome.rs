// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a load's own program says of a run, read from what it wrote. Each program has its form; what is not there, or cannot be,
//! is an error: no run is counted without its time.

use crate::load::Load;

/// A year: no run takes longer.
const LONGEST_S: f64 = 366.0 * 86_400.0;
/// dbench says megabytes per second of a run whose length is fixed: the time of so many of them stands for a run of the others.
const DBENCH_MEGABYTES: f64 = 10.0;

/// One run of a load, by the guest's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How long the run's work took.
    pub load_ns: u64,
    /// Requests that were answered (transactions, allocations); `None` of a load that has none.
    pub requests: Option<u64>,
    /// The 99th percentile of their latencies; of cyclictest's, how late it woke up; of sysbench's threads, each one's whole
    /// work. `None` of a load that has none.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

impl Outcome {
    /// Requests answered per second.
    pub fn requests_per_s(&self) -> Option<f64> {
        let requests = self.requests.filter(|_| self.load_ns > 0)?;
        Some(requests as f64 * 1e9 / self.load_ns as f64)
    }
}

/// Reads what a load's program wrote.
///
/// # Errors
/// What is missing, or cannot be.
pub fn parse(load: Load, output: &str) -> Result<Outcome, &'static str> {
    match load {
        Load::Ebizzy => stress_ng(output),
        Load::Sysbench => sysbench(output),
        Load::Dbench => dbench(output),
        Load::Pgbench => pgbench(output),
        _ => lines(output),
    }
}

/// `Time: SECONDS` of hackbench and of our own programs, `Total time: SECONDS [sec]` or SECONDS alone of perf; and where our own
/// have them, `requests: N`, `p99: N us`, `max: N us`.
fn lines(output: &str) -> Result<Outcome, &'static str> {
    let time = output.lines().rev().find_map(|line| {
        let line = ["Time:", "Total time:", ""]
            .iter()
            .find_map(|word| line.strip_prefix(word))?
            .trim();
        line.strip_suffix(" [sec]").unwrap_or(line).parse().ok()
    });
    let requests = match after(output, "requests:") {
        Some(text) => Some(text.parse().map_err(|_| "not a number of requests")?),
        None => None,
    };
    Ok(Outcome {
        load_ns: nanoseconds(time.ok_or("it says no time")?, 1.0)?,
        requests,
        p99_ns: latency(output, "p99:")?,
        max_ns: latency(output, "max:")?,
    })
}

/// `stress-ng: metrc: [PID] malloc OPERATIONS REAL USER SYSTEM OPERATIONS/S ...` (0.19, `--metrics`): the rate has more digits
/// than the time, which is in hundredths of a second.
fn stress_ng(output: &str) -> Result<Outcome, &'static str> {
    let words = output
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.get(1) == Some(&"metrc:") && words.get(3) == Some(&"malloc"))
        .ok_or("it says no metrics of malloc")?;
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
    let (operations, rate) = number(4)
        .zip(number(8))
        .filter(|(operations, rate)| *operations >= 1.0 && *rate > 0.0)
        .ok_or("it did nothing")?;
    Ok(Outcome {
        load_ns: nanoseconds(operations / rate, 1.0)?,
        requests: Some(operations as u64),
        ..Outcome::default()
    })
}

/// sysbench 1.0: `total time: SECONDSs`, and latencies in milliseconds.
fn sysbench(output: &str) -> Result<Outcome, &'static str> {
    let time = after(output, "total time:").and_then(|text| text.strip_suffix('s'));
    let milliseconds = |word| {
        let text = after(output, word).and_then(|text| text.parse().ok());
        nanoseconds(text.ok_or("it says no latency")?, 1e-3)
    };
    let time = time.and_then(|text| text.parse().ok());
    Ok(Outcome {
        load_ns: nanoseconds(time.ok_or("it says no time")?, 1.0)?,
        requests: None,
        p99_ns: Some(milliseconds("99th percentile:")?),
        max_ns: Some(milliseconds("max:")?),
    })
}

/// dbench 4: `Throughput NUMBER MB/sec  N clients  N procs  max_latency=NUMBER ms`.
fn dbench(output: &str) -> Result<Outcome, &'static str> {
    let line = after(output, "Throughput ").ok_or("it says no throughput")?;
    let rate = line
        .split_once(" MB/sec")
        .and_then(|(number, _)| number.parse::<f64>().ok())
        .filter(|rate| *rate > 0.0)
        .ok_or("it moved nothing in its time")?;
    let longest = line
        .split_once("max_latency=")
        .and_then(|(_, text)| text.strip_suffix(" ms")?.parse().ok());
    Ok(Outcome {
        load_ns: nanoseconds(DBENCH_MEGABYTES / rate, 1.0)?,
        requests: None,
        p99_ns: None,
        max_ns: Some(nanoseconds(longest.ok_or("it says no latency")?, 1e-3)?),
    })
}

/// pgbench 17, and behind it the latencies of its own log, as PID 1 sorts them.
fn pgbench(output: &str) -> Result<Outcome, &'static str> {
    let done = after(output, "number of transactions actually processed:")
        .and_then(|text| text.split('/').next()?.parse::<u64>().ok());
    let failed = after(output, "number of failed transactions:");
    if !failed.is_some_and(|text| text.starts_with("0 ")) {
        return Err("transactions failed");
    }
    let rate = after(output, "tps =")
        .and_then(|text| text.split(' ').next()?.parse::<f64>().ok())
        .filter(|rate| *rate > 0.0);
    let (done, rate) = done.zip(rate).ok_or("it says no transactions per second")?;
    Ok(Outcome {
        load_ns: nanoseconds(done as f64 / rate, 1.0)?,
        requests: Some(done),
        p99_ns: Some(latency(output, "p99:")?.ok_or("it says no latency")?),
        max_ns: latency(output, "max:")?,
    })
}

/// What follows the word that a line begins with, of the first such line, without blanks around.
fn after<'a>(output: &'a str, word: &str) -> Option<&'a str> {
    let mut lines = output.lines();
    lines
        .find_map(|line| line.trim_start().strip_prefix(word))
        .map(str::trim)
}

/// `WORD NUMBER us`, if it is there.
fn latency(output: &str, word: &str) -> Result<Option<u64>, &'static str> {
    let Some(text) = after(output, word) else {
        return Ok(None);
    };
    let number = text.strip_suffix(" us").and_then(|text| text.parse().ok());
    nanoseconds(number.ok_or("not a latency")?, 1e-6).map(Some)
}

/// A number of units of so many seconds.
fn nanoseconds(number: f64, unit_s: f64) -> Result<u64, &'static str> {
    let seconds = number * unit_s;
    match (0.0..LONGEST_S).contains(&seconds) {
        true => Ok((seconds * 1e9).round() as u64),
        false => Err("not a time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the programs of Debian 13 wrote, as it was.
    const STRESS_NG: &str = include_str!("outcome/stress-ng.txt");
    const SYSBENCH: &str = include_str!("outcome/sysbench.txt");
    const DBENCH: &str = include_str!("outcome/dbench.txt");
    const PGBENCH: &str = include_str!("outcome/pgbench.txt");
    const HACKBENCH: &str = include_str!("outcome/hackbench.txt");

    fn of(load: Load, output: &str) -> Outcome {
        parse(load, output).unwrap_or_else(|why| panic!("{load:?}: {why}"))
    }

    #[test]
    fn each_program_is_read_as_it_writes() {
        let ebizzy = of(Load::Ebizzy, STRESS_NG);
        assert_eq!(ebizzy.requests, Some(2000));
        assert_eq!(ebizzy.load_ns, 90_418_815);
        assert_eq!((ebizzy.p99_ns, ebizzy.max_ns), (None, None));
        let rate = ebizzy.requests_per_s().expect("a rate");
        assert!((rate - 22_119.29).abs() < 0.01, "{rate}");
        let mutex = Outcome {
            load_ns: 18_500_000,
            requests: None,
            p99_ns: Some(15_000_000),
            max_ns: Some(14_910_000),
        };
        assert_eq!(of(Load::Sysbench, SYSBENCH), mutex);
        let dbench = Outcome {
            load_ns: 18_856_646,
            max_ns: Some(132_380_000),
            ..Outcome::default()
        };
        assert_eq!(of(Load::Dbench, DBENCH), dbench);
        assert_eq!(dbench.requests_per_s(), None);
        let pgbench = Outcome {
            load_ns: 2_651_838_997,
            requests: Some(400),
            p99_ns: Some(138_713_000),
            max_ns: Some(192_008_000),
        };
        assert_eq!(of(Load::Pgbench, PGBENCH), pgbench);
        assert_eq!(of(Load::Hackbench, HACKBENCH).load_ns, 98_000_000);
    }

    #[test]
    fn our_own_programs_and_perf_say_a_time_at_the_end() {
        for text in [
            "Time: 1.437",
            "Total time: 1.437 [sec]",
            "  1.437 ",
            "3\nTime:   1.437\nafter all\n",
        ] {
            assert_eq!(of(Load::Messaging, text).load_ns, 1_437_000_000, "{text:?}");
        }
        let gc = "requests: 4000\np99: 21053.861 us\nmax: 82029.048 us\ncollections: 43\nTime: 0.472723\n";
        let expected = Outcome {
            load_ns: 472_723_000,
            requests: Some(4000),
            p99_ns: Some(21_053_861),
            max_ns: Some(82_029_048),
        };
        assert_eq!(of(Load::Gc, gc), expected);
        let sleepers = format!("{HACKBENCH}p99: 1500 us\nmax: 1700 us\n");
        assert_eq!(of(Load::Cyclictest, &sleepers).p99_ns, Some(1_500_000));
    }

    #[test]
    fn what_is_missing_or_cannot_be_is_an_error() {
        let every = [
            Load::Hackbench,
            Load::Messaging,
            Load::Calls,
            Load::Make,
            Load::Mmaps,
            Load::Torture,
            Load::Idle,
        ];
        let new = [
            Load::Ebizzy,
            Load::Sysbench,
            Load::Openmp,
            Load::Dbench,
            Load::Pgbench,
            Load::Kernbench,
            Load::Gc,
            Load::Cyclictest,
        ];
        for load in every.into_iter().chain(new) {
            for text in [
                "",
                "Killed",
                "Time:",
                "Time: x",
                "Time: -1",
                "Time: NaN",
                "Time: 1e300",
            ] {
                assert!(parse(load, text).is_err(), "{load:?}: {text:?}");
            }
        }
        let changed = |load, text: &str, from: &str, to: &str| {
            assert!(text.contains(from), "{from:?} is not in {text}");
            parse(load, &text.replace(from, to)).expect_err(to)
        };
        changed(Load::Ebizzy, STRESS_NG, "22119.29", "0.00");
        changed(
            Load::Ebizzy,
            STRESS_NG,
            "malloc             2000",
            "malloc                0",
        );
        changed(
            Load::Ebizzy,
            STRESS_NG,
            "malloc             2000",
            "mmap               2000",
        );
        changed(Load::Sysbench, SYSBENCH, "0.0185s", "0.0185");
        changed(Load::Sysbench, SYSBENCH, "99th", "95th");
        // Its first second does not count: a run of one second measures nothing.
        changed(Load::Dbench, DBENCH, "530.317", "0");
        changed(Load::Dbench, DBENCH, " ms", "");
        changed(
            Load::Pgbench,
            PGBENCH,
            "transactions: 0 ",
            "transactions: 3 ",
        );
        changed(Load::Pgbench, PGBENCH, "tps =", "rate =");
        changed(Load::Pgbench, PGBENCH, "p99:", "p95:");
        changed(Load::Pgbench, PGBENCH, " us", "");
        assert!(parse(Load::Gc, "requests: many\nTime: 1").is_err());
        assert!(parse(Load::Gc, "p99: 1 ms\nTime: 1").is_err());
    }
}
