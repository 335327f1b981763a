// SPDX-License-Identifier: MIT OR Apache-2.0
//! The machine a number was measured on, in one line.

use std::{fmt, fs};

/// Processor, CPUs, kernel, and whether all of it is the emulated testbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// "model name" of the first CPU in /proc/cpuinfo; "unknown CPU" when there is none.
    pub processor: String,
    /// Online CPUs.
    pub cpus: usize,
    /// Release of the running kernel.
    pub kernel: String,
    /// Whether this is the testbed: emulated, so times are no hardware times.
    pub testbed: bool,
}

impl Machine {
    /// Looks at this machine. What cannot be read is called unknown.
    pub fn here(testbed: bool) -> Machine {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Machine::from_texts(
            &read("/proc/cpuinfo"),
            &read("/proc/sys/kernel/osrelease"),
            testbed,
        )
    }

    fn from_texts(cpuinfo: &str, release: &str, testbed: bool) -> Machine {
        let field = |name: &str| {
            cpuinfo
                .lines()
                .filter_map(|line| line.split_once(':'))
                .filter(|(key, _)| key.trim() == name)
                .map(|(_, value)| value.trim().to_owned())
                .collect::<Vec<_>>()
        };
        let known = |text: &str, otherwise: &str| match text.trim() {
            "" => otherwise.to_owned(),
            text => text.to_owned(),
        };
        let model = field("model name").into_iter().next().unwrap_or_default();
        Machine {
            processor: known(&model, "unknown CPU"),
            cpus: field("processor").len().max(1),
            kernel: known(release, "unknown"),
            testbed,
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.cpus == 1 { "CPU" } else { "CPUs" };
        write!(
            out,
            "{}{}, {} {plural}, Linux {}",
            if self.testbed { "testbed: " } else { "" },
            self.processor,
            self.cpus,
            self.kernel
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_cpuinfo() {
        let text =
            "processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: AMD EPYC\n";
        let machine = Machine::from_texts(text, "7.2.1\n", true);
        assert_eq!(
            machine.to_string(),
            "testbed: AMD EPYC, 2 CPUs, Linux 7.2.1"
        );
    }

    #[test]
    fn says_unknown() {
        let machine = Machine::from_texts("", "", false);
        assert_eq!(machine.to_string(), "unknown CPU, 1 CPU, Linux unknown");
    }
}
