// SPDX-License-Identifier: MIT OR Apache-2.0
//! The spin loops of one VM: where they are, and how long a pause-loop window takes there.

use std::{collections::BTreeMap, sync::Arc};

use unspin_events::{Event, What};
use unspin_policy::Symbol;

use crate::Symbols;

/// Samples kept of each loop's window.
const SAMPLES_MAX: usize = 4096;
/// Of a loop's times in the guest at least one in so many is as long as the shortest, or at most twice as long. Waits that a
/// window fits into give that; sums of many short waits are spread over more than a power of ten.
const ALIKE_ONE_IN: usize = 3;
/// The PAUSE of a loop is within so many bytes of the loop's other instructions: a loop lies before its backward jump, which
/// comes right after the PAUSE or a few tests later. Two cache lines are a long spin loop.
const BEFORE_BYTES: u64 = 128;
const AFTER_BYTES: u64 = 64;

/// How long a vCPU that does nothing but spin is in the guest before it exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowTime {
    /// The shortest seen, but for one in ten; nothing can be faster than spinning without a pause.
    pub shortest_ns: u64,
    /// The median of those that take at most twice as long.
    pub typical_ns: u64,
}

impl WindowTime {
    /// Longer than that, and it did something else in between. Twice the shortest: a sibling hyperthread that works (or, in
    /// the testbed's virtual time, a second emulated CPU) halves a vCPU's speed.
    pub fn longest_ns(self) -> u64 {
        2 * self.shortest_ns
    }

    /// What is left of a wait, in expectation, after its last exit: it ended at some moment within one more window.
    pub fn rest_ns(self) -> u64 {
        self.typical_ns / 2
    }
}

/// What is waited for at a spin loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A lock.
    Lock,
    /// Answers to an IPI.
    Call,
    /// Not decided.
    Unknown,
}

impl Kind {
    /// The word for it; a wait for answers is a function call (ruling 34).
    pub fn name(self) -> &'static str {
        match self {
            Kind::Lock => "lock",
            Kind::Call => "function_call",
            Kind::Unknown => "unknown",
        }
    }
}

/// Symbols of guests, where the user has given any.
#[derive(Clone, Debug, Default)]
pub struct Naming(Option<Arc<Symbols>>);

impl Naming {
    /// With symbols.
    pub fn new(symbols: Symbols) -> Naming {
        Naming(Some(Arc::new(symbols)))
    }

    /// Begin and name of the function at `rip`.
    pub fn of(&self, rip: u64) -> Option<(u64, &str)> {
        let (name, offset) = self.0.as_ref()?.function_at(rip)?;
        Some((rip - offset, name))
    }

    /// What the function at `rip` waits for.
    fn kind(&self, rip: u64) -> Option<Kind> {
        match self.0.as_ref()?.purpose_at(rip)? {
            Symbol::Spinlock => Some(Kind::Lock),
            Symbol::FunctionCall => Some(Kind::Call),
            Symbol::Delay => Some(Kind::Unknown),
            Symbol::Other => None,
        }
    }
}

/// The spin loops of one VM.
#[derive(Clone, Debug, Default)]
pub struct Locations {
    naming: Naming,
    samples: BTreeMap<Option<u64>, Vec<u32>>,
    windows: BTreeMap<Option<u64>, WindowTime>,
}

impl Locations {
    /// None yet.
    pub fn new(naming: Naming) -> Locations {
        Locations {
            naming,
            ..Locations::default()
        }
    }

    /// Learns from a pause-loop exit of the VM.
    pub fn learn(&mut self, event: &Event) {
        let What::PauseExit {
            guest_rip,
            inside_ns,
            other_exits,
            interrupt_exits,
            ..
        } = event.what
        else {
            return;
        };
        let samples = self
            .samples
            .entry(guest_rip.map(|rip| self.canonical(rip)))
            .or_default();
        if other_exits == 0 && interrupt_exits == 0 && samples.len() < SAMPLES_MAX {
            samples.push(inside_ns);
        }
    }

    /// Computes the windows from all that was learnt. Where times in the guest are spread too widely to be windows of plain
    /// spinning (the PAUSEs of many short waits can add up to one), the window is not known, and is 0.
    pub fn settle(&mut self) {
        for (location, samples) in &mut self.samples {
            samples.sort_unstable();
            let Some(&shortest) = samples.get(samples.len() / 10) else {
                continue;
            };
            let longest = shortest.saturating_mul(2);
            let straight = samples.partition_point(|&inside| inside <= longest);
            let known = straight * ALIKE_ONE_IN >= samples.len();
            let window = WindowTime {
                shortest_ns: if known { shortest.into() } else { 0 },
                typical_ns: if known {
                    samples[straight / 2].into()
                } else {
                    0
                },
            };
            self.windows.insert(*location, window);
        }
    }

    /// The window at that location; of a location without samples, the shortest of all.
    pub fn window(&self, location: Option<u64>) -> WindowTime {
        let known = self.windows.get(&location).copied();
        let any = || {
            self.windows
                .values()
                .filter(|window| window.shortest_ns > 0)
                .min_by_key(|window| window.shortest_ns)
                .copied()
        };
        known.or_else(any).unwrap_or(WindowTime {
            shortest_ns: 0,
            typical_ns: 0,
        })
    }

    /// The location that a pause-loop exit at `rip` belongs to: the function where symbols tell, else the PAUSE itself.
    pub fn canonical(&self, rip: u64) -> u64 {
        self.naming.of(rip).map_or(rip, |(begin, _)| begin)
    }

    /// What is waited for there, by the function's name.
    pub fn kind_by_name(&self, location: Option<u64>) -> Option<Kind> {
        self.naming.kind(location?)
    }

    /// The spin loop that an instruction belongs to; `None`: none that is known.
    pub fn near(&self, rip: u64) -> Option<u64> {
        if let Some((begin, _)) = self.naming.of(rip) {
            return self.samples.contains_key(&Some(begin)).then_some(begin);
        }
        let from = rip.saturating_sub(AFTER_BYTES);
        let to = rip.saturating_add(BEFORE_BYTES);
        let known = self.samples.range(Some(from)..=Some(to));
        known
            .filter_map(|(location, _)| *location)
            .min_by_key(|location| location.abs_diff(rip))
    }
}
