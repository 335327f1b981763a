// SPDX-License-Identifier: MIT OR Apache-2.0
//! Structs of `abi/` from and to the bytes that the kernel's maps hold.

use std::ffi::c_char;

use unspin_abi as abi;

use crate::Error;

/// A struct of integers only, without padding: any bytes of its size are a valid value.
///
/// # Safety
/// The type is `repr(C)`, and all its fields are integers or arrays of integers that leave no gap.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: 8-byte and 4-byte integers in natural alignment without a gap; abi/bpf/events.h asserts 48 bytes.
unsafe impl Plain for abi::unspin_event {}
// SAFETY: as above; abi/bpf/observe.h asserts its size, the sum of its fields.
unsafe impl Plain for abi::unspin_observed_thread {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_observe_globals {}
// SAFETY: an 8-byte integer, four 4-byte ones, another 8-byte one and six of 4; abi/bpf/observe.h asserts 56 bytes.
unsafe impl Plain for abi::unspin_synthetic {}
// SAFETY: two 4-byte integers.
unsafe impl Plain for abi::unspin_observe_options {}
// SAFETY: abi/bpf/scheduler.h asserts the sizes, the sums of their fields; bytes and integers only.
unsafe impl Plain for abi::unspin_steer_options {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_steer_thread {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_steer_control {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_steer_vm {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: abi/bpf/watch.h asserts the sizes of these three, the sums of their fields: integers only.
unsafe impl Plain for abi::unspin_watch_record {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_watch_vm {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_watch_globals {}
// SAFETY: as above.
unsafe impl Plain for unspin_policy::GuestAudit {}
// SAFETY: policy/auto/useful_time.h asserts its size, the sum of its fields: integers only.
unsafe impl Plain for unspin_policy::auto::UsefulTime {}
// SAFETY: as those before.
unsafe impl Plain for abi::unspin_steer_exit {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_user_policy {}
// SAFETY: abi/bpf/dry.h asserts the sizes of these three, the sums of their fields: integers only.
unsafe impl Plain for abi::unspin_dry_key {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_dry_count {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_dry_losses {}
// SAFETY: abi/bpf/window.h asserts the sizes of these four, the sums of their fields: integers only.
unsafe impl Plain for abi::unspin_window_options {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_window_epoch {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_window_globals {}
// SAFETY: as above.
unsafe impl Plain for abi::unspin_window_sums {}
// SAFETY: an array of 8-byte integers.
unsafe impl Plain for abi::unspin_steer_counters {}
// SAFETY: policy/steering/policies.h asserts its size, the sum of its fields: integers in structs of integers, none with a gap.
unsafe impl Plain for unspin_policy::steering::DecisionRecord {}

/// A C string in an array; all of it when it has no end.
pub(crate) fn text(characters: &[c_char]) -> String {
    let bytes: Vec<u8> = characters
        .iter()
        .map(|character| *character as u8)
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_zero_or_at_the_end() {
        let characters = |text: &[u8]| text.iter().map(|byte| *byte as c_char).collect::<Vec<_>>();
        assert_eq!(text(&characters(b"stall\0rest")), "stall");
        assert_eq!(text(&characters(b"full")), "full");
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn bytes_and_structs_are_each_others_inverse() {
        let event = abi::unspin_event {
            time_ns: 0x0102_0304_0506_0708,
            kind: 9,
            argument2: u64::MAX,
            ..Default::default()
        };
        let bytes = bytes_of(&event).to_vec();
        assert_eq!(bytes.len(), 48);
        assert_eq!(bytes[0], 8);
        assert_eq!(
            read::<abi::unspin_event>("events", &bytes).ok(),
            Some(event)
        );
        // One byte further, so that nothing is aligned.
        let mut moved = vec![0];
        moved.extend(&bytes);
        assert_eq!(
            read::<abi::unspin_event>("events", &moved[1..]).ok(),
            Some(event)
        );
        for wrong in [&bytes[1..], &moved[..], &[]] {
            let error = read::<abi::unspin_event>("events", wrong).expect_err("another size");
            assert!(error.to_string().contains("expected 48 bytes"), "{error}");
        }
    }
}
