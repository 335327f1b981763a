// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structs of `abi/` from and to the bytes that the kernel's maps hold.

use unspin_abi as abi;

use crate::Error;

/// A struct of integers only, without padding: any bytes of its size are a valid value.
///
/// # Safety
/// The type is `repr(C)`, and all its fields are integers or arrays of integers that leave no gap.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: 8-byte and 4-byte integers in natural alignment without a gap; abi/events.h asserts 48 bytes.
unsafe impl Plain for abi::unspin_event {}
// SAFETY: as above; abi/observe.h asserts its size, the sum of its fields.
unsafe impl Plain for abi::unspin_observed_thread {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_observe_globals {}
// SAFETY: two 4-byte integers.
unsafe impl Plain for abi::unspin_observe_options {}

/// The struct that those bytes hold. `map` names it in the error when there are more or fewer bytes than its size.
pub(crate) fn read<T: Plain>(map: &'static str, bytes: &[u8]) -> Result<T, Error> {
    if bytes.len() != size_of::<T>() {
        return Err(Error::Layout {
            map,
            expected: size_of::<T>(),
            found: bytes.len(),
        });
    }
    // SAFETY: exactly size_of::<T>() readable bytes, checked above; no alignment asked for; T is Plain.
    Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// The bytes of a struct.
pub(crate) fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: size_of::<T>() initialised bytes (Plain: no padding) that live as long as `value`.
    unsafe { std::slice::from_raw_parts((value as *const T).cast::<u8>(), size_of::<T>()) }
}
