// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a caller can choose about a run.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use crate::{error::Error, inputs::Input, topology::Topology};

/// Which emulator runs the testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Qemu {
    /// As the distribution has it: every PAUSE of a nested guest exits (a window of 0).
    Stock,
    /// With `testbed/qemu/`'s change: the pause-filter count and threshold are honoured.
    Unspin,
}

impl Qemu {
    /// The emulator's file name in the cache.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Stock => "qemu-stock",
            Self::Unspin => "qemu-unspin",
        }
    }
}

/// Whose virtualisation the emulated machine has, and with that by which emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vendor {
    /// AMD's SVM, by QEMU.
    #[default]
    Amd,
    /// Intel's VMX, by Bochs: always deterministic, one thread for all CPUs.
    Intel,
}

impl Vendor {
    /// The emulator's name.
    pub fn emulator(self) -> &'static str {
        match self {
            Self::Amd => "QEMU",
            Self::Intel => "Bochs",
        }
    }

    /// The command that puts its emulator into the cache.
    pub fn set_up_by(self) -> &'static str {
        match self {
            Self::Amd => "make setup",
            Self::Intel => "make intel",
        }
    }

    /// Its name in the environment of what runs there, as UNSPIN_TESTBED.
    pub fn word(self) -> &'static str {
        match self {
            Self::Amd => "amd",
            Self::Intel => "intel",
        }
    }

    /// KVM's module for it, as `/sys/module` has it.
    pub fn kvm_module(self) -> &'static str {
        match self {
            Self::Amd => "kvm_amd",
            Self::Intel => "kvm_intel",
        }
    }
}

/// How the testbed is booted and what goes in and out.
#[derive(Clone, Debug)]
pub struct Options {
    /// The cache folder that `make setup` filled; see `cache_from_environment`.
    pub cache: PathBuf,
    /// Folder of the kernel to boot, with `vmlinuz` and `modules/`; the cache's when `None`.
    pub kernel: Option<PathBuf>,
    /// The emulated machine.
    pub vendor: Vendor,
    /// Emulated CPUs, 1 to 64; 1 to 8 of an Intel machine. Timed figures want no more than the host has.
    pub cpus: u32,
    /// What they share, if it is said; `cpus` of it. One socket with one cache of them all otherwise, and of an Intel machine.
    pub topology: Option<Topology>,
    /// Memory of the emulated machine, 512 to 65,536 MiB; up to 3,072 of an Intel machine.
    pub memory_mib: u32,
    /// Run in virtual time on one thread, so that the same binary, inputs and seed give the same bytes. An Intel machine
    /// always does: [`Options::is_deterministic`].
    pub deterministic: bool,
    /// Which QEMU an AMD machine runs in.
    pub qemu: Qemu,
    /// Seed of the emulator's random numbers, which also seeds the kernel's.
    pub seed: u64,
    /// How often a boot is tried while nothing has come out of it, 1 or more: an emulator on a busy host may hang.
    pub attempts: u32,
    /// How long one attempt may take in all, by the host's clock.
    pub time_limit: Duration,
    /// How long the kernel may take to reach its init, by the host's clock.
    pub boot_limit: Option<Duration>,
    /// How long PID 1 may be silent before the machine counts as hung, by the host's clock.
    pub stall_limit: Option<Duration>,
    /// Files copied into the testbed.
    pub inputs: Vec<Input>,
    /// Where the files go that the command leaves below `/out`; they are dropped when `None`.
    pub bring_back: Option<PathBuf>,
    /// Appended to the kernel's command line.
    pub kernel_arguments: Vec<String>,
    /// Parameters per kernel module, such as `"kvm_amd" -> "pause_filter_count=200"`.
    pub module_parameters: BTreeMap<String, String>,
    /// Added to the command's environment.
    pub environment: BTreeMap<String, String>,
    /// Where the kernel's console is written to as it comes; it is kept in `Outcome::console` in any case.
    pub console_file: Option<PathBuf>,
    /// Print the console's last lines to standard error when a boot fails.
    pub echo_console: bool,
    /// The static binary that becomes `/init` and `/bin/unspin`; the running one when `None`.
    pub init_binary: Option<PathBuf>,
}

impl Options {
    /// The command's working directory in the testbed.
    pub const WORKING_DIRECTORY: &'static str = "/job";

    /// The defaults: AMD, 2 CPUs, 2 GiB, timed, our emulator, 10 minutes.
    pub fn new(cache: PathBuf) -> Self {
        Self {
            cache,
            kernel: None,
            vendor: Vendor::Amd,
            cpus: 2,
            topology: None,
            memory_mib: 2048,
            deterministic: false,
            qemu: Qemu::Unspin,
            seed: 1,
            attempts: 2,
            time_limit: Duration::from_secs(600),
            boot_limit: None,
            stall_limit: None,
            inputs: Vec::new(),
            bring_back: None,
            kernel_arguments: Vec::new(),
            module_parameters: BTreeMap::new(),
            environment: BTreeMap::new(),
            console_file: None,
            echo_console: true,
            init_binary: None,
        }
    }

    /// Whether the same binary, inputs and seed give the same bytes.
    pub fn is_deterministic(&self) -> bool {
        self.deterministic || self.vendor == Vendor::Intel
    }

    /// The boot limit in force: as given, or some ten times what a boot took on two idle cores in that mode.
    pub fn boot_limit(&self) -> Duration {
        self.boot_limit.unwrap_or(Duration::from_secs(
            match (self.vendor, self.deterministic) {
                (Vendor::Amd, false) => 45,
                (Vendor::Amd, true) => 90,
                (Vendor::Intel, _) => 240,
            },
        ))
    }

    /// The stall limit in force. PID 1 beats four times per second of the testbed's clock; the deterministic mode's
    /// clock ran seven times slower than the host's while booting on a busy machine, and runs slower when CPUs spin. A second
    /// of an Intel machine with two busy CPUs takes some ten of the host.
    pub fn stall_limit(&self) -> Duration {
        self.stall_limit.unwrap_or(Duration::from_secs(
            match (self.vendor, self.deterministic) {
                (Vendor::Amd, false) => 60,
                (Vendor::Amd, true) => 180,
                (Vendor::Intel, _) => 300,
            },
        ))
    }

    /// Checks every range that does not depend on a file.
    ///
    /// # Errors
    /// [`Error::Option`] naming the option, the value and what is allowed.
    pub fn check(&self) -> Result<(), Error> {
        let fail = |message: String| Err(Error::Option(message));
        // Bochs' BIOS and its memory map below 4 GiB are what we tried and describe to the kernel.
        let (most_cpus, most_memory_mib) = match self.vendor {
            Vendor::Amd => (64, 65_536),
            Vendor::Intel => (8, 3_072),
        };
        if !(1..=most_cpus).contains(&self.cpus) {
            return fail(format!(
                "the testbed cannot have {} CPUs: 1 to {most_cpus} are allowed",
                self.cpus
            ));
        }
        if let Some(topology) = self.topology.filter(|of| of.cpus() != self.cpus) {
            let cpus = topology.cpus();
            return fail(format!(
                "a topology of {topology} has {cpus} CPUs, not {}",
                self.cpus
            ));
        }
        if self.vendor == Vendor::Intel && self.topology.is_some() {
            return fail("an Intel machine has one cache: no topology can be chosen".into());
        }
        if !(512..=most_memory_mib).contains(&self.memory_mib) {
            return fail(format!(
                "the testbed cannot have {} MiB of memory: 512 to {most_memory_mib} are allowed",
                self.memory_mib
            ));
        }
        if self.vendor == Vendor::Intel && self.qemu == Qemu::Stock {
            return fail("an Intel machine runs in Bochs: there is no QEMU to choose".into());
        }
        if self.time_limit.is_zero() || self.boot_limit().is_zero() || self.stall_limit().is_zero()
        {
            return fail("a time limit of the testbed must be longer than zero".into());
        }
        for argument in &self.kernel_arguments {
            if argument.is_empty() || argument.contains(|c: char| c.is_whitespace() || c == '\0') {
                return fail(format!(
                    "kernel argument {argument:?}: give one argument without blanks each"
                ));
            }
        }
        for (module, parameters) in &self.module_parameters {
            if module.is_empty() || parameters.contains('\0') {
                return fail(format!(
                    "parameters {parameters:?} of module {module:?}: a name and no zero byte are needed"
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::new("/cache".into());
        change(&mut options);
        options.check().expect_err("out of range").to_string()
    }

    #[test]
    fn the_defaults_pass() {
        Options::new("/cache".into()).check().expect("defaults");
    }

    #[test]
    fn values_out_of_range_are_named() {
        assert!(message(|o| o.cpus = 0).contains("0 CPUs: 1 to 64"));
        assert!(message(|o| o.cpus = 65).contains("65 CPUs: 1 to 64"));
        let topology = |o: &mut Options| o.topology = "1x2x2x1".parse().ok();
        assert!(message(topology).contains("1x2x2x1 has 4 CPUs, not 2"));
        assert!(message(|o| o.memory_mib = 511).contains("511 MiB"));
        assert!(message(|o| o.memory_mib = 65_537).contains("65537 MiB"));
        let intel = |o: &mut Options| o.vendor = Vendor::Intel;
        for (change, said) in [
            ((|o| o.cpus = 9) as fn(&mut Options), "9 CPUs: 1 to 8"),
            (|o| o.memory_mib = 3_073, "512 to 3072"),
            (|o| o.topology = "1x2x1x1".parse().ok(), "has one cache"),
            (|o| o.qemu = Qemu::Stock, "runs in Bochs"),
        ] {
            let message = message(|o| {
                intel(o);
                change(o);
            });
            assert!(message.contains(said), "{message}");
        }
        assert!(message(|o| o.time_limit = Duration::ZERO).contains("time limit"));
        assert!(message(|o| o.kernel_arguments = vec!["a b".into()]).contains("without blanks"));
        assert!(message(|o| o.kernel_arguments = vec!["a\0".into()]).contains("without blanks"));
        assert!(
            message(|o| drop(o.module_parameters.insert("kvm".into(), "a\0".into())))
                .contains("zero byte")
        );
    }
}
