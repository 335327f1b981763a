// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of a user's own.

mod user_policy;
