// SPDX-License-Identifier: MIT OR Apache-2.0
//! A guest kernel's symbols: `System.map` or `/proc/kallsyms`.

use std::ops::Range;

use unspin_policy::{Symbol, symbol_of};

/// Bytes after the last symbol that still belong to it.
const LAST_BYTES: u64 = 1 << 16;

/// Functions by address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// In order of addresses, none twice.
    functions: Vec<(u64, String)>,
}

/// Why a text is no symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SymbolsError {
    /// A line that is no "ADDRESS TYPE NAME", by its number from 1.
    Line(usize),
    /// All addresses are zero: `/proc/kallsyms` as seen without privileges.
    Hidden,
    /// No function in it.
    Empty,
}

impl std::fmt::Display for SymbolsError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SymbolsError::Line(number) => {
                write!(out, "line {number} is not \"ADDRESS TYPE NAME\"")
            }
            SymbolsError::Hidden => write!(
                out,
                "all addresses are 0: read /proc/kallsyms as root in the guest"
            ),
            SymbolsError::Empty => write!(out, "there is no function in it"),
        }
    }
}

impl std::error::Error for SymbolsError {}

impl Symbols {
    /// Reads a table: lines of "ADDRESS TYPE NAME", as `nm` prints them; data symbols are left out.
    ///
    /// # Errors
    /// When a line is something else, or there is no address.
    pub fn parse(text: &str) -> Result<Symbols, SymbolsError> {
        let mut functions = Vec::new();
        let mut hidden = false;
        for (index, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                return Err(SymbolsError::Line(index + 1));
            };
            let address =
                u64::from_str_radix(address, 16).map_err(|_| SymbolsError::Line(index + 1))?;
            if matches!(kind, "t" | "T" | "w" | "W") {
                match address {
                    0 => hidden = true,
                    _ => functions.push((address, name.to_owned())),
                }
            }
        }
        // The first of several names of one address stays: the sort is stable.
        functions.sort_by_key(|&(address, _)| address);
        functions.dedup_by_key(|(address, _)| *address);
        match (functions.is_empty(), hidden) {
            (false, _) => Ok(Symbols { functions }),
            (true, true) => Err(SymbolsError::Hidden),
            (true, false) => Err(SymbolsError::Empty),
        }
    }

    /// The function at that address and the offset into it; `None`: before the first or far behind the last.
    pub fn function_at(&self, address: u64) -> Option<(&str, u64)> {
        let after = self
            .functions
            .partition_point(|&(begin, _)| begin <= address);
        let (begin, name) = self.functions.get(after.checked_sub(1)?)?;
        let offset = address - begin;
        let last = after == self.functions.len();
        (!last || offset < LAST_BYTES).then_some((name, offset))
    }

    /// The functions that `wanted` says yes to, in order of addresses; neighbours are one piece.
    pub fn pieces(&self, wanted: impl Fn(&str) -> bool) -> Vec<Range<u64>> {
        let mut pieces: Vec<Range<u64>> = Vec::new();
        for (index, (first, name)) in self.functions.iter().enumerate() {
            if !wanted(name) {
                continue;
            }
            let next = self.functions.get(index + 1);
            let end = next.map_or(first.saturating_add(LAST_BYTES), |(next, _)| *next);
            match pieces.last_mut() {
                Some(last) if last.end == *first => last.end = end,
                _ => pieces.push(*first..end),
            }
        }
        pieces
    }

    /// What the function at that address waits for.
    pub fn purpose_at(&self, address: u64) -> Option<Symbol> {
        self.function_at(address).map(|(name, _)| symbol_of(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
ffffffff81000000 T _text
ffffffff81000100 t native_queued_spin_lock_slowpath
ffffffff81000100 t alias
ffffffff81000200 T smp_call_function_many_cond.isra.0\t[module]
ffffffff81000280 D jiffies
ffffffff81000300 T delay_tsc
";

    #[test]
    fn addresses_have_functions() {
        let symbols = Symbols::parse(MAP).expect("a table");
        let at = |offset: u64| symbols.function_at(0xffff_ffff_8100_0000 + offset);
        assert_eq!(at(0x1ff), Some(("native_queued_spin_lock_slowpath", 0xff)));
        assert_eq!(at(0x2ff).map(|(_, offset)| offset), Some(0xff));
        assert_eq!(at(0x300), Some(("delay_tsc", 0)));
        assert_eq!(at(0x300 + LAST_BYTES), None);
        assert_eq!(symbols.function_at(0x40_0000), None);
        let purpose = |offset: u64| symbols.purpose_at(0xffff_ffff_8100_0000 + offset);
        assert_eq!(purpose(0x120), Some(Symbol::Spinlock));
        assert_eq!(purpose(0x220), Some(Symbol::FunctionCall));
        assert_eq!(purpose(0x10), Some(Symbol::Other));
    }

    #[test]
    fn neighbours_are_one_piece() {
        let symbols = Symbols::parse(MAP).expect("a table");
        let at = |offset: u64| 0xffff_ffff_8100_0000 + offset;
        let pieces = symbols.pieces(|name| name.contains("spin") || name.starts_with("smp"));
        assert_eq!(pieces.len(), 1);
        assert_eq!(pieces[0], at(0x100)..at(0x300));
        let apart = symbols.pieces(|name| name.contains("spin") || name == "delay_tsc");
        assert_eq!(
            apart,
            [at(0x100)..at(0x200), at(0x300)..at(0x300) + LAST_BYTES]
        );
        assert_eq!(symbols.pieces(|_| false), []);
    }

    #[test]
    fn what_is_no_table_is_refused() {
        assert_eq!(
            Symbols::parse("0000000000000000 T _text\n"),
            Err(SymbolsError::Hidden)
        );
        assert_eq!(Symbols::parse(""), Err(SymbolsError::Empty));
        assert_eq!(
            Symbols::parse("12 T a\nhello\n"),
            Err(SymbolsError::Line(2))
        );
        assert_eq!(Symbols::parse("xyz T a\n"), Err(SymbolsError::Line(1)));
    }
}
