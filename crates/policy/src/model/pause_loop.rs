// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which PAUSEs exit: `policy/model/pause_loop.h`. How the window of pause-loop exits is set:
//! `policy/model/ple_window.h`.

use crate::raw;

/// The pause-loop hardware of one vCPU: gap and window in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseHardware(raw::unspin_pause_hardware);

/// The hardware's state of one vCPU between PAUSEs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseLoop(raw::unspin_pause_loop);

/// The next PAUSEs of a spin, at a constant rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin(raw::unspin_spin);

/// The rate of a spin loop: PAUSE at every k-th spin (`locks/platform/contract.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time of one spin of the loop, including its share of PAUSE, TSC cycles; 1 or more.
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

    /// Gap in cycles (AMD; 0: there is none), window in TSC cycles (Intel) or PAUSEs (AMD; 0: every PAUSE exits).
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

    /// Sets the window, in force from the next entry on.
    pub fn set_window(&mut self, window: u32) {
        self.0.window = window;
    }
}

impl Spin {
    /// The first PAUSE is at `first_cycles` of the TSC, then one in each `period_cycles`; `user`: at CPL 3.
    pub fn new(first_cycles: u64, period_cycles: u64, user: bool) -> Self {
        Spin(raw::unspin_spin {
            first_cycles,
            period_cycles,
            user: u32::from(user),
            unused: 0,
        })
    }

    /// A spin that begins at `now_cycles`, with `spins_to_pause` spins (1 or more) until its first PAUSE.
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

    /// The PAUSE of the spin that exits, counted from 0; `None`: none, however long it spins.
    pub fn exits(&self, hardware: &PauseHardware, spin: &Spin) -> Option<u64> {
        // SAFETY: reads valid structs for the length of the call.
        let pause = unsafe { raw::unspin_pause_exits(&hardware.0, &self.0, &spin.0) };
        (pause != raw::UNSPIN_PAUSE_NEVER as u64).then_some(pause)
    }

    /// The number of spins, from now, after which the guest exits; `None`: never.
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

    /// The first `pauses` of the spin have been executed without an exit; at most as many as [`PauseLoop::exits`]
    /// returned.
    pub fn spun(&mut self, hardware: &PauseHardware, spin: &Spin, pauses: u64) {
        // SAFETY: all pointers are to valid structs, used for the length of the call only.
        unsafe { raw::unspin_pause_spun(&hardware.0, &mut self.0, &spin.0, pauses) }
    }
}

/// The largest gap between two PAUSEs of a loop, as KVM sets it up, TSC cycles (Intel) or cycles (AMD).
pub const DEFAULT_GAP_CYCLES: u32 = raw::UNSPIN_PLE_GAP_CYCLES;

/// The vendor of the pause-loop hardware, which decides its unit and KVM's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// PLE: windows in TSC cycles.
    Intel,
    /// Pause filter: windows in PAUSEs.
    Amd,
}

/// How the window is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// There are no pause-loop exits.
    Off,
    /// It is fixed.
    Fixed,
    /// It is fixed, as in KVM before its windows were dynamic.
    Kvm2012,
    /// As in current KVM: grows at exits, shrinks at switches.
    Kvm,
    /// APPLE: the VM's window ([`crate::Apple`]).
    Apple,
}

impl Control {
    /// All of them, in the order of the header.
    pub const ALL: [Control; raw::UNSPIN_WINDOW_CONTROLS as usize] = [
        Control::Off,
        Control::Fixed,
        Control::Kvm2012,
        Control::Kvm,
        Control::Apple,
    ];

    /// The name on command lines and in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Control::Off => "off",
            Control::Fixed => "fixed",
            Control::Kvm2012 => "kvm-2012",
            Control::Kvm => "kvm",
            Control::Apple => "apple",
        }
    }

    /// Its number in `enum unspin_window_control`.
    pub fn raw(self) -> u32 {
        match self {
            Control::Off => raw::UNSPIN_WINDOW_OFF,
            Control::Fixed => raw::UNSPIN_WINDOW_FIXED,
            Control::Kvm2012 => raw::UNSPIN_WINDOW_KVM_2012,
            Control::Kvm => raw::UNSPIN_WINDOW_KVM,
            Control::Apple => raw::UNSPIN_WINDOW_APPLE,
        }
    }
}

/// What a window policy sets: `policy/model/spin_threshold.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpinBound {
    /// The hardware's window.
    Window,
    /// The bound at which guests end their own waits.
    Threshold,
}

/// Whether an exit ends a wait, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitExit {
    /// For another reason.
    None,
    /// A pause-loop exit.
    PauseLoop,
    /// HLT.
    Halt,
    /// `KVM_HC_SCHED_YIELD`.
    Yield,
    /// The hypercall for help.
    Help,
}

impl SpinBound {
    /// Its number in `enum unspin_spin_bound`.
    pub fn raw(self) -> u32 {
        match self {
            SpinBound::Window => raw::UNSPIN_BOUND_WINDOW,
            SpinBound::Threshold => raw::UNSPIN_BOUND_THRESHOLD,
        }
    }

    /// Whether an exit counts in an epoch. `waits_for_lock`: what the guest publishes about its vCPU; `None`: nothing.
    pub fn counts(self, exit: WaitExit, waits_for_lock: Option<bool>) -> bool {
        let exit = match exit {
            WaitExit::None => raw::UNSPIN_WAIT_EXIT_NONE,
            WaitExit::PauseLoop => raw::UNSPIN_WAIT_EXIT_PAUSE_LOOP,
            WaitExit::Halt => raw::UNSPIN_WAIT_EXIT_HALT,
            WaitExit::Yield => raw::UNSPIN_WAIT_EXIT_YIELD,
            WaitExit::Help => raw::UNSPIN_WAIT_EXIT_HELP,
        };
        let waits = waits_for_lock.map_or(raw::UNSPIN_UNKNOWN_HALF, u32::from);
        // SAFETY: a function of numbers alone.
        unsafe { raw::unspin_exit_counts(self.raw(), exit, waits) }
    }
}

/// A host's rule, with the parameters of its KVM module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRule {
    control: Control,
    vendor: Vendor,
    raw: raw::unspin_window_rule,
}

impl WindowRule {
    /// KVM's defaults, 7.2.
    pub fn new(control: Control, vendor: Vendor) -> Self {
        let (base, max) = match vendor {
            Vendor::Intel => (raw::UNSPIN_PLE_WINDOW_CYCLES, raw::UNSPIN_PLE_MAX_CYCLES),
            Vendor::Amd => (raw::UNSPIN_PLE_WINDOW_PAUSES, raw::UNSPIN_PLE_MAX_PAUSES),
        };
        let raw = raw::unspin_window_rule {
            control: control.raw(),
            base,
            grow: raw::UNSPIN_PLE_GROW,
            shrink: raw::UNSPIN_PLE_SHRINK,
            max,
        };
        WindowRule {
            control,
            vendor,
            raw,
        }
    }

    /// With another initial window: `ple_window`, `pause_filter_count`. 1 or more.
    pub fn with_base(mut self, window: u32) -> Self {
        self.raw.base = window;
        self
    }

    /// With other steps: `*_grow`, `*_shrink`, `*_max`. 0 resets the window; a value below the base is a factor,
    /// otherwise a difference.
    pub fn with_steps(mut self, grow: u32, shrink: u32, max: u32) -> Self {
        (self.raw.grow, self.raw.shrink, self.raw.max) = (grow, shrink, max);
        self
    }

    /// Grow, shrink and the largest window.
    pub fn steps(&self) -> (u32, u32, u32) {
        (self.raw.grow, self.raw.shrink, self.raw.max)
    }

    /// How the window is set.
    pub fn control(&self) -> Control {
        self.control
    }

    /// The hardware of a vCPU with this window, as KVM sets it up; none under [`Control::Off`].
    pub fn hardware(&self, gap_cycles: u32, window: u32) -> PauseHardware {
        match self.control {
            Control::Off => PauseHardware::OFF,
            _ => PauseHardware::new(self.vendor, gap_cycles, window),
        }
    }

    /// The window of a new vCPU.
    pub fn at_start(&self) -> u32 {
        self.raw.base
    }

    /// The window from the next entry on, after a pause-loop exit with `window` in force. `desired`: APPLE's for the
    /// VM, used under that control only.
    pub fn after_exit(&self, window: u32, desired: u32) -> u32 {
        // SAFETY: reads a valid struct for the length of the call.
        unsafe { raw::unspin_window_after_exit(&self.raw, window, desired) }
    }

    /// The window of a vCPU that is switched in.
    pub fn after_switch(&self, window: u32) -> u32 {
        // SAFETY: reads a valid struct for the length of the call.
        unsafe { raw::unspin_window_after_switch(&self.raw, window) }
    }
}
