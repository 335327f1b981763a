// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a stream of events means. No input or output in here: events in order of time and the facts beside them go in,
//! the same figures come out every time.
