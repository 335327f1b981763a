// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies for the pause-loop window, as written on a command line: `window=N`, `window=kvm`, `apple`. They work
//! without unspin's scheduler. Numbers are in the hardware's unit: PAUSEs (AMD) or TSC cycles (Intel).

use std::{fmt, str::FromStr};

/// The policy that sets the window of all vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowPolicy {
    /// A fixed window: APPLE's third scenario.
    Fixed(u32),
    /// KVM's own rule, `policy/model/ple_window.h`: grows at an exit, resets at a switch.
    Kvm,
    /// APPLE, Algorithm 1, with these parameters; `None`: the paper's.
    Apple(Option<AppleNumbers>),
}

/// APPLE's parameters: 1 <= lower <= initial <= upper, delta at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppleNumbers {
    /// The step.
    pub delta: u32,
    /// The smallest window.
    pub lower: u32,
    /// The initial window.
    pub initial: u32,
    /// The largest window.
    pub upper: u32,
}

impl WindowPolicy {
    /// The words of window policies for `--policy`.
    pub const WORDS: [&'static str; 3] = ["window=N", "window=kvm", "apple"];

    /// Whether a word of a list of policies is about windows, valid or not.
    pub fn is_one(word: &str) -> bool {
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        name == "window" || name == "apple"
    }
}

impl FromStr for WindowPolicy {
    type Err = String;

    fn from_str(word: &str) -> Result<WindowPolicy, String> {
        let wrong = || {
            format!(
                "`{word}`: window=kvm, window=N, apple, or apple=DELTA/LOWER/INITIAL/UPPER with LOWER <= INITIAL <= UPPER; \
                 numbers from 1 to 4294967294, of PAUSEs (AMD, to 65535) or TSC cycles (Intel)"
            )
        };
        let number = |text: &str| {
            let number = text.parse::<u32>().ok();
            number.filter(|number| (1..u32::MAX).contains(number))
        };
        match word.split_once('=') {
            None if word == "apple" => Ok(WindowPolicy::Apple(None)),
            Some(("window", "kvm")) => Ok(WindowPolicy::Kvm),
            Some(("window", text)) => number(text).map(WindowPolicy::Fixed).ok_or_else(wrong),
            Some(("apple", text)) => {
                let numbers: Option<Vec<u32>> = text.split('/').map(number).collect();
                match numbers.as_deref() {
                    Some(&[delta, lower, initial, upper])
                        if lower <= initial && initial <= upper =>
                    {
                        Ok(WindowPolicy::Apple(Some(AppleNumbers {
                            delta,
                            lower,
                            initial,
                            upper,
                        })))
                    }
                    _ => Err(wrong()),
                }
            }
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for WindowPolicy {
    /// In a form that can be parsed again.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowPolicy::Fixed(window) => write!(out, "window={window}"),
            WindowPolicy::Kvm => out.write_str("window=kvm"),
            WindowPolicy::Apple(None) => out.write_str("apple"),
            WindowPolicy::Apple(Some(numbers)) => write!(
                out,
                "apple={}/{}/{}/{}",
                numbers.delta, numbers.lower, numbers.initial, numbers.upper
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_written() {
        for word in [
            "window=1",
            "window=65535",
            "window=kvm",
            "apple",
            "apple=8/64/64/4096",
        ] {
            assert!(WindowPolicy::is_one(word));
            let policy: WindowPolicy = word.parse().expect(word);
            assert_eq!(policy.to_string(), word);
        }
        assert_eq!("window=200".parse(), Ok(WindowPolicy::Fixed(200)));
    }

    #[test]
    fn what_is_none_is_refused() {
        for word in [
            "window",
            "window=",
            "window=0",
            "window=-1",
            "window=4294967295",
            "window=x",
            "apple=",
            "apple=8",
            "apple=8/64/63/4096",
            "apple=8/64/4097/4096",
            "apple=0/64/64/64",
            "apple=8/0/64/64",
            "apple=8/64/64/64/64",
        ] {
            assert!(WindowPolicy::is_one(word), "{word}");
            let error = word.parse::<WindowPolicy>().expect_err(word);
            assert!(error.contains(word) && error.contains("DELTA"), "{error}");
        }
        assert!(!WindowPolicy::is_one("loan") && !WindowPolicy::is_one("slice=1ms"));
        assert!("loan".parse::<WindowPolicy>().is_err());
    }
}
