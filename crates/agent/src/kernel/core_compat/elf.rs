// SPDX-License-Identifier: MIT OR Apache-2.0
//! As much of ELF (64 bits, little-endian) as BPF objects and kernels need. Every offset of a file is checked: a kernel's
//! files are others'.

/// Sizes and offsets of `Elf64_Ehdr`, `Elf64_Shdr`, `Elf64_Sym` and `Elf64_Rel` (elf(5)).
const SECTION_TABLE_AT: usize = 0x28;
const SECTION_COUNT_AT: usize = 0x3c;
const NAMES_INDEX_AT: usize = 0x3e;
const SECTION_BYTES: usize = 64;
const SYMBOL_BYTES: usize = 24;
const RELOCATION_BYTES: usize = 16;
const SYMBOLS: u32 = 2; // SHT_SYMTAB
const NO_BITS: u32 = 8; // SHT_NOBITS
const RELOCATIONS: u32 = 9; // SHT_REL

/// A section.
#[derive(Clone, Copy)]
pub(super) struct Section<'a> {
    pub name: &'a str,
    kind: u32,
    /// Of relocations: the section that they are for.
    info: u32,
    pub data: &'a [u8],
}

/// A symbol.
#[derive(Clone, Copy)]
pub(super) struct Symbol<'a> {
    pub name: &'a str,
    pub is_function: bool,
    pub is_global: bool,
    pub is_weak: bool,
    /// Index of its section; 0: none, it is the kernel's.
    pub section: usize,
    pub value: usize,
}

/// A file.
pub(super) struct Elf<'a> {
    pub sections: Vec<Section<'a>>,
    pub symbols: Vec<Symbol<'a>>,
}

/// A number of 2, 4 or 8 bytes.
pub(super) fn number(data: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(data.get(at..at.checked_add(bytes)?)?);
    usize::try_from(u64::from_le_bytes(value)).ok()
}

/// The C string at an offset.
pub(super) fn text(data: &[u8], at: usize) -> Option<&str> {
    let rest = data.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

impl<'a> Elf<'a> {
    /// `None`: it is none.
    pub fn read(file: &'a [u8]) -> Option<Elf<'a>> {
        if file.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let table = number(file, SECTION_TABLE_AT, 8)?;
        let count = number(file, SECTION_COUNT_AT, 2)?;
        let rows = file.get(table..table.checked_add(count * SECTION_BYTES)?)?;
        let rows: Vec<&[u8]> = rows.chunks_exact(SECTION_BYTES).collect();
        let data = |row: &[u8]| -> Option<&'a [u8]> {
            if number(row, 4, 4)? == NO_BITS as usize {
                return Some(&[]);
            }
            let (at, bytes) = (number(row, 0x18, 8)?, number(row, 0x20, 8)?);
            file.get(at..at.checked_add(bytes)?)
        };
        let names = data(rows.get(number(file, NAMES_INDEX_AT, 2)?)?)?;
        let section = |row: &&[u8]| -> Option<Section<'a>> {
            Some(Section {
                name: text(names, number(row, 0, 4)?)?,
                kind: number(row, 4, 4)? as u32,
                info: number(row, 0x2c, 4)? as u32,
                data: data(row)?,
            })
        };
        let sections: Vec<Section> = rows.iter().map(section).collect::<Option<_>>()?;
        let symbols = match sections.iter().position(|section| section.kind == SYMBOLS) {
            Some(at) => {
                let names = sections.get(number(rows[at], 0x28, 4)?)?.data;
                symbols(sections[at].data, names)?
            }
            None => Vec::new(),
        };
        Some(Elf { sections, symbols })
    }

    /// The bytes of the section of that name.
    pub fn section(&self, name: &str) -> Option<&'a [u8]> {
        let found = self.sections.iter().find(|section| section.name == name);
        found.map(|section| section.data)
    }

    /// Offset and symbol of each relocation for that section.
    pub fn relocations(&self, section: usize) -> Vec<(usize, Symbol<'a>)> {
        let tables = self.sections.iter();
        let tables =
            tables.filter(|table| table.kind == RELOCATIONS && table.info as usize == section);
        let rows = tables.flat_map(|table| table.data.chunks_exact(RELOCATION_BYTES));
        let each = rows.filter_map(|row| {
            let symbol = self.symbols.get(number(row, 12, 4)?)?;
            Some((number(row, 0, 8)?, *symbol))
        });
        each.collect()
    }
}

fn symbols<'a>(table: &'a [u8], names: &'a [u8]) -> Option<Vec<Symbol<'a>>> {
    let symbol = |row: &'a [u8]| {
        let (info, section) = (number(row, 4, 2)?, number(row, 6, 2)?);
        Some(Symbol {
            name: text(names, number(row, 0, 4)?)?,
            is_function: info & 15 == 2,
            is_global: info >> 4 & 15 != 0,
            is_weak: info >> 4 & 15 == 2,
            section,
            value: number(row, 8, 8)?,
        })
    };
    table.chunks_exact(SYMBOL_BYTES).map(symbol).collect()
}
