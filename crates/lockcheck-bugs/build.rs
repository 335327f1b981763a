// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plants each bug of `crates/lockcheck/tests/bugs/*.toml` in a copy of `locks/`, and compiles the scripted world around it.
use std::{
    env,
    fmt::Write as _,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

/// One table `[[bug]]`.
struct Bug {
    name: String,
    lock: String,
    file: String,
    /// Text that must be there exactly once, and what stands there instead; the first is `old` and `new`, others `more`.
    edits: Vec<(String, String)>,
    programs: Vec<String>,
    finds: Vec<String>,
    fifo: bool,
}

fn text(table: &toml::Table, key: &str) -> String {
    match table.get(key) {
        Some(toml::Value::String(text)) => text.clone(),
        other => panic!("{key}: {other:?} in {table:?}"),
    }
}

fn texts(table: &toml::Table, key: &str) -> Vec<String> {
    match table.get(key) {
        Some(toml::Value::Array(values)) => values
            .iter()
            .map(|value| value.as_str().expect("text").to_owned())
            .collect(),
        other => panic!("{key}: {other:?} in {table:?}"),
    }
}

fn edits(bug: &toml::Table) -> Vec<(String, String)> {
    let mut edits = vec![(text(bug, "old"), text(bug, "new"))];
    for pair in bug
        .get("more")
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
    {
        let side = |at: usize| pair[at].as_str().expect("text").to_owned();
        edits.push((side(0), side(1)));
    }
    edits
}

fn read_bugs(folder: &Path) -> Vec<Bug> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder of bugs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    let mut bugs = Vec::new();
    for file in files {
        let table: toml::Table = fs::read_to_string(&file)
            .expect("readable")
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for bug in table["bug"].as_array().expect("[[bug]]") {
            let bug = bug.as_table().expect("a table");
            let lock = text(bug, "lock");
            bugs.push(Bug {
                name: text(bug, "name"),
                file: text(bug, "file"),
                edits: edits(bug),
                programs: texts(bug, "programs"),
                finds: texts(bug, "finds"),
                fifo: bug.get("fifo").is_some(),
                lock,
            });
        }
    }
    bugs
}

/// A copy, not links: `..` in a linked folder would lead to the headers without the bug.
fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// A folder like the project's with this bug in `locks/`; `None` when its text is not there exactly once.
fn plant(root: &Path, bug: &Bug, to: &Path) -> io::Result<Option<PathBuf>> {
    let mut header = fs::read_to_string(root.join("locks").join(&bug.file))?;
    for (old, new) in &bug.edits {
        if header.matches(old).count() != 1 {
            return Ok(None);
        }
        header = header.replacen(old, new, 1);
    }
    if to.exists() {
        fs::remove_dir_all(to)?;
    }
    let locks = to.join("locks");
    fs::create_dir_all(to)?;
    symlink(root.join("abi"), to.join("abi"))?;
    copy_folder(&root.join("locks"), &locks)?;
    fs::write(locks.join(&bug.file), header)?;
    Ok(Some(locks))
}

fn main() {
    let manifest = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = fs::canonicalize(manifest.join("../..")).expect("the project");
    for folder in [
        "abi",
        "locks",
        "crates/lockcheck/c",
        "crates/lockcheck/tests/bugs",
    ] {
        println!("cargo:rerun-if-changed={}", root.join(folder).display());
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
    let mut objects = Vec::new();
    let mut declared = String::new();
    let mut rows = String::new();
    for (number, bug) in read_bugs(&root.join("crates/lockcheck/tests/bugs"))
        .iter()
        .enumerate()
    {
        let folder = out.join(format!("bug{number}"));
        let symbol = format!("script_calls_bug_{number}");
        let planted = plant(&root, bug, &folder).expect("a copy of the locks");
        let calls = match &planted {
            None => "None".to_owned(),
            Some(locks) => {
                writeln!(declared, "static {symbol}: c_void;").expect("text");
                let quoted = |file: &str| format!("\"{}\"", locks.join(file).display());
                let mut build = cc::Build::new();
                build
                    .opt_level(1)
                    .flag("-std=gnu11")
                    .warnings(false)
                    .define("UNSPIN_PLATFORM_HEADER", "\"platform_script.h\"")
                    .include(root.join("crates/lockcheck/c"))
                    .define("SCRIPT_NAME", symbol.as_str())
                    .define("SCRIPT_LOCKS_HEADER", quoted("all.h").as_str())
                    .out_dir(folder.join("objects"))
                    .file(root.join("crates/lockcheck/c/script.c"));
                build.define("SCRIPT_RCU_HEADER", quoted("parts/rcu.h").as_str());
                objects.extend(build.compile_intermediates());
                format!("Some(unsafe {{ NonNull::from(&{symbol}) }})")
            }
        };
        writeln!(
            rows,
            "Bug {{ name: {:?}, lock: {:?}, file: {:?}, programs: &{:?}, finds: &{:?}, is_fifo: {}, calls: {calls} }},",
            bug.name, bug.lock, bug.file, bug.programs, bug.finds, bug.fifo
        )
        .expect("text");
    }
    cc::Build::new()
        .objects(objects)
        .compile("unspin_lockcheck_bugs_c");
    let source = format!(
        "unsafe extern \"C\" {{ {declared} }}\n\
         /// Every seeded bug, in order of files and places.\n\
         pub fn all() -> Vec<Bug> {{ vec![ {rows} ] }}\n"
    );
    fs::write(out.join("bugs.rs"), source).expect("written");
}
