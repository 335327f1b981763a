// SPDX-License-Identifier: MIT OR Apache-2.0
//! BPF objects and kernels as ELF files of 64 bits, little-endian, which the crate `object` reads.

use object::{
    LittleEndian, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionIndex, SymbolKind,
    read::elf::{ElfFile64, ElfSymbol64},
};

/// A file.
pub(super) type Elf<'a> = ElfFile64<'a, LittleEndian>;
/// A symbol of it.
pub(super) type Symbol<'a, 'file> = ElfSymbol64<'a, 'file, LittleEndian>;

/// Reads a file whose sections all lie in it, with names for each of them and of the symbols; `None`: it is none. A kernel's
/// files are others': damage is found here, not where a section is used.
pub(super) fn read(file: &[u8]) -> Option<Elf<'_>> {
    let elf = Elf::parse(file).ok()?;
    elf.sections().next()?;
    for section in elf.sections() {
        section.name().ok()?;
        section.data().ok()?;
    }
    for symbol in elf.symbols() {
        symbol.name().ok()?;
    }
    Some(elf)
}

/// The bytes of the section of that name.
pub(super) fn section<'a>(elf: &Elf<'a>, name: &str) -> Option<&'a [u8]> {
    elf.section_by_name(name)?.data().ok()
}

/// The bytes of the section of that number; empty: there is none.
pub(super) fn bytes<'a>(elf: &Elf<'a>, section: usize) -> &'a [u8] {
    let found = elf.section_by_index(SectionIndex(section));
    found.and_then(|section| section.data()).unwrap_or_default()
}

/// Whether it is a function of the file.
pub(super) fn is_function(symbol: &Symbol) -> bool {
    symbol.kind() == SymbolKind::Text
}

/// The number of the section that a symbol is in; `None`: in none, as the kernel's are.
pub(super) fn section_of(symbol: &Symbol) -> Option<usize> {
    symbol.section_index().map(|section| section.0)
}

/// Offset and symbol of each relocation for that section.
pub(super) fn relocations<'a, 'file>(
    elf: &'file Elf<'a>,
    section: usize,
) -> Vec<(usize, Symbol<'a, 'file>)> {
    let Ok(section) = elf.section_by_index(SectionIndex(section)) else {
        return Vec::new();
    };
    let each = section.relocations().filter_map(|(at, relocation)| {
        let RelocationTarget::Symbol(symbol) = relocation.target() else {
            return None;
        };
        let symbol = elf.symbol_by_index(symbol).ok()?;
        Some((usize::try_from(at).ok()?, symbol))
    });
    each.collect()
}

/// A little-endian number of 2, 4 or 8 bytes.
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
