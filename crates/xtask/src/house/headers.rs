// SPDX-License-Identifier: MIT OR Apache-2.0
//! C: who includes whom, within a room and between rooms.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use regex::Regex;

use super::{
    Texts,
    graph::{self, Uses},
};

/// Rooms whose headers are looked at, and the other rooms that each may include.
const ROOMS: [(&str, &[&str]); 7] = [
    ("abi", &[]),
    ("locks", &["abi"]),
    ("lib", &["abi", "locks"]),
    ("policy", &["abi"]),
    ("guest", &["abi", "locks", "policy"]),
    ("bpf", &["abi", "policy"]),
    ("kmod", &["abi"]),
];

/// Headers that say what others must have: who includes them defines it. That is what they are for, and no cycle.
const CONTRACTS: [&str; 1] = [
    // The waiting contract: five worlds define it, one is compiled.
    "locks/platform/contract.h",
];

/// What breaks a rule, a line each.
pub fn broken(texts: &Texts) -> Vec<String> {
    let c = C::read(texts);
    let mut broken = c.outside();
    broken.extend(c.cycles());
    broken
}

/// The sources of the C rooms.
struct C {
    files: BTreeMap<PathBuf, File>,
}

struct File {
    /// Files of the tree that it includes.
    includes: BTreeSet<PathBuf>,
    /// Functions that it declares only.
    declares: BTreeSet<String>,
    defines: BTreeSet<String>,
}

impl C {
    fn read(texts: &Texts) -> Self {
        let files = texts
            .iter()
            .filter(|(file, _)| room(file).is_some())
            .filter(|(file, _)| file.extension().is_some_and(|end| end == "h" || end == "c"))
            .map(|(file, text)| (file.clone(), File::read(file, text, texts)))
            .collect();
        Self { files }
    }

    /// Includes of a room that is not below.
    fn outside(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (file, read) in &self.files {
            let Some((name, below)) = room(file) else {
                continue;
            };
            for other in &read.includes {
                let first = other
                    .iter()
                    .next()
                    .and_then(|first| first.to_str())
                    .unwrap_or("");
                if first != name && !below.contains(&first) {
                    let (file, other) = (file.display(), other.display());
                    found.push(format!(
                        "{file}: includes {other}, which {name}/ does not know"
                    ));
                }
            }
        }
        found
    }

    /// Whether a file includes another one, directly or through others.
    fn includes(&self, file: &Path, other: &Path) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = vec![file];
        while let Some(file) = open.pop() {
            for next in self
                .files
                .get(file)
                .into_iter()
                .flat_map(|file| &file.includes)
            {
                if next == other {
                    return true;
                }
                if seen.insert(next) {
                    open.push(next);
                }
            }
        }
        false
    }

    /// Files that need each other: by includes, and by functions that one only declares and another, which includes it or is
    /// included by it, defines.
    fn cycles(&self) -> Vec<String> {
        let mut uses = Uses::new();
        let mut why = BTreeMap::new();
        for (file, read) in &self.files {
            for other in &read.includes {
                uses.entry(name(file)).or_default().insert(name(other));
                why.insert((name(file), name(other)), "includes it".into());
            }
        }
        let headers = |file: &&PathBuf| !CONTRACTS.contains(&name(file).as_str());
        for file in self.files.keys().filter(headers) {
            for function in &self.files[file].declares {
                let definers = self.files.iter().filter(|(other, read)| {
                    *other != file && is_header(other) && read.defines.contains(function)
                });
                for (other, _) in definers {
                    uses.entry(name(file)).or_default().insert(name(other));
                    let calls = format!("declares its {function}()");
                    why.entry((name(file), name(other))).or_insert(calls);
                    // A declaration above the include: the included header needs what stands between them.
                    if self.includes(file, other) {
                        uses.entry(name(other)).or_default().insert(name(file));
                        let below = format!("is included below the declaration of {function}()");
                        why.entry((name(other), name(file))).or_insert(below);
                    }
                }
            }
        }
        graph::cycles(&uses)
            .iter()
            .map(|cycle| describe(cycle, &why))
            .collect()
    }
}

fn describe(cycle: &[String], why: &BTreeMap<(String, String), String>) -> String {
    let mut text = format!("these need each other in a circle: {}", cycle.join(", "));
    for ((user, used), why) in why {
        if cycle.contains(user) && cycle.contains(used) {
            text += &format!("\n    {user} to {used}: {why}");
        }
    }
    text
}

impl File {
    fn read(file: &Path, text: &str, texts: &Texts) -> Self {
        let include = Regex::new(r#"(?m)^[ \t]*#[ \t]*include[ \t]+"([^"]+)""#).unwrap();
        let folder = file.parent().unwrap_or(Path::new(""));
        let includes = include
            .captures_iter(text)
            .filter_map(|found| {
                // As compilers look: beside the file, then from the top folder.
                let named = Path::new(&found[1]).to_path_buf();
                [normal(&folder.join(&named)), named]
                    .into_iter()
                    .find(|file| texts.contains_key(file))
            })
            .collect();
        let code = top_level(&code(text));
        let (mut declares, mut defines) = (BTreeSet::new(), BTreeSet::new());
        let function = Regex::new(r"(?s)^[^=]*?\b(\w+)\s*\([^;{}]*\)[^;{}()]*([;{])$").unwrap();
        for statement in code {
            // A type of functions is none.
            if statement.trim_start().starts_with("typedef") {
                continue;
            }
            if let Some(found) = function.captures(&statement) {
                // A macro defines who knows what.
                if found[1].chars().all(|letter| !letter.is_lowercase()) {
                    continue;
                }
                let into = if &found[2] == "{" {
                    &mut defines
                } else {
                    &mut declares
                };
                into.insert(found[1].to_string());
            }
        }
        declares.retain(|function| !defines.contains(function));
        Self {
            includes,
            declares,
            defines,
        }
    }
}

/// The text without comments, strings, lines of the preprocessor and what sections and attributes say.
fn code(text: &str) -> String {
    let lines = Regex::new(r"(?m)^[ \t]*#(?:[^\n\\]|\\.|\\\n)*$").unwrap();
    let other =
        Regex::new(r#"(?s)/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"#).unwrap();
    let beside = Regex::new(r"\b(?:SEC|__attribute__)\s*\((?:[^()]|\([^()]*\))*\)").unwrap();
    let text = other.replace_all(text, " ");
    let text = lines.replace_all(&text, "");
    beside.replace_all(&text, " ").into_owned()
}

/// What stands outside of all braces, piece by piece; each ends with the `;` or the `{` that ended it.
fn top_level(code: &str) -> Vec<String> {
    let mut pieces = Vec::new();
    let (mut piece, mut depth) = (String::new(), 0_usize);
    for letter in code.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => piece.push(letter),
            _ => {}
        }
        let opened = letter == '{' && depth == 1;
        if opened {
            piece.push(letter);
        }
        if opened || (depth == 0 && letter == ';') {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    pieces
}

fn room(file: &Path) -> Option<(&'static str, &'static [&'static str])> {
    let first = file.iter().next()?.to_str()?;
    ROOMS.into_iter().find(|(name, _)| *name == first)
}

fn is_header(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "h")
}

fn name(file: &Path) -> String {
    file.display().to_string()
}

/// Without `..` in it.
fn normal(file: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for name in file {
        if name == ".." {
            normal.pop();
        } else {
            normal.push(name);
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let texts = files
            .iter()
            .map(|(file, text)| (PathBuf::from(file), (*text).into()));
        broken(&texts.collect())
    }

    #[test]
    fn rooms_include_themselves_and_those_below() {
        let found = check(&[
            ("abi/types.h", ""),
            (
                "locks/mcs.h",
                "#include \"parts/work.h\"\n#include <stddef.h>\n",
            ),
            ("locks/parts/work.h", "#include \"../../abi/types.h\"\n"),
            ("policy/contract.h", "#include \"../abi/types.h\"\n"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn a_room_may_not_include_one_beside_or_above_it() {
        let found = check(&[
            ("abi/types.h", "#include \"../locks/mcs.h\"\n"),
            ("locks/mcs.h", "# include \"policy/contract.h\"\n"),
            ("policy/contract.h", ""),
        ]);
        assert_eq!(
            found,
            [
                "abi/types.h: includes locks/mcs.h, which abi/ does not know",
                "locks/mcs.h: includes policy/contract.h, which locks/ does not know"
            ]
        );
    }

    #[test]
    fn headers_that_include_each_other_are_a_cycle() {
        let found = check(&[
            ("policy/a.h", "#include \"b.h\"\n"),
            ("policy/b.h", "#include \"c.h\"\n"),
            ("policy/c.h", "#include \"a.h\"\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("policy/a.h, policy/b.h, policy/c.h"),
            "{found:?}"
        );
    }

    #[test]
    fn a_function_that_is_declared_below_and_defined_above_is_a_cycle() {
        let below = "struct {\n\tint x;\n} map SEC(\".maps\");\n\
                     static __always_inline bool ask(struct task *p, u64 now);\n\
                     static int f(void) { return ask(0, 1); }\n\
                     SEC(\"tp/a\")\nint BPF_PROG(a, int b)\n{\n}\n";
        let above = "#include \"below.bpf.h\"\nstruct {\n} other SEC(\".maps\");\n/* ask(); */\nstatic __always_inline bool\nask(struct task *p, u64 now)\n{\n\treturn f();\n}\n";
        let found = check(&[("bpf/below.bpf.h", below), ("bpf/above.bpf.h", above)]);
        assert_eq!(
            found,
            [
                "these need each other in a circle: bpf/above.bpf.h, bpf/below.bpf.h\
              \n    bpf/above.bpf.h to bpf/below.bpf.h: includes it\
              \n    bpf/below.bpf.h to bpf/above.bpf.h: declares its ask()"
            ]
        );
    }

    #[test]
    fn a_function_that_is_declared_above_the_include_that_defines_it_is_a_cycle() {
        let above = "static int ask(void);\nstatic int f(void) { return ask(); }\n#include \"between.bpf.h\"\n";
        let found = check(&[
            ("bpf/above.bpf.h", above),
            ("bpf/between.bpf.h", "#include \"below.bpf.h\"\n"),
            (
                "bpf/below.bpf.h",
                "static int ask(void)\n{\n\treturn f();\n}\n",
            ),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains(
                "bpf/below.bpf.h to bpf/above.bpf.h: is included below the declaration of ask()"
            ),
            "{found:?}"
        );
    }

    #[test]
    fn declarations_that_nobody_above_defines_are_none() {
        let found = check(&[
            (
                "bpf/a.bpf.h",
                "void kfunc(struct task *p) __ksym;\ntypedef int (*call)(int);\nint g(void);\nint g(void) { return 1; }\n",
            ),
            (
                "bpf/b.bpf.h",
                "#include \"a.bpf.h\"\nint call(int x) { kfunc(0); if (x) { return g(); } return 0; }\n",
            ),
            ("locks/platform/contract.h", "void platform_wait(void);\n"),
            (
                "locks/platform/threads.h",
                "#include \"contract.h\"\nvoid platform_wait(void) { }\n",
            ),
        ]);
        assert_eq!(found, [""; 0]);
    }
}
