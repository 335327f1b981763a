// SPDX-License-Identifier: MIT OR Apache-2.0
//! Useful time of VMs: `policy/auto/useful_time.h`.

use crate::{SpinPlaces, raw};

/// Sums of one VM since the meter was attached.
pub use raw::unspin_useful_time as UsefulTime;

/// Why a vCPU left its guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StretchEnd {
    /// A pause-loop exit.
    PauseLoop,
    /// An interrupt of the host.
    Interrupted,
    /// Anything else.
    Other,
}

/// A stretch of time in the guest has ended.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// When; above 0.
    pub now_ns: u64,
    /// Why.
    pub end: StretchEnd,
    /// The guest's instruction pointer; `None`: it cannot be read (Intel).
    pub pointer: Option<u64>,
    /// The guest's address space, in user mode; `None`: it was in its kernel.
    pub space: Option<u64>,
    /// The window in force, in the hardware's unit.
    pub window: Option<u32>,
}

/// One vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinMeter(raw::unspin_spin_meter);

impl SpinMeter {
    /// The vCPU enters its guest; `now_ns` above 0.
    pub fn enter(&mut self, now_ns: u64) {
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe { raw::unspin_meter_enter(&mut self.0, now_ns) }
    }

    /// The vCPU has left its guest: adds the time spent there to its VM's sums, and stores the place if the guest waited there.
    pub fn exit(&mut self, places: &mut SpinPlaces, sums: &mut UsefulTime, stretch: &Stretch) {
        let stretch = raw::unspin_stretch {
            now_ns: stretch.now_ns,
            where_: raw::unspin_code_place {
                pointer: stretch.pointer.unwrap_or(0),
                space: stretch.space.unwrap_or(0),
            },
            end: match stretch.end {
                StretchEnd::PauseLoop => raw::UNSPIN_STRETCH_PAUSE_LOOP,
                StretchEnd::Interrupted => raw::UNSPIN_STRETCH_INTERRUPTED,
                StretchEnd::Other => raw::UNSPIN_STRETCH_OTHER,
            },
            window: stretch.window.unwrap_or(0),
            user: stretch.space.is_some().into(),
            renews: 0,
        };
        // SAFETY: the pointers are to valid structs, used for the length of the call only.
        unsafe { raw::unspin_meter_exit(&mut self.0, &mut places.0, sums, &stretch) }
    }
}

impl SpinMeter {
    /// A timer of its own has fired while the vCPU's thread runs.
    pub fn sample(&self, sums: &mut UsefulTime) {
        // SAFETY: as above.
        unsafe { raw::unspin_meter_sample(&self.0, sums) }
    }
}

impl UsefulTime {
    /// What has been added since `before`; 0 where that had more: another VM with the number.
    pub fn since(&self, before: &UsefulTime) -> UsefulTime {
        UsefulTime {
            guest_ns: self.guest_ns.saturating_sub(before.guest_ns),
            spin_ns: self.spin_ns.saturating_sub(before.spin_ns),
            spin_exits: self.spin_exits.saturating_sub(before.spin_exits),
            user_spin_exits: self.user_spin_exits.saturating_sub(before.user_spin_exits),
            samples: self.samples.saturating_sub(before.samples),
            waiting: self.waiting.saturating_sub(before.waiting),
        }
    }

    /// Adds another CPU's.
    pub fn add(&mut self, other: &UsefulTime) {
        self.guest_ns += other.guest_ns;
        self.spin_ns += other.spin_ns;
        self.spin_exits += other.spin_exits;
        self.user_spin_exits += other.user_spin_exits;
        self.samples += other.samples;
        self.waiting += other.waiting;
    }

    /// The same, with what was spun by samples alone; nothing at all where there are too few of them.
    pub fn by_samples(mut self) -> UsefulTime {
        // SAFETY: the pointer is to a valid struct, used for the length of the call only.
        unsafe { raw::unspin_by_samples(&mut self) };
        self
    }

    /// Time in the guest that was not spun, ns.
    pub fn useful_ns(&self) -> u64 {
        self.guest_ns.saturating_sub(self.spin_ns)
    }

    /// Time spun of a thousand parts of the time in the guest.
    pub fn spin_permille(&self) -> u32 {
        // SAFETY: a function of numbers alone.
        unsafe { raw::unspin_spin_permille(self.guest_ns, self.spin_ns) }
    }
}
