// SPDX-License-Identifier: MIT OR Apache-2.0
//! Inefficiency by epoch: `policy/model/inefficiency.h` over a stream of events (rulings 17, 18, 19).

use unspin_policy::{Epoch, PAUSE_LEAST_PS, Run, window_is_honoured, window_is_quicker};

/// Epochs kept of one VM; later ones are counted and left out.
const EPOCHS_MAX: usize = 65_536;

/// What a window counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WindowUnit {
    /// Nobody says.
    #[default]
    Unknown,
    /// PAUSEs (AMD): their time is measured.
    Pauses,
    /// TSC cycles (Intel), so many thousands a second; `None`: not known.
    Cycles {
        /// TSC frequency in kHz.
        tsc_khz: Option<u64>,
    },
}

/// An epoch that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedEpoch {
    /// When it began.
    pub begin_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Its sums.
    pub epoch: Epoch,
    /// Whether no event is missing, and what every vCPU of the VM did was known all the time.
    pub whole: bool,
}

/// The epochs of one VM.
#[derive(Clone, Debug, Default)]
pub struct Epochs {
    ended: Vec<EndedEpoch>,
    left_out: u64,
    begin_ns: Option<u64>,
    epoch: Epoch,
    broken: bool,
    /// Of the window that was spun through quickest: its time in the guest, and the window.
    spun_ns: u64,
    spun_units: u64,
}

impl Epochs {
    /// CPU time of one of the VM's vCPUs.
    pub fn add_cpu(&mut self, ns: u64) {
        self.epoch.add_cpu(ns);
    }

    /// A pause-loop exit's handling time.
    pub fn add_handling(&mut self, ns: u64) {
        self.epoch.add_handling(ns);
    }

    /// Something is not known: the epoch that goes on is not whole.
    pub fn forget(&mut self) {
        self.broken = true;
    }

    /// A pause-loop exit. Returns whether the epoch is over: then the CPU time of vCPUs that run must be added up to now, and
    /// [`Epochs::end`] be called.
    pub fn add_exit(&mut self, time_ns: u64, window: Option<u32>) -> bool {
        self.begin_ns.get_or_insert(time_ns);
        self.epoch.add_exit(window)
    }

    /// How long a window takes: an exit that continues a run was entered within the waiting loop and left at its window's
    /// end, so its time in the guest is that of one whole window. `run` is the run that it belongs to by now, which host
    /// interrupts end.
    pub fn add_time(&mut self, run: &Run, window: Option<u32>, inside_ns: u32) {
        let (inside_ns, units) = (u64::from(inside_ns), u64::from(window.unwrap_or(0)));
        let quicker = window_is_quicker(inside_ns, units, self.spun_ns, self.spun_units);
        if run.exits() > 1 && quicker {
            (self.spun_ns, self.spun_units) = (inside_ns, units);
        }
    }

    /// Ends the epoch. `all_known`: what every vCPU does is known.
    pub fn end(&mut self, time_ns: u64, all_known: bool) {
        let begin_ns = self.begin_ns.replace(time_ns).unwrap_or(time_ns);
        let ended = EndedEpoch {
            begin_ns,
            end_ns: time_ns,
            epoch: std::mem::take(&mut self.epoch),
            whole: !self.broken && all_known,
        };
        self.broken = !all_known;
        if self.ended.len() < EPOCHS_MAX {
            self.ended.push(ended);
        } else {
            self.left_out += 1;
        }
    }

    /// Those that are over.
    pub fn ended(&self) -> &[EndedEpoch] {
        &self.ended
    }

    /// How many more there were.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// How long one unit of the window takes, picoseconds. `None`: not known, or windows are ignored.
    pub fn unit_ps(&self, unit: WindowUnit) -> Option<u64> {
        let measured_ps = self.measured_ps()?;
        match unit {
            WindowUnit::Unknown => None,
            WindowUnit::Pauses => self.honoured(PAUSE_LEAST_PS).then_some(measured_ps),
            WindowUnit::Cycles { tsc_khz } => {
                let cycle_ps = 1_000_000_000u64.checked_div(tsc_khz?)?;
                // A tenth less: the clock's error.
                self.honoured(cycle_ps - cycle_ps / 10).then_some(cycle_ps)
            }
        }
    }

    /// Time of one unit of the window that was spun through quickest, picoseconds; `None` without any.
    pub fn measured_ps(&self) -> Option<u64> {
        let ps = u128::from(self.spun_ns) * 1000;
        u64::try_from(ps.checked_div(self.spun_units.into())?).ok()
    }

    /// Whether exits come no more often than the window allows; `None`: there is nothing to tell by.
    pub fn window_is_honoured(&self, unit: WindowUnit) -> Option<bool> {
        self.measured_ps()?;
        match unit {
            WindowUnit::Unknown => None,
            WindowUnit::Pauses => Some(self.honoured(PAUSE_LEAST_PS)),
            WindowUnit::Cycles { tsc_khz } => {
                let cycle_ps = 1_000_000_000u64.checked_div(tsc_khz?)?;
                Some(self.honoured(cycle_ps - cycle_ps / 10))
            }
        }
    }

    fn honoured(&self, least_unit_ps: u64) -> bool {
        window_is_honoured(self.spun_ns, self.spun_units, least_unit_ps)
    }
}
