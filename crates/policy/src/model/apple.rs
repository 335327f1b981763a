// SPDX-License-Identifier: MIT OR Apache-2.0
//! APPLE, Algorithm 1: `policy/model/apple.h`.

use crate::{Vendor, raw};

/// APPLE's initial window, bounds and step; in the hardware's unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppleRule(raw::unspin_apple_rule);

/// One VM's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apple {
    rule: AppleRule,
    state: raw::unspin_apple,
}

/// Which of the three epochs of a round is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppleEpoch {
    /// At the desired window.
    Desired,
    /// At the desired window plus delta.
    More,
    /// At the desired window minus delta.
    Less,
}

impl AppleRule {
    /// The paper's parameters (section IV), scaled for AMD by ruling 20.
    pub fn new(vendor: Vendor) -> Self {
        let scaled = |cycles| match vendor {
            Vendor::Intel => cycles,
            // SAFETY: a function of a number alone.
            Vendor::Amd => unsafe { raw::unspin_apple_pauses(cycles) },
        };
        AppleRule(raw::unspin_apple_rule {
            initial: scaled(raw::UNSPIN_APPLE_INITIAL_CYCLES),
            lower: scaled(raw::UNSPIN_APPLE_LOWER_CYCLES),
            upper: scaled(raw::UNSPIN_APPLE_UPPER_CYCLES),
            delta: scaled(raw::UNSPIN_APPLE_DELTA_CYCLES),
        })
    }

    /// Other parameters. `None` unless 1 <= lower <= initial <= upper and delta is 1 or more.
    pub fn with(initial: u32, lower: u32, upper: u32, delta: u32) -> Option<Self> {
        let right = 1 <= lower && lower <= initial && initial <= upper && delta >= 1;
        right.then_some(AppleRule(raw::unspin_apple_rule {
            initial,
            lower,
            upper,
            delta,
        }))
    }

    /// The lower bound.
    pub fn lower(&self) -> u32 {
        self.0.lower
    }

    /// The initial window.
    pub fn initial(&self) -> u32 {
        self.0.initial
    }

    /// The upper bound.
    pub fn upper(&self) -> u32 {
        self.0.upper
    }

    /// The step.
    pub fn delta(&self) -> u32 {
        self.0.delta
    }
}

impl Apple {
    /// The window of a VM that has just been launched.
    pub fn new(rule: AppleRule) -> Self {
        let mut state = raw::unspin_apple::default();
        // SAFETY: both pointers are to valid structs, used for the length of the call only.
        unsafe { raw::unspin_apple_start(&rule.0, &mut state) };
        Apple { rule, state }
    }

    /// The VM's window now, for `desired` of [`crate::WindowRule::after_exit`].
    pub fn window(&self) -> u32 {
        // SAFETY: reads valid structs for the length of the call.
        unsafe { raw::unspin_apple_window(&self.rule.0, &self.state) }
    }

    /// The desired window of the current round.
    pub fn desired(&self) -> u32 {
        self.state.desired
    }

    /// The current epoch.
    pub fn epoch(&self) -> AppleEpoch {
        match self.state.epoch {
            raw::UNSPIN_APPLE_DESIRED => AppleEpoch::Desired,
            raw::UNSPIN_APPLE_MORE => AppleEpoch::More,
            _ => AppleEpoch::Less,
        }
    }

    /// An epoch has ended (after 1,000 exits: [`crate::Epoch::add_exit`]) with this inefficiency, ppm.
    pub fn epoch_over(&mut self, inefficiency_ppm: Option<u64>) {
        let ppm = inefficiency_ppm.unwrap_or(raw::UNSPIN_UNKNOWN as u64);
        // SAFETY: both pointers are to valid structs, used for the length of the call only.
        unsafe { raw::unspin_apple_epoch_over(&self.rule.0, &mut self.state, ppm) }
    }
}
