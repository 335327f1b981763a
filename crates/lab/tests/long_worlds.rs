// SPDX-License-Identifier: MIT OR Apache-2.0
//! Conservation and the orders of locks on 10,000 seeds.
#![allow(missing_docs)]
#![allow(
    clippy::duplicate_mod,
    reason = "both files are tests of their own, too"
)]

mod common;
#[path = "worlds/conservation.rs"]
mod conservation;
#[path = "worlds/lock_orders.rs"]
mod lock_orders;

const SEEDS: u64 = 10_000;

#[test]
fn long_conservation() {
    conservation::check_worlds(SEEDS);
}

#[test]
fn long_lock_orders() {
    lock_orders::check_orders(SEEDS);
}
