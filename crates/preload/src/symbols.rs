// SPDX-License-Identifier: MIT OR Apache-2.0
//! The name of the function in which a call site is.

use std::{collections::HashMap, fs, path::PathBuf};

use object::{Object, ObjectSymbol, SymbolKind};

/// A function: its first address, its size in bytes (0: unknown), its name.
type Function = (u64, u64, String);

/// Functions of programs and libraries, read once each.
#[derive(Default)]
pub(crate) struct Symbols {
    of: HashMap<PathBuf, Vec<Function>>,
}

impl Symbols {
    /// `function+0x1c`, or `None` where the file or the symbol is missing. `offset` is where a call returns to, counted from
    /// where the file's addresses begin.
    pub fn name(&mut self, module: &str, offset: u64) -> Option<String> {
        let path = PathBuf::from(module);
        let functions = self
            .of
            .entry(path.clone())
            .or_insert_with(|| functions(&path).unwrap_or_default());
        // The call is before the place that it returns to, which may be another function's first.
        function_at(functions, offset.checked_sub(1)?)
            .map(|(start, name)| format!("{name}+{:#x}", offset - start))
    }
}

fn function_at(functions: &[Function], address: u64) -> Option<(u64, &str)> {
    let next = functions.partition_point(|&(start, ..)| start <= address);
    let (start, bytes, name) = functions.get(next.checked_sub(1)?)?;
    (*bytes == 0 || address < start + bytes).then_some((*start, name))
}

/// All functions of a file, by address; those that programs are linked by, where it was stripped.
fn functions(path: &PathBuf) -> Option<Vec<Function>> {
    let bytes = fs::read(path).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let mut functions: Vec<Function> = symbols
        .filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
        .filter_map(|symbol| {
            Some((
                symbol.address(),
                symbol.size(),
                symbol.name().ok()?.to_owned(),
            ))
        })
        .collect();
    functions.sort();
    functions.dedup_by_key(|function| function.0);
    Some(functions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_before_it() {
        let functions = [
            (0x10, 0x10, "first".to_owned()),
            (0x20, 0, "unsized".to_owned()),
        ];
        let name = |address| function_at(&functions, address).map(|(_, name)| name);
        assert_eq!(name(0x0f), None);
        assert_eq!(name(0x10), Some("first"));
        assert_eq!(name(0x1f), Some("first"));
        assert_eq!(name(0x9f), Some("unsized"));
        assert_eq!(function_at(&functions[..1], 0x20), None);
    }

    #[test]
    fn a_library_has_names_and_a_missing_file_has_none() {
        let mut symbols = Symbols::default();
        assert_eq!(symbols.name("/no/such/file", 0x1000), None);
        let own = std::env::current_exe().expect("a path");
        let functions = functions(&own).expect("this test has symbols");
        let (start, ..) = functions
            .iter()
            .find(|(_, bytes, _)| *bytes > 8)
            .expect("one");
        let named = symbols.name(&own.display().to_string(), start + 4);
        assert!(named.is_some_and(|name| name.ends_with("+0x4")));
        assert_eq!(symbols.name(&own.display().to_string(), 0), None);
    }
}
