// SPDX-License-Identifier: MIT OR Apache-2.0
//! The hardware's rules: worked cases, and one closed computation against a simulation of each PAUSE.

use proptest::prelude::*;
use unspin_policy::{Pace, PauseHardware, PauseLoop, Spin, Vendor};

/// The manuals' rules implemented plainly, one PAUSE at a time.
#[derive(Clone, Copy, Default)]
struct EachPause {
    first: u64,
    last: Option<u64>,
    last_of_any_entry: u64,
    left: u32,
}

impl EachPause {
    fn entered(&mut self, window: u32) {
        self.last = None;
        self.left = window;
    }

    /// Returns whether it exits.
    fn pause(&mut self, vendor: Vendor, gap: u32, window: u32, now: u64, user: bool) -> bool {
        let gap_wide = u64::from(gap);
        match vendor {
            Vendor::Intel if user => false,
            Vendor::Intel => {
                let begins = self.last.is_none_or(|last| now - last > gap_wide);
                self.last = Some(now);
                if begins {
                    self.first = now;
                    return false;
                }
                now - self.first > u64::from(window)
            }
            Vendor::Amd => {
                if gap != 0 && now - self.last_of_any_entry > gap_wide {
                    self.left = window;
                }
                self.last_of_any_entry = now;
                if self.left == 0 {
                    return true;
                }
                self.left -= 1;
                false
            }
        }
    }
}

fn entered(hardware: &PauseHardware) -> PauseLoop {
    let mut state = PauseLoop::default();
    state.entered(hardware);
    state
}

/// 4,096 cycles, PAUSE each 100 cycles: the first PAUSE begins the loop, number 41 comes 4,100 cycles after it.
#[test]
fn intel_counts_cycles_from_the_first_pause() {
    let hardware = PauseHardware::new(Vendor::Intel, 128, 4096);
    let state = entered(&hardware);
    assert_eq!(
        state.exits(&hardware, &Spin::new(1000, 100, false)),
        Some(41)
    );
    // exactly the window is not more than the window
    assert_eq!(
        state.exits(&hardware, &Spin::new(1000, 64, false)),
        Some(65)
    );
    // user mode, and a loop slower than the gap
    assert_eq!(state.exits(&hardware, &Spin::new(1000, 100, true)), None);
    assert_eq!(
        state.exits(&hardware, &Spin::new(1000, 128, false)),
        Some(33)
    );
    assert_eq!(state.exits(&hardware, &Spin::new(1000, 129, false)), None);
}

#[test]
fn intel_goes_on_with_a_loop_within_the_gap_only() {
    let hardware = PauseHardware::new(Vendor::Intel, 128, 4096);
    let mut state = entered(&hardware);
    state.spun(&hardware, &Spin::new(1000, 100, false), 31);
    // the last PAUSE was at 4000: 3,000 cycles of the window are spent
    assert_eq!(
        state.exits(&hardware, &Spin::new(4128, 100, false)),
        Some(10)
    );
    assert_eq!(
        state.exits(&hardware, &Spin::new(4129, 100, false)),
        Some(41)
    );
    // user mode in between does not count, and an entry into the guest resets the loop
    state.spun(&hardware, &Spin::new(4050, 10, true), 5);
    assert_eq!(
        state.exits(&hardware, &Spin::new(4128, 100, false)),
        Some(10)
    );
    state.entered(&hardware);
    assert_eq!(
        state.exits(&hardware, &Spin::new(4128, 100, false)),
        Some(41)
    );
}

/// One exit for every count + 1 PAUSEs, in user mode as well.
#[test]
fn amd_counts_pauses() {
    let hardware = PauseHardware::new(Vendor::Amd, 128, 3000);
    let mut state = entered(&hardware);
    for user in [false, true] {
        let spin = Spin::new(1000, 40, user);
        assert_eq!(state.exits(&hardware, &spin), Some(3000));
    }
    state.spun(&hardware, &Spin::new(1000, 40, false), 1000);
    // the last PAUSE was at 40,960
    assert_eq!(
        state.exits(&hardware, &Spin::new(41_088, 40, false)),
        Some(2000)
    );
    assert_eq!(
        state.exits(&hardware, &Spin::new(41_089, 40, false)),
        Some(3000)
    );
    assert_eq!(state.exits(&hardware, &Spin::new(41_000, 129, false)), None);
    // without a threshold only an entry loads the count
    let counting = PauseHardware::new(Vendor::Amd, 0, 3000);
    assert_eq!(
        state.exits(&counting, &Spin::new(1 << 40, 1 << 20, false)),
        Some(2000)
    );
}

/// Stock TCG: no filter, every PAUSE exits. And hardware without pause-loop exits.
#[test]
fn every_pause_and_none() {
    let every = PauseHardware::new(Vendor::Amd, 0, 0);
    assert_eq!(
        entered(&every).exits(&every, &Spin::new(5, 1000, true)),
        Some(0)
    );
    let none = PauseHardware::OFF;
    assert_eq!(entered(&none).exits(&none, &Spin::new(5, 1, false)), None);
}

/// k = 8 spins of 30 cycles, the next PAUSE in 3: number 18 is the first more than 4,096 cycles after the first.
#[test]
fn in_spins_of_a_lock_that_pauses_now_and_then() {
    let hardware = PauseHardware::new(Vendor::Intel, 256, 4096);
    let pace = Pace {
        spin_cycles: 30,
        spins_per_pause: 8,
    };
    let state = entered(&hardware);
    assert_eq!(
        state.exits_after_spins(&hardware, 0, pace, 3, false),
        Some(3 + 18 * 8)
    );
    assert_eq!(state.exits_after_spins(&hardware, 0, pace, 3, true), None);
}

/// Some spins, each after some time, ended early or by an exit.
type Piece = (u64, u64, bool, u64);

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = (0u64..300, 0u64..200, prop::bool::weighted(0.2), 0u64..60);
    prop::collection::vec(piece, 1..8)
}

proptest! {
    #[test]
    fn asking_once_is_as_looking_at_each(
        amd in any::<bool>(), gap in prop_oneof![Just(0u32), 1u32..200], window in 0u32..2000, pieces in pieces()
    ) {
        let vendor = if amd { Vendor::Amd } else { Vendor::Intel };
        let hardware = PauseHardware::new(vendor, gap, window);
        let (mut state, mut each) = (entered(&hardware), EachPause::default());
        each.entered(window);
        let mut now = 0;
        for (idle, period, user, pauses) in pieces {
            let first = now + idle;
            let spin = Spin::new(first, period, user);
            let asked = state.exits(&hardware, &spin).filter(|pause| *pause < pauses);
            let mut looked = None;
            for pause in 0..pauses {
                now = first + pause * period;
                if each.pause(vendor, gap, window, now, user) {
                    looked = Some(pause);
                    break;
                }
            }
            prop_assert_eq!(asked, looked);
            match asked {
                Some(_) => {
                    state.entered(&hardware);
                    each.entered(window);
                }
                None => state.spun(&hardware, &spin, pauses),
            }
        }
    }

    /// Counting spins and counting PAUSEs give the same result.
    #[test]
    fn spins_are_pauses(window in 1u32..100_000, spin_cycles in 1u32..200, spins_per_pause in 1u32..64, part in 0u32..64) {
        let spins_to_pause = part % spins_per_pause + 1;
        let pace = Pace { spin_cycles, spins_per_pause };
        for vendor in [Vendor::Intel, Vendor::Amd] {
            let hardware = PauseHardware::new(vendor, 128, window);
            let state = entered(&hardware);
            let spin = Spin::of_count(77, pace, spins_to_pause, false);
            let by_pauses = state.exits(&hardware, &spin)
                .map(|pause| u64::from(spins_to_pause) + pause * u64::from(spins_per_pause));
            prop_assert_eq!(state.exits_after_spins(&hardware, 77, pace, spins_to_pause, false), by_pauses);
        }
    }
}
