// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the guest waited for at a pause-loop exit: `policy/classify/ple_reason.h`, `policy/classify/ple_functions.h`.

use std::ffi::CString;

use crate::{
    classify::outcome::{Where, mode_number},
    raw,
};

/// What the guest waited for at a pause-loop exit (VEE'21, section 3.1; rulings 33 and 34).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// For a lock, or for another vCPU's progress in general.
    Spinlock,
    /// For answers to an IPI: a TLB shootdown, or another function call.
    FunctionCall,
    /// For nothing: an intentional delay.
    Delay,
    /// For something else.
    Other,
    /// The evidence does not decide.
    Unknown,
}

impl Reason {
    /// All reasons, in the order of tables.
    pub const ALL: [Reason; raw::UNSPIN_REASONS as usize] = [
        Reason::Spinlock,
        Reason::FunctionCall,
        Reason::Delay,
        Reason::Other,
        Reason::Unknown,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Spinlock => "spinlock",
            Reason::FunctionCall => "function_call",
            Reason::Delay => "delay",
            Reason::Other => "other",
            Reason::Unknown => "unknown",
        }
    }
}

/// The location of the exit by the guest's symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Symbol {
    /// A function of a spinlock.
    Spinlock,
    /// A function that waits for answers.
    FunctionCall,
    /// A function that delays.
    Delay,
    /// Another function.
    Other,
}

/// What is known from the spinner's own last IPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IpiEvidence {
    /// IPIs cannot be seen, or some were lost.
    NotKnown,
    /// It has sent none since it last halted, was in user mode, or waited at another location.
    None,
    /// It has sent one, and all receivers have run since or ran when it was sent.
    Answered,
    /// It has sent one, and a receiver has not run since.
    Open,
}

/// What the vector of that IPI requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vector {
    /// The guest's numbering of vectors is not known.
    NotKnown,
    /// A function call, whose sender waits.
    FunctionCall,
    /// A reschedule, whose sender does not wait.
    Reschedule,
    /// Anything else.
    Other,
}

/// The facts about one exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReasonFacts {
    /// The kind of function; `None`: there are no symbols, or none for this location.
    pub symbol: Option<Symbol>,
    /// The spinner's mode.
    pub mode: Option<Where>,
    /// The state of its last IPI.
    pub ipi: IpiEvidence,
    /// The vector of its last IPI.
    pub vector: Vector,
    /// Exits at this location that [`may_wait_for_answers`] to an IPI of which a receiver has not run since.
    pub location_open: u64,
    /// Exits at this location after an IPI whose receivers all have run.
    pub location_answered: u64,
    /// All exits at this location whose `ipi` is known; 0: the location is not known.
    pub location_exits: u64,
}

impl ReasonFacts {
    /// The reason.
    pub fn reason(&self) -> Reason {
        let facts = raw::unspin_ple_reason_facts {
            symbol: symbol_number(self.symbol),
            mode: mode_number(self.mode),
            ipi: ipi_number(self.ipi),
            vector: vector_number(self.vector),
            location_open: self.location_open,
            location_answered: self.location_answered,
            location_exits: self.location_exits,
        };
        // SAFETY: reads a valid struct for the length of the call.
        match unsafe { raw::unspin_ple_reason(&facts) } {
            raw::UNSPIN_REASON_SPINLOCK => Reason::Spinlock,
            raw::UNSPIN_REASON_FUNCTION_CALL => Reason::FunctionCall,
            raw::UNSPIN_REASON_DELAY => Reason::Delay,
            raw::UNSPIN_REASON_OTHER => Reason::Other,
            _ => Reason::Unknown,
        }
    }
}

/// What a Linux guest waits for in the function of this name (VEE'21's Table 3, and the names of today's kernels).
pub fn symbol_of(function: &str) -> Symbol {
    // No function's name contains a zero byte.
    let Ok(name) = CString::new(function) else {
        return Symbol::Other;
    };
    // SAFETY: reads a C string up to its end.
    match unsafe { raw::unspin_ple_symbol_of(name.as_ptr()) } {
        raw::UNSPIN_SYMBOL_SPINLOCK => Symbol::Spinlock,
        raw::UNSPIN_SYMBOL_FUNCTION_CALL => Symbol::FunctionCall,
        raw::UNSPIN_SYMBOL_DELAY => Symbol::Delay,
        _ => Symbol::Other,
    }
}

/// What an interrupt vector of a Linux guest requests.
pub fn linux_vector(vector: u8) -> Vector {
    // SAFETY: a function of numbers alone.
    match unsafe { raw::unspin_linux_vector(vector.into()) } {
        raw::UNSPIN_VECTOR_FUNCTION_CALL => Vector::FunctionCall,
        raw::UNSPIN_VECTOR_RESCHEDULE => Vector::Reschedule,
        _ => Vector::Other,
    }
}

fn symbol_number(symbol: Option<Symbol>) -> u32 {
    match symbol {
        None => raw::UNSPIN_SYMBOL_NONE,
        Some(Symbol::Spinlock) => raw::UNSPIN_SYMBOL_SPINLOCK,
        Some(Symbol::FunctionCall) => raw::UNSPIN_SYMBOL_FUNCTION_CALL,
        Some(Symbol::Delay) => raw::UNSPIN_SYMBOL_DELAY,
        Some(Symbol::Other) => raw::UNSPIN_SYMBOL_OTHER,
    }
}

/// Whether a vCPU may be waiting for answers to its last IPI.
pub fn may_wait_for_answers(ipi: IpiEvidence, vector: Vector) -> bool {
    // SAFETY: a function of numbers alone.
    unsafe { raw::unspin_may_wait_for_answers(ipi_number(ipi), vector_number(vector)) }
}

fn ipi_number(ipi: IpiEvidence) -> u32 {
    match ipi {
        IpiEvidence::NotKnown => raw::UNSPIN_IPI_NOT_KNOWN,
        IpiEvidence::None => raw::UNSPIN_IPI_NONE,
        IpiEvidence::Answered => raw::UNSPIN_IPI_ANSWERED,
        IpiEvidence::Open => raw::UNSPIN_IPI_OPEN,
    }
}

pub(crate) fn vector_number(vector: Vector) -> u32 {
    match vector {
        Vector::NotKnown => raw::UNSPIN_VECTOR_NOT_KNOWN,
        Vector::FunctionCall => raw::UNSPIN_VECTOR_FUNCTION_CALL,
        Vector::Reschedule => raw::UNSPIN_VECTOR_RESCHEDULE,
        Vector::Other => raw::UNSPIN_VECTOR_OTHER,
    }
}
