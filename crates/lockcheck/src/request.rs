// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of a scripted thread.

use crate::ffi;

/// `PLATFORM_FOREVER`: a wait without a bound.
pub const FOREVER: u32 = u32::MAX;

/// How somebody comes in: `enum script_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// trylock.
    Try,
    /// lock.
    Lock,
    /// read_lock: shares with its like.
    Read,
}

impl By {
    fn from_number(number: u32) -> By {
        match number {
            0 => By::Try,
            1 => By::Lock,
            _ => By::Read,
        }
    }
}

/// The next step of a thread. Words are numbered by their place in the lock's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Reads a word.
    Load(usize),
    /// Writes a word.
    Store(usize, u32),
    /// Writes a word and learns what was there.
    Exchange(usize, u32),
    /// Adds to a word and learns what was there.
    FetchAdd(usize, u32),
    /// Sets bits of a word and learns what was there.
    FetchOr(usize, u32),
    /// Keeps those bits of a word only and learns what was there.
    FetchAnd(usize, u32),
    /// Writes the third if the word holds the second.
    CompareExchange(usize, u32, u32),
    /// Waits while the word holds `value`, for so many spins more ([`FOREVER`]: no bound).
    Wait {
        /// The word.
        word: usize,
        /// The value that it waits to see gone.
        value: u32,
        /// Spins left.
        spins: u32,
    },
    /// Its stores first.
    Fence,
    /// Will sleep if the word holds the value.
    Park(usize, u32),
    /// Sleeps.
    Parked,
    /// Ends another's sleep.
    Kick(usize),
    /// Asks the host whether somebody is preempted, somebody else could run, or more tasks could.
    PvPage,
    /// Asks the host for help.
    Help,
    /// Has the lock and goes in: by `lock` or `read_lock` when true, else by `trylock`.
    Enter(bool),
    /// The same for readers.
    EnterToRead,
    /// Comes out; `unlock` follows.
    Leave,
    /// Comes out; `read_unlock` follows.
    LeaveFromRead,
    /// `trylock` said no.
    TryRefused,
    /// `is_locked` said this.
    IsLocked(bool),
    /// The next access is the lock's.
    Ask(By),
    /// Has seen inside what cannot be: what, and what it should have been.
    Wrong(u32, u32),
    /// The lock has touched a word that is not its own, or kicked who does not exist.
    Astray,
    /// The program has ended.
    Done,
}

impl Request {
    /// The word that it may change at once, as no plain store does.
    pub fn modifies(self) -> Option<usize> {
        match self {
            Request::Exchange(word, _)
            | Request::FetchAdd(word, _)
            | Request::FetchOr(word, _)
            | Request::FetchAnd(word, _)
            | Request::CompareExchange(word, ..) => Some(word),
            _ => None,
        }
    }
}

impl From<ffi::ScriptRequest> for Request {
    fn from(raw: ffi::ScriptRequest) -> Request {
        let word = raw.place as usize;
        match raw.kind {
            1 => Request::Load(word),
            2 => Request::Store(word, raw.first),
            3 => Request::Exchange(word, raw.first),
            4 => Request::FetchAdd(word, raw.first),
            5 => Request::CompareExchange(word, raw.first, raw.second),
            6 => Request::Wait {
                word,
                value: raw.first,
                spins: raw.second,
            },
            7 if raw.first == 2 => Request::EnterToRead,
            7 => Request::Enter(raw.first != 0),
            8 if raw.first == 2 => Request::LeaveFromRead,
            8 => Request::Leave,
            9 => Request::TryRefused,
            10 => Request::IsLocked(raw.first != 0),
            11 => Request::Done,
            12 => Request::FetchOr(word, raw.first),
            13 => Request::FetchAnd(word, raw.first),
            14 => Request::Fence,
            15 => Request::Park(word, raw.first),
            16 => Request::Parked,
            17 => Request::Kick(raw.first as usize),
            18 => Request::PvPage,
            19 => Request::Help,
            20 => Request::Ask(By::from_number(raw.first)),
            21 => Request::Wrong(raw.first, raw.second),
            22 => Request::Astray,
            other => unreachable!("request {other} of script.h is not known here"),
        }
    }
}
