// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each program of an object needs of a kernel.

use std::collections::{BTreeMap, BTreeSet};

use libbpf_rs::libbpf_sys::bpf_core_relo;
use object::{Object, ObjectSection, ObjectSymbol};

use super::{
    ProgramFit,
    btf::{Resolved, Types},
    elf::{self, Elf, Symbol, number, text},
    reach::{CALL, Facts, INSTRUCTION_BYTES, LOAD_64_BITS, Place, reach},
};
use crate::kernel::btf::{KernelBtf, Kind};

/// `struct btf_ext_header` (libbpf, btf.h): where the offsets of CO-RE relocations stand, and the size of one.
const CORE_AT: usize = 24;
const CORE_BYTES: usize = 16;
/// `src_reg` of a call of a function of ours (`include/uapi/linux/bpf.h`, BPF_PSEUDO_CALL).
const CALLS_OURS: u8 = 1;

/// An object against a kernel: what its instructions come to.
#[derive(Default)]
struct Needs {
    facts: Facts,
    relocations: BTreeSet<Place>,
    /// Functions of the kernel called there.
    functions: BTreeMap<Place, String>,
    /// What does not resolve there.
    missing: BTreeMap<Place, String>,
}

/// Every program of the object.
pub(super) fn programs(object: &'static str, elf: &Elf<'static>, types: &Types) -> Vec<ProgramFit> {
    let local = elf::section(elf, ".BTF").and_then(|bytes| KernelBtf::from_bytes(bytes, None));
    let local = local.expect("clang writes BTF");
    let mut needs = Needs::default();
    core_relocations(elf, &local, types, &mut needs).expect("clang writes .BTF.ext");
    references(elf, &local, types, &mut needs);
    let fits = elf.symbols().filter_map(|symbol| {
        if !elf::is_function(&symbol) || !symbol.is_global() {
            return None;
        }
        let section = elf.section_by_index(symbol.section_index()?).ok()?;
        let name = section.name().ok()?;
        if name.is_empty() || name == ".text" {
            return None;
        }
        let reached = reach(
            &|section| elf::bytes(elf, section),
            &needs.facts,
            (section.index().0, instruction_of(&symbol)),
        );
        Some(fit(
            object,
            name,
            symbol.name().ok()?,
            &needs,
            &reached,
            types,
        ))
    });
    fits.collect()
}

/// The number of a function's first instruction in its section.
fn instruction_of(function: &Symbol) -> usize {
    function.address() as usize / INSTRUCTION_BYTES
}

fn fit(
    object: &'static str,
    section: &str,
    function: &str,
    needs: &Needs,
    reached: &BTreeSet<Place>,
    types: &Types,
) -> ProgramFit {
    let mut missing: Vec<String> = hook_missing(section, types).into_iter().collect();
    let of_section = |place: &&Place| reached.contains(*place);
    let said = needs.missing.iter().filter(|(place, _)| of_section(place));
    missing.extend(said.map(|(_, what)| what.clone()));
    let mut guarded: Vec<String> = Vec::new();
    let sections: BTreeSet<usize> = reached.iter().map(|(section, _)| *section).collect();
    let dead = needs
        .missing
        .iter()
        .filter(|(place, _)| !reached.contains(place) && sections.contains(&place.0));
    guarded.extend(dead.map(|(_, what)| what.clone()));
    for list in [&mut missing, &mut guarded] {
        list.sort();
        list.dedup();
    }
    let functions = needs
        .functions
        .iter()
        .filter(|(place, _)| reached.contains(place));
    let functions: BTreeSet<&String> = functions.map(|(_, name)| name).collect();
    ProgramFit {
        object,
        program: format!("{section} {function}"),
        relocations: needs.relocations.iter().filter(of_section).count(),
        functions: functions.len(),
        guarded,
        missing,
    }
}

/// What a program attaches to, if this kernel has not got it.
fn hook_missing(section: &str, types: &Types) -> Option<String> {
    let (kind, place) = section.split_once('/')?;
    match kind.trim_end_matches(".s") {
        "tp_btf" => (!types.has(&format!("btf_trace_{place}"), Kind::Typedef))
            .then(|| format!("tracepoint {place}")),
        "fentry" | "fexit" | "kprobe.multi" | "kretprobe.multi" => {
            (!types.has(place, Kind::Function)).then(|| format!("function {place} to attach to"))
        }
        "struct_ops" => match types.members("sched_ext_ops") {
            None => Some("struct sched_ext_ops: no sched_ext".to_owned()),
            Some(members) => {
                (!members.contains(&place)).then(|| format!("struct sched_ext_ops.{place}"))
            }
        },
        _ => None,
    }
}

/// CO-RE relocations: `.BTF.ext`, as libbpf's btf.c reads it.
fn core_relocations(elf: &Elf, local: &KernelBtf, types: &Types, needs: &mut Needs) -> Option<()> {
    let ext = elf::section(elf, ".BTF.ext")?;
    let strings = strings_of(elf::section(elf, ".BTF")?)?;
    let header = number(ext, 4, 4)?;
    let (at, bytes) = (
        header + number(ext, CORE_AT, 4)?,
        number(ext, CORE_AT + 4, 4)?,
    );
    let table = ext.get(at..at.checked_add(bytes)?)?;
    if table.is_empty() {
        return Some(());
    }
    let mut at = 4;
    while at < table.len() {
        let (name, count) = (
            text(strings, number(table, at, 4)?)?,
            number(table, at + 4, 4)?,
        );
        let section = elf.section_by_name(name)?.index().0;
        at += 8;
        for _ in 0..count {
            let relocation = bpf_core_relo {
                insn_off: number(table, at, 4)? as u32,
                type_id: number(table, at + 4, 4)? as u32,
                access_str_off: number(table, at + 8, 4)? as u32,
                kind: number(table, at + 12, 4)? as _,
            };
            let place = (section, relocation.insn_off as usize / INSTRUCTION_BYTES);
            needs.relocations.insert(place);
            match types.resolve(local, &relocation) {
                Resolved::To(value) => {
                    needs.facts.constants.insert(place, value);
                }
                Resolved::Nothing(what) => {
                    needs.missing.insert(place, what);
                }
                Resolved::Ambiguous(what) => {
                    needs
                        .missing
                        .insert(place, format!("{what}, one of several that differ"));
                }
            }
            at += CORE_BYTES;
        }
    }
    Some(())
}

fn strings_of(btf: &[u8]) -> Option<&[u8]> {
    let (header, at, bytes) = (number(btf, 4, 4)?, number(btf, 16, 4)?, number(btf, 20, 4)?);
    btf.get(header + at..header + at + bytes)
}

/// Relocations of ELF: calls of our own functions, callbacks, functions of the kernel, maps; and calls within a section,
/// which need none.
fn references(elf: &Elf, local: &KernelBtf, types: &Types, needs: &mut Needs) {
    let with_code: BTreeSet<usize> = elf
        .symbols()
        .filter(elf::is_function)
        .filter_map(|symbol| elf::section_of(&symbol))
        .collect();
    for section in with_code.iter().copied() {
        let code = elf::bytes(elf, section);
        for (at, symbol) in elf::relocations(elf, section) {
            let place = (section, at / INSTRUCTION_BYTES);
            let instruction = code.get(at..at + INSTRUCTION_BYTES);
            let instruction = instruction.expect("clang's relocations are of instructions");
            let target = elf::section_of(&symbol);
            if symbol.is_undefined() {
                kernel_function(&symbol, instruction[0], place, local, types, needs);
            } else if let Some(target) = target.filter(|target| with_code.contains(target)) {
                let callee = callee(&symbol, target, instruction);
                needs.facts.callees.insert(place, callee);
            }
            needs.facts.unknown.insert(place);
        }
        let instructions = code.chunks_exact(INSTRUCTION_BYTES).enumerate();
        for (at, instruction) in instructions {
            let ours = instruction[0] == CALL && instruction[1] >> 4 == CALLS_OURS;
            if ours && !needs.facts.unknown.contains(&(section, at)) {
                let callee = (section, jumped(at, immediate_of(instruction) + 1));
                needs.facts.callees.insert((section, at), callee);
            }
        }
    }
}

fn immediate_of(instruction: &[u8]) -> i64 {
    let bytes = instruction[4..8].try_into().expect("four");
    i64::from(i32::from_le_bytes(bytes))
}

fn jumped(from: usize, by: i64) -> usize {
    usize::try_from(from as i64 + by).expect("clang stays inside")
}

/// Which function of ours is meant, as libbpf tells: a call counts from the instruction after it, an address in bytes.
fn callee(symbol: &Symbol, section: usize, instruction: &[u8]) -> Place {
    let further = match instruction[0] {
        CALL => immediate_of(instruction) + 1,
        _ => immediate_of(instruction) / INSTRUCTION_BYTES as i64,
    };
    (section, jumped(instruction_of(symbol), further))
}

/// A call of a kernel function, or the question whether there is one (`bpf_ksym_exists()`).
fn kernel_function(
    symbol: &Symbol,
    op: u8,
    place: Place,
    local: &KernelBtf,
    types: &Types,
    needs: &mut Needs,
) {
    let name = symbol.name().expect("clang names them");
    let wrong = types.wrong_with(local, name);
    if op == LOAD_64_BITS {
        match wrong {
            Some(_) if symbol.is_weak() => needs.facts.constants.insert(place, 0),
            _ => None,
        };
        return;
    }
    // Our own module's (kmod/): it is no kernel's, and is looked for when it is loaded.
    if name.starts_with("unspin_") {
        return;
    }
    needs.functions.insert(place, name.to_owned());
    if let Some(wrong) = wrong {
        needs.missing.insert(place, wrong);
    }
}
