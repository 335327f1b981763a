// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles `policy/` for this machine, generates Rust bindings of its types and functions, and embeds the sources that
//! a user policy is compiled with.
use std::{
    collections::BTreeSet,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

fn main() {
    let own = unspin_headers::crate_folder();
    let functions = "(unspin|policies|answer|gang|yield_buddy|ecs|vcpu|order)_.*";
    let out = unspin_headers::bind_functions(&own.join("native/bound.h"), "policy", functions);
    let embedded = embedded(&unspin_headers::workspace_folder());
    fs::write(out.join("embedded.rs"), embedded).expect("OUT_DIR can be written");
}

/// `FILES` and `SOURCES_HASH` as Rust text.
fn embedded(root: &Path) -> String {
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for folder in ["abi", "policy"] {
        headers(root, folder, &mut files);
    }
    let mut programs = BTreeSet::new();
    let program = root.join("bpf/scheduler/user_policy.bpf.c");
    needed(&program, &mut programs);
    let folder = fs::canonicalize(root.join("bpf")).expect("a folder of the tree");
    files.extend(programs.into_iter().filter_map(|path| {
        let name = path.strip_prefix(&folder).ok()?.display().to_string();
        Some((format!("bpf/{name}"), path))
    }));
    for name in ["user_library.c", "user_test.h", "user_replay.c"] {
        let path = root.join("crates/policy/native").join(name);
        files.push((format!("policy/{name}"), path));
    }
    files.sort();
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    let mut text = format!(
        "/// Path and text of each.\npub(crate) const FILES: [(&str, &str); {}] = [\n",
        files.len()
    );
    for (name, path) in files {
        let path = path.canonicalize().expect("it is there");
        unspin_headers::watch(&path);
        hash.add(name.as_bytes());
        hash.add(&fs::read(&path).expect("it can be read"));
        writeln!(text, "({name:?}, include_str!({path:?})),").expect("a string takes all");
    }
    write!(
        text,
        "];\n/// Tells these sources from any others: FNV-1a, 64 bits, in hexadecimal digits.\n\
         pub const SOURCES_HASH: &str = \"{:016x}\";\n",
        hash.0
    )
    .expect("a string takes all");
    text
}

/// Adds the headers of a folder and of the folders in it, by their paths below `root`.
fn headers(root: &Path, folder: &str, files: &mut Vec<(String, PathBuf)>) {
    let entries = fs::read_dir(root.join(folder)).expect("a folder of the tree");
    for entry in entries.flatten() {
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            headers(root, &name, files);
        } else if name.ends_with(".h") {
            files.push((name, entry.path()));
        }
    }
}

/// Adds a file and all files that it includes by relative paths.
fn needed(file: &Path, found: &mut BTreeSet<PathBuf>) {
    let Ok(file) = fs::canonicalize(file) else {
        return; // A system header, or a generated one.
    };
    let text = fs::read_to_string(&file).expect("it can be read");
    if found.insert(file.clone()) {
        let folder = file.parent().expect("a file lies in a folder");
        let included = text
            .lines()
            .filter_map(|line| line.strip_prefix("#include \"")?.split('"').next());
        included.for_each(|name| needed(&folder.join(name), found));
    }
}

/// The FNV-1a hash (Fowler, Noll and Vo): distinguishes versions, and does not protect against forgery.
struct Fnv(u64);

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        // The length first, so that two texts cannot be split in another way with the same hash.
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
