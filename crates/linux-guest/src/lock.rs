// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a guest with our kernel (`guest-linux/patch`) is told at boot: its spinlock, Friebel's call for help, eCS's marks.

use std::fmt;
use std::str::FromStr;

/// Which spinlock the whole guest kernel uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lock {
    /// Linux's own queued spinlock, native or paravirtual as the cell of features says.
    Native,
    /// The ticket lock.
    Ticket,
    /// VEE'13's preemptable ticket lock.
    Preemptable,
    /// The ticket lock whose waiters halt after 2,048 spins, and are kicked when it is their turn.
    PvTicket,
    /// The preemptable ticket lock whose waiters halt after 2,048 spins on the lock word; unlock kicks all (ruling 13).
    PvPreemptable,
}

impl Lock {
    /// All of them.
    pub const ALL: [Lock; 5] = [
        Lock::Native,
        Lock::Ticket,
        Lock::Preemptable,
        Lock::PvTicket,
        Lock::PvPreemptable,
    ];

    /// Its word on the kernel's command line and on ours.
    pub fn word(self) -> &'static str {
        match self {
            Lock::Native => "native",
            Lock::Ticket => "ticket",
            Lock::Preemptable => "preemptable",
            Lock::PvTicket => "pv_ticket",
            Lock::PvPreemptable => "pv_preemptable",
        }
    }
}

impl fmt::Display for Lock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

impl FromStr for Lock {
    type Err = String;

    fn from_str(text: &str) -> Result<Lock, String> {
        let found = Lock::ALL.into_iter().find(|lock| lock.word() == text);
        found.ok_or_else(|| {
            let known = Lock::ALL.map(Lock::word).join(", ");
            format!("no lock is called {text:?}; there are {known}")
        })
    }
}

/// The kernel and lock of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestLock {
    /// The distribution's kernel as it is.
    Stock,
    /// Our kernel with this lock.
    Ours(Lock),
}

impl fmt::Display for GuestLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GuestLock::Stock => formatter.write_str("stock"),
            GuestLock::Ours(lock) => lock.fmt(formatter),
        }
    }
}

impl FromStr for GuestLock {
    type Err = String;

    fn from_str(text: &str) -> Result<GuestLock, String> {
        match text {
            "stock" => Ok(GuestLock::Stock),
            lock => Ok(GuestLock::Ours(lock.parse()?)),
        }
    }
}

/// Whether a guest marks what it holds in a page for the host (abi/guest/pv_page.h), as eCS does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Marks {
    /// No.
    #[default]
    Off,
    /// Yes; a task's marks are saved and put back when tasks are switched.
    On,
    /// Yes, but they stay with the CPU: an ablation.
    NoSave,
}

impl Marks {
    /// Its word on the command line and in the guest's log.
    pub fn word(self) -> &'static str {
        match self {
            Marks::Off => "off",
            Marks::On => "on",
            Marks::NoSave => "no_save",
        }
    }
}

/// A guest with our kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ours {
    /// Its spinlock.
    pub lock: Lock,
    /// It asks the host for help after each so many spins of a wait; 0: never.
    pub help_after_spins: u32,
    /// eCS's marks.
    pub marks: Marks,
}

impl Ours {
    /// The words of its kernel's command line.
    pub fn kernel_arguments(self) -> Vec<String> {
        let mut words = vec![format!("unspin_lock={}", self.lock)];
        if self.help_after_spins > 0 {
            words.push(format!("unspin_help={}", self.help_after_spins));
        }
        if self.marks != Marks::Off {
            words.push(format!("unspin_ecs={}", self.marks.word()));
        }
        words
    }

    /// Compares with what the guest's kernel wrote into its log.
    ///
    /// # Errors
    /// What it says instead, in words. A paravirtual lock without `kvm-pv-unhalt` becomes its plain form there.
    pub fn check_log(self, log: &str) -> Result<(), String> {
        let wanted = format!(
            "unspin: spinlocks {}, help after {} spins, ecs {}",
            self.lock,
            self.help_after_spins,
            self.marks.word()
        );
        let Some(line) = log.lines().find(|line| line.contains("unspin: spinlocks")) else {
            return Err("the guest's log does not say which of our spinlocks it has".into());
        };
        match line.ends_with(&wanted) {
            true => Ok(()),
            false => Err(format!("it says {line:?}, not {wanted:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_what_it_prints() {
        for lock in Lock::ALL {
            assert_eq!(lock.to_string().parse(), Ok(lock));
        }
        let refused = "mcs".parse::<Lock>().expect_err("unknown");
        assert!(refused.contains("pv_preemptable"), "{refused}");
    }

    #[test]
    fn the_guests_own_log_is_believed() {
        let mut ours = Ours {
            lock: Lock::PvTicket,
            help_after_spins: 0,
            marks: Marks::Off,
        };
        assert_eq!(ours.kernel_arguments(), ["unspin_lock=pv_ticket"]);
        let log =
            "[0.1] kvm-guest: x\n[0.2] unspin: spinlocks pv_ticket, help after 0 spins, ecs off\n";
        assert_eq!(ours.check_log(log), Ok(()));
        let plain = log.replace("pv_ticket", "ticket");
        assert!(ours.check_log(&plain).is_err());
        assert!(ours.check_log("kvm-guest: x").is_err());
        ours.help_after_spins = 500;
        ours.marks = Marks::NoSave;
        assert_eq!(
            ours.kernel_arguments(),
            [
                "unspin_lock=pv_ticket",
                "unspin_help=500",
                "unspin_ecs=no_save"
            ]
        );
        assert!(ours.check_log(log).is_err());
    }
}
