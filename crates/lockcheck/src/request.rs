// SPDX-License-Identifier: MIT OR Apache-2.0
//! The requests of a scripted thread.

use crate::ffi;

/// `PLATFORM_FOREVER`: a wait without a bound.
pub const FOREVER: u32 = u32::MAX;

/// How a thread enters: `enum script_entry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// trylock.
    Try,
    /// lock.
    Lock,
    /// read_lock: shares with other readers.
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

/// The next step of a thread. Words are numbered by their position in the lock's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Reads a word.
    Load(usize),
    /// Writes a word.
    Store(usize, u32),
    /// Exchange: writes a word and returns its previous value.
    Exchange(usize, u32),
    /// Adds to a word and returns its previous value.
    FetchAdd(usize, u32),
    /// Sets bits of a word and returns its previous value.
    FetchOr(usize, u32),
    /// Clears all other bits of a word and returns its previous value.
    FetchAnd(usize, u32),
    /// Writes the third if the word holds the second.
    CompareExchange(usize, u32, u32),
    /// Writes the third to this word and the next one if they hold the second.
    CompareExchangeTwo(usize, [u32; 2], [u32; 2]),
    /// Waits while the word holds `value`, for at most `spins` more spins ([`FOREVER`]: no bound).
    Wait {
        /// The word.
        word: usize,
        /// The value that ends the wait when it changes.
        value: u32,
        /// Spins left.
        spins: u32,
    },
    /// A full barrier.
    Fence,
    /// Will sleep if the word holds the value.
    Park(usize, u32),
    /// Sleeps.
    Parked,
    /// Ends another thread's sleep.
    Kick(usize),
    /// Ends the sleep of a thread that sleeps at this word.
    Unblock(usize),
    /// Asks the host whether a waiter is preempted, another task could run on this pCPU, or more tasks on this vCPU.
    PvPage,
    /// Asks the host for help.
    Help,
    /// Has the lock and enters: by `lock` or `read_lock` if true, else by `trylock`.
    Enter(bool),
    /// The same for readers.
    EnterToRead,
    /// Leaves; `unlock` follows.
    Leave,
    /// Leaves; `read_unlock` follows.
    LeaveFromRead,
    /// `trylock` failed.
    TryRefused,
    /// `is_locked` returned this.
    IsLocked(bool),
    /// The next access is the lock's.
    Ask(By),
    /// Has read a wrong value inside: the value, and the right one.
    Wrong(u32, u32),
    /// The lock has accessed a word that is not its own, or kicked a waiter that does not exist.
    Astray,
    /// The program has ended.
    Done,
}

impl Request {
    /// The word that this request accesses.
    pub fn word(self) -> Option<usize> {
        match self {
            Request::Load(word)
            | Request::Store(word, _)
            | Request::Wait { word, .. }
            | Request::Park(word, _) => Some(word),
            _ => self.modifies(),
        }
    }

    /// The word that this request may change by a read-modify-write.
    pub fn modifies(self) -> Option<usize> {
        match self {
            Request::Exchange(word, _)
            | Request::FetchAdd(word, _)
            | Request::FetchOr(word, _)
            | Request::FetchAnd(word, _)
            | Request::CompareExchange(word, ..)
            | Request::CompareExchangeTwo(word, ..) => Some(word),
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
            23 => Request::Unblock(word),
            24 => Request::CompareExchangeTwo(word, raw.expected, raw.desired),
            other => unreachable!("request {other} of script.h is not known here"),
        }
    }
}
