// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plants each bug of `crates/lockcheck/tests/bugs/*.toml` in a copy of `locks/`, and compiles the scripted world around it.
use std::{
    fmt::Write as _,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use unspin_headers::Compiler;

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

/// The file has that content; when it had it before, it stays untouched, and what was compiled from it is current.
fn write(file: &Path, content: &str) -> io::Result<()> {
    if fs::read_to_string(file).is_ok_and(|there| there == content) {
        return Ok(());
    }
    fs::write(file, content)
}

/// A copy, not links: `..` in a linked folder would lead to the headers without the bug. Of the file at `except`, from the
/// folder, nothing is written.
fn copy_folder(from: &Path, to: &Path, except: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy_folder(&source, &target, except)?;
        } else if source.extension().is_some_and(|end| end == "h") {
            unspin_headers::watch(&source);
            if source != except {
                write(&target, &fs::read_to_string(&source)?)?;
            }
        }
    }
    Ok(())
}

/// A folder like the project's with this bug in `locks/`; `None` when its text is not there exactly once.
fn plant(root: &Path, bug: &Bug, to: &Path) -> io::Result<Option<PathBuf>> {
    let original = root.join("locks").join(&bug.file);
    let mut header = fs::read_to_string(&original)?;
    for (old, new) in &bug.edits {
        if header.matches(old).count() != 1 {
            unspin_headers::watch(&original);
            return Ok(None);
        }
        header = header.replacen(old, new, 1);
    }
    let locks = to.join("locks");
    fs::create_dir_all(to)?;
    let abi = to.join("abi");
    // A build folder that was moved here has a link to where it was.
    if fs::read_link(&abi).ok() != Some(root.join("abi")) {
        if abi.is_symlink() {
            fs::remove_file(&abi)?;
        }
        symlink(root.join("abi"), abi)?;
    }
    copy_folder(&root.join("locks"), &locks, &original)?;
    write(&locks.join(&bug.file), &header)?;
    Ok(Some(locks))
}

/// What `UNSPIN_LOCKS_IN_TABLE` (locks/all.h) is for a bug: its lock alone, which compiles in half the time of all of them.
fn locks_in_table(lock: &str) -> String {
    match lock {
        "rcu" => String::new(),
        lock => format!("X(UNSPIN_LOCK_{lock}, {lock})"),
    }
}

fn main() {
    let root = unspin_headers::workspace_folder();
    let lockcheck = root.join("crates/lockcheck");
    let bugs = root.join("crates/lockcheck/tests/bugs");
    unspin_headers::watch(&bugs);
    // Compiled quickly; the checker looks at each access, not at the time it takes.
    let compiler = Compiler::host()
        .argument("-O1")
        .argument("-w")
        .include(&lockcheck.join("c"))
        .define("UNSPIN_PLATFORM_HEADER", "\"platform_script.h\"");
    let out = unspin_headers::out_folder();
    let mut objects = Vec::new();
    let mut declared = String::new();
    let mut rows = String::new();
    for (number, bug) in read_bugs(&bugs).iter().enumerate() {
        let folder = format!("bug{number}");
        let symbol = format!("script_calls_bug_{number}");
        let planted = plant(&root, bug, &out.join(&folder)).expect("a copy of the locks");
        let calls = match &planted {
            None => "None".to_owned(),
            Some(locks) => {
                writeln!(declared, "static {symbol}: c_void;").expect("text");
                let quoted = |file: &str| format!("\"{}\"", locks.join(file).display());
                let world = compiler
                    .clone()
                    .define("UNSPIN_LOCKS_IN_TABLE(X)", &locks_in_table(&bug.lock))
                    .define("SCRIPT_NAME", &symbol)
                    .define("SCRIPT_LOCKS_HEADER", &quoted("all.h"))
                    .define("SCRIPT_RCU_HEADER", &quoted("parts/rcu.h"));
                let source = lockcheck.join("c/script.c");
                objects.push(world.object(&source, &format!("{folder}/script.o")));
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
    unspin_headers::library("unspin_lockcheck_bugs_c", &objects);
    let source = format!(
        "unsafe extern \"C\" {{ {declared} }}\n\
         /// Every seeded bug, in order of files and places.\n\
         pub fn all() -> Vec<Bug> {{ vec![ {rows} ] }}\n"
    );
    fs::write(out.join("bugs.rs"), source).expect("written");
}
