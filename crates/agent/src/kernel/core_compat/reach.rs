// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which instructions of a program can run, once relocations are constants: what the kernel's verifier finds dead, as far as
//! constants in registers tell. A value that went through the stack counts as unknown, so more may seem alive, never less.

use std::collections::{BTreeMap, BTreeSet};

/// Where an instruction is: section, and its number there.
pub(super) type Place = (usize, usize);
type Registers = [Option<u64>; 11];

pub(super) const INSTRUCTION_BYTES: usize = 8;
/// `include/uapi/linux/bpf.h`: opcodes and their parts.
pub(super) const LOAD_64_BITS: u8 = 0x18;
pub(super) const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;
const JUMP_FAR: u8 = 0x06;
const MOVE: u8 = 0xb0;
const FROM_REGISTER: u8 = 0x08;
const STACK: usize = 10;

/// What relocations make of instructions.
#[derive(Default)]
pub(super) struct Facts {
    /// The constant that a move or load has then.
    pub constants: BTreeMap<Place, u64>,
    /// Functions of ours that it calls, or hands on as callbacks.
    pub callees: BTreeMap<Place, Place>,
    /// Loads and calls of what is not a number.
    pub unknown: BTreeSet<Place>,
}

/// Every instruction that can run from `entry` on.
pub(super) fn reach(
    code: &dyn Fn(usize) -> &'static [u8],
    facts: &Facts,
    entry: Place,
) -> BTreeSet<Place> {
    let mut seen: BTreeMap<Place, Registers> = BTreeMap::new();
    let mut todo = vec![(entry, [None; 11])];
    while let Some((place, registers)) = todo.pop() {
        let joined = match seen.get(&place) {
            None => registers,
            Some(before) => {
                let joined =
                    std::array::from_fn(|at| before[at].filter(|_| before[at] == registers[at]));
                if joined == *before {
                    continue;
                }
                joined
            }
        };
        seen.insert(place, joined);
        step(code(place.0), facts, place, joined, &mut todo);
    }
    seen.into_keys().collect()
}

/// Where it goes from one instruction, and with which registers.
fn step(
    code: &[u8],
    facts: &Facts,
    place: Place,
    mut registers: Registers,
    todo: &mut Vec<(Place, Registers)>,
) {
    let at = place.1 * INSTRUCTION_BYTES;
    let Some(&[op, operands, offset_low, offset_high, i0, i1, i2, i3]) =
        code.get(at..at + INSTRUCTION_BYTES)
    else {
        return;
    };
    let (to, from) = ((operands & 15) as usize, (operands >> 4) as usize);
    let offset = i64::from(i16::from_le_bytes([offset_low, offset_high]));
    let immediate = i32::from_le_bytes([i0, i1, i2, i3]);
    let constant = facts.constants.get(&place).copied();
    let goes = |by: i64| (place.0, (place.1 as i64 + 1 + by).max(0) as usize);
    let mut next = goes(0);
    if let Some(callee) = facts.callees.get(&place) {
        todo.push((*callee, [None; 11]));
    }
    match op {
        EXIT => return,
        CALL => registers[..6].fill(None),
        LOAD_64_BITS => {
            next = goes(1);
            let high = code.get(at + 12..at + 16).map_or(0, |bytes| {
                u32::from_le_bytes(bytes.try_into().expect("four"))
            });
            let plain = (from == 0 && !facts.unknown.contains(&place))
                .then_some(u64::from(high) << 32 | u64::from(immediate as u32));
            set(&mut registers, to, constant.or(plain));
        }
        JUMP => next = goes(offset),
        JUMP_FAR => next = goes(i64::from(immediate)),
        _ => match op & 7 {
            4 | 7 => {
                let source = if op & FROM_REGISTER == 0 {
                    constant.or(Some(immediate as i64 as u64))
                } else {
                    register(&registers, from)
                };
                let value = calculated(op, register(&registers, to), source);
                set(&mut registers, to, value);
            }
            5 | 6 => {
                let source = if op & FROM_REGISTER == 0 {
                    Some(immediate as i64 as u64)
                } else {
                    register(&registers, from)
                };
                match taken(op, register(&registers, to), source) {
                    Some(false) => {}
                    Some(true) => next = goes(offset),
                    None => todo.push((goes(offset), registers)),
                }
            }
            0 | 1 => set(&mut registers, to, None),
            // Atomics may bring the old value back: to the source, or to R0.
            3 if op >> 5 == 6 => {
                set(&mut registers, from, None);
                registers[0] = None;
            }
            _ => {}
        },
    }
    todo.push((next, registers));
}

fn register(registers: &Registers, number: usize) -> Option<u64> {
    registers.get(number).copied().flatten()
}

fn set(registers: &mut Registers, number: usize, value: Option<u64>) {
    if number < STACK {
        registers[number] = value;
    }
}

fn calculated(op: u8, to: Option<u64>, source: Option<u64>) -> Option<u64> {
    let is_move = op & 0xf0 == MOVE;
    let to = if is_move { Some(0) } else { to };
    let (to, source) = (to?, source?);
    let value = match op & 0xf0 {
        0x00 => to.wrapping_add(source),
        0x10 => to.wrapping_sub(source),
        0x40 => to | source,
        0x50 => to & source,
        0xa0 => to ^ source,
        MOVE => source,
        _ => return None,
    };
    Some(if op & 7 == 4 {
        value & 0xffff_ffff
    } else {
        value
    })
}

/// Whether a conditional jump is made; `None`: either may be.
fn taken(op: u8, to: Option<u64>, source: Option<u64>) -> Option<bool> {
    let (mut to, mut source) = (to?, source?);
    if op & 7 == 6 {
        (to, source) = (to & 0xffff_ffff, source & 0xffff_ffff);
    }
    Some(match op & 0xf0 {
        0x10 => to == source,
        0x20 => to > source,
        0x30 => to >= source,
        0x40 => to & source != 0,
        0x50 => to != source,
        0xa0 => to < source,
        0xb0 => to <= source,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached(code: &'static [[u8; 8]], constants: &[(usize, u64)]) -> Vec<usize> {
        let facts = Facts {
            constants: constants
                .iter()
                .map(|(at, value)| ((0, *at), *value))
                .collect(),
            ..Facts::default()
        };
        let places = reach(&|_| code.as_flattened(), &facts, (0, 0));
        places.into_iter().map(|(_, at)| at).collect()
    }

    const ASKED: [[u8; 8]; 4] = [
        [0xb7, 1, 0, 0, 1, 0, 0, 0],    // r1 = 1, relocated: does the type exist?
        [0x15, 1, 1, 0, 0, 0, 0, 0],    // if r1 == 0 goto 3
        [0x79, 0x12, 8, 0, 0, 0, 0, 0], // r2 = *(u64 *)(r1 + 8)
        [0x95, 0, 0, 0, 0, 0, 0, 0],    // exit
    ];

    #[test]
    fn what_was_asked_for_in_vain_is_not_reached() {
        assert_eq!(reached(&ASKED, &[(0, 1)]), [0, 1, 2, 3]);
        assert_eq!(reached(&ASKED, &[(0, 0)]), [0, 1, 3]);
    }

    #[test]
    fn what_is_not_known_may_go_either_way() {
        static LOADED: [[u8; 8]; 4] = [
            [0x61, 0x11, 0, 0, 0, 0, 0, 0], // r1 = *(u32 *)(r1 + 0)
            ASKED[1],
            ASKED[2],
            ASKED[3],
        ];
        assert_eq!(reached(&LOADED, &[(0, 0)]), [0, 1, 2, 3]);
    }

    /// Two ways with two constants meet before the question; a loop ends.
    #[test]
    fn ways_that_meet_forget_what_they_do_not_share() {
        static MEETS: [[u8; 8]; 7] = [
            [0xb7, 1, 0, 0, 0, 0, 0, 0],       // r1 = 0
            [0x15, 3, 1, 0, 0, 0, 0, 0],       // if r3 == 0 goto 3
            [0xb7, 1, 0, 0, 1, 0, 0, 0],       // r1 = 1
            [0x15, 1, 1, 0, 0, 0, 0, 0],       // if r1 == 0 goto 5
            [0x07, 3, 0, 0, 1, 0, 0, 0],       // r3 += 1
            [0x55, 3, 0xfb, 0xff, 9, 0, 0, 0], // if r3 != 9 goto 1
            [0x95, 0, 0, 0, 0, 0, 0, 0],
        ];
        assert_eq!(reached(&MEETS, &[]), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn damaged_code_ends() {
        assert_eq!(reached(&ASKED[..3], &[]), [0, 1, 2, 3]);
        static ROUND: [[u8; 8]; 1] = [[0x05, 0, 0xff, 0xff, 0, 0, 0, 0]];
        assert_eq!(reached(&ROUND, &[]), [0]);
    }
}
