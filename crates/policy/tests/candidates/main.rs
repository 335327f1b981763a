// SPDX-License-Identifier: MIT OR Apache-2.0
//! The candidates that a spinner is offered (policy/steering/candidate.h).

mod candidate;
mod rules;
mod walk;
