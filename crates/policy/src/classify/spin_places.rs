// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where a guest waits: `policy/classify/spin_places.h`.

use crate::raw;

/// Places that are kept of a VM.
pub const SPIN_PLACES: usize = raw::UNSPIN_SPIN_PLACES as usize;

/// For how long a place is kept without a pause-loop exit there, ns.
pub const SPIN_PLACE_NS: u64 = raw::UNSPIN_SPIN_PLACE_NS;

/// Those of one VM.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpinPlaces(pub(crate) raw::unspin_spin_places);

/// `space`: the address space in user mode; `None`: in the kernel.
fn place(pointer: u64, space: Option<u64>) -> raw::unspin_code_place {
    raw::unspin_code_place {
        pointer,
        space: space.unwrap_or(0),
    }
}

impl SpinPlaces {
    /// A pause-loop exit was there, at a time above 0; `space`: the address space in user mode, `None` in the kernel.
    pub fn learn(&mut self, pointer: u64, space: Option<u64>, now_ns: u64) {
        let place = place(pointer, space);
        // SAFETY: the pointers are to valid structs, used for the length of the call only.
        unsafe { raw::unspin_learn_spin_place(&mut self.0, &place, 0, 0, now_ns) };
    }

    /// Whether the guest waits there.
    pub fn is_one(&self, pointer: u64, space: Option<u64>, now_ns: u64) -> bool {
        let place = place(pointer, space);
        // SAFETY: as above.
        let found = unsafe { raw::unspin_spin_place_of(&self.0, &place, now_ns) };
        (found as usize) < SPIN_PLACES
    }
}
