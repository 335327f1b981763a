// SPDX-License-Identifier: MIT OR Apache-2.0
//! VEE'21's debooster: `policy/model/deboost.h`.

use crate::raw;

/// The kind of debooster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deboost {
    /// None.
    #[default]
    Off,
    /// The paper's: acts only within one group.
    Paper,
    /// Ours: acts at the common ancestor of two groups.
    Ancestor,
}

impl Deboost {
    /// Its name as part of a scheduler's name.
    pub fn name(self) -> &'static str {
        match self {
            Deboost::Off => "off",
            Deboost::Paper => "paper",
            Deboost::Ancestor => "ancestor",
        }
    }

    /// The yielder's virtual time from now on. Virtual times wrap around as in the kernel; `threshold` is below 2^63.
    pub fn yielder_vtime(self, pair: DeboostPair, threshold: u64) -> u64 {
        let form = match self {
            Deboost::Off => raw::UNSPIN_DEBOOST_OFF,
            Deboost::Paper => raw::UNSPIN_DEBOOST_PAPER,
            Deboost::Ancestor => raw::UNSPIN_DEBOOST_ANCESTOR,
        };
        let facts = raw::unspin_deboost_facts {
            yielder_vtime: pair.yielder_vtime,
            target_vtime: pair.target_vtime,
            threshold,
            same_cpu: crate::known(Some(pair.same_cpu)),
            same_parent: crate::known(Some(pair.same_parent)),
        };
        // SAFETY: reads a valid struct for the length of the call.
        unsafe { raw::unspin_deboosted(form, &facts) }
    }
}

/// A spinner and its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeboostPair {
    /// The spinner's virtual time; for [`Deboost::Ancestor`] that of its ancestor below the common one.
    pub yielder_vtime: u64,
    /// The target's, likewise.
    pub target_vtime: u64,
    /// Whether both are on one pCPU's run queue.
    pub same_cpu: bool,
    /// Whether both are in one group.
    pub same_parent: bool,
}
