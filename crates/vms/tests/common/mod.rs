// SPDX-License-Identifier: MIT OR Apache-2.0
//! A /proc of files.

#![allow(dead_code)] // each test binary uses a part

use std::{fs, os::unix::fs::symlink, path::Path};

use unspin_vms::{Look, VmProcess, look};

/// The folder, as long as it is wanted.
pub struct Proc(tempfile::TempDir);

impl Proc {
    pub fn new() -> Proc {
        Proc(tempfile::tempdir().expect("a folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A process, in place of the one of that number.
    pub fn process(&self, number: u32, start_ticks: u64, comm: &[u8], line: &[u8], cgroup: &[u8]) {
        self.end(number);
        let folder = self.path().join(number.to_string());
        fs::create_dir_all(&folder).expect("a folder");
        let mut stat = format!("{number} (").into_bytes();
        stat.extend(comm);
        stat.extend(b") S 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 ");
        stat.extend(
            format!("{start_ticks} 1 1 1 1 1 1 1 1 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n")
                .bytes(),
        );
        for (file, bytes) in [
            ("stat", stat.as_slice()),
            ("cmdline", line),
            ("cgroup", cgroup),
        ] {
            fs::write(folder.join(file), bytes).expect("room");
        }
    }

    /// An open file of the process.
    pub fn opens(&self, number: u32, file: u32, of: &str) {
        let folder = self.path().join(format!("{number}/fd"));
        fs::create_dir_all(&folder).expect("a folder");
        symlink(of, folder.join(file.to_string())).expect("room");
    }

    pub fn end(&self, number: u32) {
        // It need not be there.
        let _ = fs::remove_dir_all(self.path().join(number.to_string()));
    }

    pub fn found(&self, number: u32) -> VmProcess {
        match look(self.path(), number) {
            Look::Found(found) => found,
            other => panic!("process {number}: {other:?}"),
        }
    }
}

/// The command line as the kernel has it, and the list of cgroups.
pub fn fixture(name: &str) -> (Vec<u8>, Vec<u8>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    let read = |file: &str| fs::read(folder.join(file)).expect(file);
    let mut line = read("cmdline");
    for byte in &mut line {
        if *byte == b'\n' {
            *byte = 0;
        }
    }
    (line, read("cgroup"))
}
