// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `unspin record --keep` takes.

use std::time::Duration;

use clap::Args;

use crate::terminal::options::parse_limit;

/// Less than this is no flight recorder: a segment is written about each second.
const KEEP_MIN: Duration = Duration::from_secs(5);
/// Names and hashes take some of it.
const BYTES_MIN: u64 = 1 << 20;

/// A flight recorder.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "A flight recorder")]
pub struct FlightArguments {
    /// Record until Ctrl-C, and keep so much of the end, as in 15m: at least 5s.
    #[arg(long, value_name = "TIME", value_parser = parse_keep)]
    pub keep: Option<Duration>,
    /// Keep less while that takes more on the disk, as in 2G (K, M, G and T are powers of 1024): at least 1M. What is kept
    /// around triggers comes on top: as much for each at most.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes, default_value = "2G", requires = "keep")]
    pub max_bytes: u64,
    /// Keep what is around an event in FOLDER/kept, as a recording of its own. May be repeated. spin-share=40%: a VM has spun
    /// for so much of its CPU time over 5 s. signal: SIGUSR1 came. soft-lockup: the host's kernel reports one (what a guest
    /// reports its host does not see).
    #[arg(long = "trigger", value_name = "EVENT", value_parser = parse_trigger, requires = "keep")]
    pub triggers: Vec<Trigger>,
    /// So much of what was before the event.
    #[arg(long, value_name = "TIME", value_parser = parse_keep_part, default_value = "1m", requires = "keep")]
    pub keep_before: Duration,
    /// So much of what comes after it.
    #[arg(long, value_name = "TIME", value_parser = parse_keep_part, default_value = "10s", requires = "keep")]
    pub keep_after: Duration,
    /// So many of those recordings at most; further ones are refused and counted.
    #[arg(long, value_name = "NUMBER", default_value_t = 10, requires = "keep")]
    pub max_kept: usize,
}

/// What a span is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A VM's spin share, percent.
    SpinShare(u32),
    /// SIGUSR1.
    Signal,
    /// In the kernel's messages.
    SoftLockup,
}

fn parse_trigger(text: &str) -> Result<Trigger, String> {
    let share = |text: &str| {
        let number = text.strip_suffix('%').unwrap_or(text);
        let percent = number
            .parse()
            .ok()
            .filter(|percent| (1..=100).contains(percent));
        percent.map(Trigger::SpinShare).ok_or_else(|| {
            format!("`{text}` is no share: a whole number from 1% to 100%, as in spin-share=40%")
        })
    };
    match text.split_once('=') {
        Some(("spin-share", text)) => share(text),
        None if text == "spin-share" => Err("it takes a share, as in spin-share=40%".to_owned()),
        None if text == "signal" => Ok(Trigger::Signal),
        None if text == "soft-lockup" => Ok(Trigger::SoftLockup),
        _ => Err("there is spin-share=PERCENT, signal and soft-lockup".to_owned()),
    }
}

fn parse_keep(text: &str) -> Result<Duration, String> {
    let time = parse_long(text)?;
    match time >= KEEP_MIN {
        true => Ok(time),
        false => Err(format!("at least {} s", KEEP_MIN.as_secs())),
    }
}

fn parse_keep_part(text: &str) -> Result<Duration, String> {
    parse_long(text)
}

/// As other times, with minutes (m), hours (h) and days (d).
fn parse_long(text: &str) -> Result<Duration, String> {
    const LONGER: [(&str, u64); 3] = [("m", 60), ("h", 3_600), ("d", 86_400)];
    for (unit, seconds) in LONGER {
        let number = text.strip_suffix(unit).map(str::trim_end);
        if let Some(Ok(number)) = number.map(str::parse::<u64>) {
            let time = number.checked_mul(seconds).filter(|&time| time > 0);
            return time
                .map(Duration::from_secs)
                .ok_or_else(|| format!("`{text}` is out of range"));
        }
    }
    parse_limit(text)
}

fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(char, u32); 4] = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = text.chars().last().and_then(|last| {
        let known = UNITS
            .iter()
            .find(|(unit, _)| *unit == last.to_ascii_uppercase());
        known.map(|(_, shift)| *shift)
    });
    let number = match unit {
        Some(_) => &text[..text.len() - 1],
        None => text,
    };
    let number: u64 = number
        .trim_end()
        .parse()
        .map_err(|_| format!("`{text}` is no number of bytes, as in 2G or 500M"))?;
    let bytes = number
        .checked_mul(1 << unit.unwrap_or(0))
        .filter(|&bytes| i64::try_from(bytes).is_ok())
        .ok_or_else(|| format!("`{text}` is out of range"))?;
    match bytes >= BYTES_MIN {
        true => Ok(bytes),
        false => Err("at least 1M".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let seconds = |text: &str| parse_keep(text).map(|time| time.as_secs());
        assert_eq!(seconds("15m"), Ok(900));
        assert_eq!(seconds("2 h"), Ok(7_200));
        assert_eq!(seconds("1d"), Ok(86_400));
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(parse_keep("5500ms"), Ok(Duration::from_millis(5_500)));
        for wrong in [
            "4s",
            "0m",
            "15",
            "m",
            "-1m",
            "1.5m",
            "99999999999999999999d",
            "18446744073709551615d",
        ] {
            assert!(parse_keep(wrong).is_err(), "{wrong}");
        }
        assert!(parse_keep_part("1s").is_ok() && parse_keep_part("0s").is_err());
    }

    #[test]
    fn bytes() {
        assert_eq!(parse_bytes("2G"), Ok(2 << 30));
        assert_eq!(parse_bytes("500m"), Ok(500 << 20));
        assert_eq!(parse_bytes("1048576"), Ok(1 << 20));
        for wrong in [
            "", "G", "1048575", "1K", "2GB", "-1G", "1.5G", "9999999T", "2\u{e9}",
        ] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn triggers() {
        assert_eq!(parse_trigger("spin-share=40%"), Ok(Trigger::SpinShare(40)));
        assert_eq!(parse_trigger("spin-share=100"), Ok(Trigger::SpinShare(100)));
        assert_eq!(parse_trigger("signal"), Ok(Trigger::Signal));
        assert_eq!(parse_trigger("soft-lockup"), Ok(Trigger::SoftLockup));
        for wrong in [
            "spin-share",
            "spin-share=0%",
            "spin-share=101",
            "spin-share=x",
            "signal=9",
            "panic",
            "",
        ] {
            assert!(parse_trigger(wrong).is_err(), "{wrong}");
        }
    }
}
