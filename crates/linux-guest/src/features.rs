// SPDX-License-Identifier: MIT OR Apache-2.0
//! The paravirtual features of a guest: the cell of ruling 35 that a table of real guests names.
//!
//! What is asked for goes to QEMU as CPUID bits and to the kernel as a word of its command line; what is in force
//! is read from the guest's own log, and a guest that has another cell than the one asked for is an error.
//!
//! And whether an unmodified guest has the module of `guest-linux/module`.

use std::{fmt, str::FromStr};

use crate::programs::COUNTS;

/// What a guest does when a spinlock is taken (`kvm_spinlock_init()`, arch/x86/kernel/kvm.c). Linux 7.2 looks at
/// `nopvspin` before it looks at the CPUID bit `kvm-pv-unhalt` (tried: without the bit and with the word its log says
/// "forced by nopvspin"); older kernels look at the bit first. With bit and word both orders give the native slow path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spinlocks {
    /// The native queued spinlock: waiters spin. `nopvspin`, and the bit left on.
    Native,
    /// The paravirtual queued spinlock: waiters halt after 2^15 spins and are kicked. The bit, without the word.
    Paravirtual,
    /// `virt_spin_lock()`, test-and-set: neither bit nor word.
    TestAndSet,
}

impl Spinlocks {
    /// Its word in `--features`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Native => "nopvspin",
            Self::Paravirtual => "pvspin",
            Self::TestAndSet => "virtspin",
        }
    }
}

/// One cell: every feature that is on; what is not in it is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// The guest's spinlocks.
    pub spinlocks: Spinlocks,
    /// A flush leaves out vCPUs that the host has preempted. Needs `steal_time`.
    pub tlb_flush: bool,
    /// IPIs to several vCPUs are one hypercall.
    pub ipi: bool,
    /// The sender of a function call yields to a receiver that the host has preempted. Needs `steal_time`.
    pub sched_yield: bool,
    /// Asynchronous page faults.
    pub async_page_faults: bool,
    /// The guest is told how long it did not run.
    pub steal_time: bool,
}

/// The words beside those of [`Spinlocks`], in the order in which a cell is printed, and QEMU's names of the bits.
const WORDS: [(&str, &[&str]); 5] = [
    ("pv-tlb-flush", &["kvm-pv-tlb-flush"]),
    ("pv-ipi", &["kvm-pv-ipi"]),
    ("pv-sched-yield", &["kvm-pv-sched-yield"]),
    ("async-pf", &["kvm-asyncpf", "kvm-asyncpf-int"]),
    ("steal-time", &["kvm-steal-time"]),
];

impl Features {
    /// VEE'21's guests (Table 2: Linux 4.15; ruling 35: native queued spinlocks): 4.15 has steal time and asynchronous
    /// page faults, but neither PV TLB flush (4.16) nor PV IPIs (4.19) nor PV sched-yield (5.3).
    pub const VEE21: Features = Features {
        spinlocks: Spinlocks::Native,
        tlb_flush: false,
        ipi: false,
        sched_yield: false,
        async_page_faults: true,
        steal_time: true,
    };

    /// What KVM and QEMU give a guest that is told nothing.
    pub const STOCK: Features = Features {
        spinlocks: Spinlocks::Paravirtual,
        tlb_flush: true,
        ipi: true,
        sched_yield: true,
        async_page_faults: true,
        steal_time: true,
    };

    fn switches(&mut self) -> [&mut bool; 5] {
        [
            &mut self.tlb_flush,
            &mut self.ipi,
            &mut self.sched_yield,
            &mut self.async_page_faults,
            &mut self.steal_time,
        ]
    }

    /// The value of QEMU's `-cpu`: the host's CPU without the bits of this cell that are off.
    pub fn cpu(mut self) -> String {
        let mut cpu = "host".to_owned();
        if self.spinlocks == Spinlocks::TestAndSet {
            cpu.push_str(",kvm-pv-unhalt=off");
        }
        for (switch, (_, bits)) in self.switches().into_iter().zip(WORDS) {
            for bit in bits.iter().filter(|_| !*switch) {
                cpu.push_str(&format!(",{bit}=off"));
            }
        }
        cpu
    }

    /// The words of the guest kernel's command line.
    pub fn kernel_arguments(self) -> &'static [&'static str] {
        match self.spinlocks {
            Spinlocks::Native => &["nopvspin"],
            _ => &[],
        }
    }

    /// Compares with what a guest's kernel wrote into its log (`kvm_guest_init()` and around it, arch/x86/kernel/kvm.c,
    /// Linux 4.16 to 7.2). Asynchronous page faults and steal time leave no line there and are not compared. With one
    /// vCPU the kernel sets none of it up, and nothing is compared.
    ///
    /// # Errors
    /// The first feature that differs, in words.
    pub fn check_log(self, log: &str, vcpus: u32) -> Result<(), String> {
        if vcpus == 1 {
            return Ok(());
        }
        let found = match () {
            () if log.contains("PV spinlocks enabled") => Some(Spinlocks::Paravirtual),
            () if log.contains("PV spinlocks disabled, no host support") => {
                Some(Spinlocks::TestAndSet)
            }
            () if log.contains("PV spinlocks disabled") => Some(Spinlocks::Native),
            () => None,
        };
        let found = found.ok_or("the guest's log does not say which spinlocks it has")?;
        if found != self.spinlocks {
            return Err(format!(
                "its spinlocks are {}, not {}",
                found.word(),
                self.spinlocks.word()
            ));
        }
        for (word, wanted, line) in [
            (
                "pv-tlb-flush",
                self.tlb_flush && self.steal_time,
                "setup pv remote TLB flush",
            ),
            ("pv-ipi", self.ipi, "setup PV IPIs"),
            (
                "pv-sched-yield",
                self.sched_yield && self.steal_time,
                "setup PV sched yield",
            ),
        ] {
            if log.contains(line) != wanted {
                let state = if wanted { "off" } else { "on" };
                return Err(format!("{word} is {state}"));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Features {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.spinlocks.word())?;
        let mut copy = *self;
        for (switch, (word, _)) in copy.switches().into_iter().zip(WORDS) {
            if *switch {
                write!(formatter, ",{word}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Features {
    type Err = String;

    /// `vee21`, `stock`, or all that is on, apart by commas, one of nopvspin, pvspin and virtspin among it.
    fn from_str(text: &str) -> Result<Features, String> {
        match text {
            "vee21" => return Ok(Features::VEE21),
            "stock" => return Ok(Features::STOCK),
            _ => {}
        }
        let mut features = Features::VEE21;
        features.switches().into_iter().for_each(|on| *on = false);
        let mut spinlocks = None;
        for word in text.split(',') {
            let kinds = [
                Spinlocks::Native,
                Spinlocks::Paravirtual,
                Spinlocks::TestAndSet,
            ];
            if let Some(kind) = kinds.into_iter().find(|kind| kind.word() == word) {
                if spinlocks.replace(kind).is_some_and(|before| before != kind) {
                    return Err("nopvspin, pvspin and virtspin exclude each other".into());
                }
            } else if let Some(index) = WORDS.iter().position(|(name, _)| *name == word) {
                *features.switches()[index] = true;
            } else {
                let known: Vec<_> = WORDS.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "no feature is called {word:?}; there are vee21, stock, or nopvspin, pvspin or virtspin with any of {}",
                    known.join(", ")
                ));
            }
        }
        features.spinlocks = spinlocks.ok_or("say nopvspin, pvspin or virtspin")?;
        if !features.steal_time && (features.tlb_flush || features.sched_yield) {
            return Err("pv-tlb-flush and pv-sched-yield need steal-time".into());
        }
        Ok(features)
    }
}

/// Whether a guest tells its host where its kernel's own counts of critical sections lie (`abi/guest/counts.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CountsModule {
    /// No.
    #[default]
    Off,
    /// Its preempt count and RCU nesting.
    On,
    /// These, and what it asks for and holds of mutexes and reader-writer semaphores, by hooks in their functions.
    Hooks,
}

impl CountsModule {
    /// All of them.
    pub const ALL: [CountsModule; 3] = [CountsModule::Off, CountsModule::On, CountsModule::Hooks];

    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            CountsModule::Off => "off",
            CountsModule::On => "on",
            CountsModule::Hooks => "hooks",
        }
    }

    /// What a guest needs for it.
    pub fn programs(self) -> &'static [&'static str] {
        match self {
            CountsModule::Off => &[],
            CountsModule::On | CountsModule::Hooks => &[COUNTS],
        }
    }

    /// What PID 1 hands on to the module.
    pub fn kernel_argument(self) -> Option<&'static str> {
        (self == CountsModule::Hooks).then_some("unspin_counts.hooks=1")
    }
}

impl fmt::Display for CountsModule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl FromStr for CountsModule {
    type Err = String;

    fn from_str(text: &str) -> Result<CountsModule, String> {
        let found = CountsModule::ALL
            .into_iter()
            .find(|counts| counts.word() == text);
        found.ok_or_else(|| format!("{text:?} is none of off, on, hooks"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VEE21_LOG: &str = "kvm-guest: PV spinlocks disabled, forced by \"nopvspin\" parameter\n";
    const STOCK_LOG: &str = "kvm-guest: KVM setup pv remote TLB flush\nkvm-guest: setup PV sched yield\n\
                             kvm-guest: PV spinlocks enabled\nkvm-guest: setup PV IPIs\n";

    #[test]
    fn a_cell_is_what_it_prints() {
        for (text, printed) in [
            ("vee21", "nopvspin,async-pf,steal-time"),
            (
                "stock",
                "pvspin,pv-tlb-flush,pv-ipi,pv-sched-yield,async-pf,steal-time",
            ),
            ("steal-time,virtspin,pv-ipi", "virtspin,pv-ipi,steal-time"),
            ("pvspin", "pvspin"),
        ] {
            let features: Features = text.parse().expect(text);
            assert_eq!(features.to_string(), printed);
            assert_eq!(printed.parse(), Ok(features));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (text, said) in [
            ("", "no feature is called \"\""),
            ("steal-time", "say nopvspin"),
            ("pvspin,nopvspin", "exclude each other"),
            ("pvspin,pv-tlb", "pv-tlb-flush, pv-ipi"),
            ("nopvspin,pv-tlb-flush", "need steal-time"),
        ] {
            let refused = text.parse::<Features>().expect_err(text);
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }

    #[test]
    fn bits_that_are_off_are_switched_off() {
        assert_eq!(Features::STOCK.cpu(), "host");
        assert_eq!(
            Features::VEE21.cpu(),
            "host,kvm-pv-tlb-flush=off,kvm-pv-ipi=off,kvm-pv-sched-yield=off"
        );
        let none: Features = "virtspin".parse().expect("valid");
        assert_eq!(
            none.cpu(),
            "host,kvm-pv-unhalt=off,kvm-pv-tlb-flush=off,kvm-pv-ipi=off,kvm-pv-sched-yield=off,\
             kvm-asyncpf=off,kvm-asyncpf-int=off,kvm-steal-time=off"
        );
        assert_eq!(Features::VEE21.kernel_arguments(), ["nopvspin"]);
        assert!(Features::STOCK.kernel_arguments().is_empty());
    }

    #[test]
    fn the_guests_own_log_is_believed() {
        assert_eq!(Features::VEE21.check_log(VEE21_LOG, 4), Ok(()));
        assert_eq!(Features::STOCK.check_log(STOCK_LOG, 4), Ok(()));
        let differs = |features: Features, log| features.check_log(log, 4).expect_err("differs");
        assert!(differs(Features::VEE21, STOCK_LOG).contains("are pvspin, not nopvspin"));
        assert!(differs(Features::STOCK, VEE21_LOG).contains("are nopvspin, not pvspin"));
        assert!(differs(Features::STOCK, "PV spinlocks enabled").contains("pv-tlb-flush is off"));
        let with_ipi = format!("{VEE21_LOG}setup PV IPIs");
        assert!(differs(Features::VEE21, &with_ipi).contains("pv-ipi is on"));
        assert!(differs(Features::VEE21, "").contains("does not say"));
        assert_eq!(Features::STOCK.check_log("", 1), Ok(()));
    }

    #[test]
    fn a_word_is_what_it_prints_and_only_hooks_are_asked_for() {
        for counts in CountsModule::ALL {
            assert_eq!(counts.to_string().parse(), Ok(counts));
            assert_eq!(counts.programs().is_empty(), counts == CountsModule::Off);
            assert_eq!(
                counts.kernel_argument().is_some(),
                counts == CountsModule::Hooks
            );
        }
        assert!("yes".parse::<CountsModule>().is_err());
    }
}
