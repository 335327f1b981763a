// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which PAUSE exits: `policy/model/pause_loop.h`.

use crate::{Vendor, raw};

/// The hardware as one vCPU has it: gap and window in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseHardware(raw::unspin_pause_hardware);

/// What the hardware remembers of one vCPU between PAUSEs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseLoop(raw::unspin_pause_loop);

/// PAUSEs to come at a steady pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin(raw::unspin_spin);

/// The pace of a spin loop: PAUSE at every k-th spin (`locks/platform/contract.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// One spin of the loop, its share of PAUSE included, TSC cycles; 1 or more.
    pub spin_cycles: u32,
    /// k; 1 or more.
    pub spins_per_pause: u32,
}

impl PauseHardware {
    /// No pause-loop exits.
    pub const OFF: PauseHardware = PauseHardware(raw::unspin_pause_hardware {
        kind: raw::UNSPIN_PAUSE_NO_EXITS,
        gap_cycles: 0,
        window: 0,
    });

    /// Gap in cycles (AMD: 0 is none), window in TSC cycles (Intel) or PAUSEs (AMD; 0: every PAUSE exits).
    pub fn new(vendor: Vendor, gap_cycles: u32, window: u32) -> Self {
        let kind = match vendor {
            Vendor::Intel => raw::UNSPIN_PAUSE_INTEL,
            Vendor::Amd => raw::UNSPIN_PAUSE_AMD,
        };
        PauseHardware(raw::unspin_pause_hardware {
            kind,
            gap_cycles,
            window,
        })
    }

    /// The window in force.
    pub fn window(&self) -> u32 {
        self.0.window
    }

    /// Sets it: in force from the next entry on.
    pub fn set_window(&mut self, window: u32) {
        self.0.window = window;
    }
}

impl Spin {
    /// The first PAUSE at `first_cycles` of the TSC, then one each `period_cycles`; `user`: at CPL 3.
    pub fn new(first_cycles: u64, period_cycles: u64, user: bool) -> Self {
        Spin(raw::unspin_spin {
            first_cycles,
            period_cycles,
            user: u32::from(user),
            unused: 0,
        })
    }

    /// A spin that begins at `now_cycles`, `spins_to_pause` spins (1 or more) before its first PAUSE.
    pub fn of_count(now_cycles: u64, pace: Pace, spins_to_pause: u32, user: bool) -> Self {
        let mut spin = Spin::new(0, 0, user);
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe {
            raw::unspin_spin_of_count(
                &mut spin.0,
                now_cycles,
                pace.spin_cycles,
                pace.spins_per_pause,
                spins_to_pause,
            );
        }
        spin
    }
}

impl PauseLoop {
    /// The guest is entered.
    pub fn entered(&mut self, hardware: &PauseHardware) {
        // SAFETY: both pointers are to valid structs, used for the length of the call only.
        unsafe { raw::unspin_pause_entered(&hardware.0, &mut self.0) }
    }

    /// Which PAUSE of the spin exits, counted from 0; `None`: none, however long it spins.
    pub fn exits(&self, hardware: &PauseHardware, spin: &Spin) -> Option<u64> {
        // SAFETY: reads valid structs for the length of the call.
        let pause = unsafe { raw::unspin_pause_exits(&hardware.0, &self.0, &spin.0) };
        (pause != raw::UNSPIN_PAUSE_NEVER as u64).then_some(pause)
    }

    /// After how many spins of a spin that begins now the guest exits; `None`: never.
    pub fn exits_after_spins(
        &self,
        hardware: &PauseHardware,
        now_cycles: u64,
        pace: Pace,
        spins_to_pause: u32,
        user: bool,
    ) -> Option<u64> {
        let spin = Spin::of_count(now_cycles, pace, spins_to_pause, user);
        let pause = self.exits(hardware, &spin)?;
        // SAFETY: a function of numbers alone.
        let spins = unsafe { raw::unspin_spins_until(pause, pace.spins_per_pause, spins_to_pause) };
        (spins != raw::UNSPIN_PAUSE_NEVER as u64).then_some(spins)
    }

    /// The first `pauses` of the spin came and did not exit: at most as many as [`PauseLoop::exits`] says.
    pub fn spun(&mut self, hardware: &PauseHardware, spin: &Spin, pauses: u64) {
        // SAFETY: all pointers are to valid structs, used for the length of the call only.
        unsafe { raw::unspin_pause_spun(&hardware.0, &mut self.0, &spin.0, pauses) }
    }
}
