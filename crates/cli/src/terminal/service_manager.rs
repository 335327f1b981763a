// SPDX-License-Identifier: MIT OR Apache-2.0
//! What systemd, or another service manager that speaks sd_notify(3), is told of a service. Nothing where there is none.

use std::time::{Duration, Instant};

use sd_notify::{NotifyState, notify, watchdog_enabled};

/// Sign of life at most so far apart: half of what the manager waits for (sd_watchdog_enabled(3)).
const PART_OF_WATCHDOG: u32 = 2;

/// Whoever started this process, if it wants to be told.
pub struct ServiceManager {
    /// Between two signs of life; `None`: it waits for none.
    every: Option<Duration>,
    last: Option<Instant>,
}

impl ServiceManager {
    /// By the environment (`NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`).
    pub fn here() -> ServiceManager {
        ServiceManager {
            every: watchdog_enabled().map(|time| time / PART_OF_WATCHDOG),
            last: None,
        }
    }

    /// The service does its work from now on.
    pub fn ready(&self, status: &str) {
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// The service ends.
    pub fn stopping(&self, status: &str) {
        tell(&[NotifyState::Stopping, NotifyState::Status(status)]);
    }

    /// The service is alive. May be called any number of times: as many are told as the manager wants.
    pub fn alive(&mut self) {
        let Some(every) = self.every else { return };
        if self.last.is_none_or(|at| at.elapsed() >= every) {
            self.last = Some(Instant::now());
            tell(&[NotifyState::Watchdog]);
        }
    }
}

/// Nobody is less served when it does not arrive: the manager then thinks what it thinks of a service that says nothing.
fn tell(state: &[NotifyState<'_>]) {
    let _ = notify(state);
}
