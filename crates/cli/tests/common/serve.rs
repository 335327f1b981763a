// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin serve` of a recording that the lab makes.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::common::{self, ended, repository};

/// A recording of two VMs that fight for their locks, by the lab.
pub fn recording(folder: &Path) -> PathBuf {
    let to = folder.join("recording");
    let mut command = Command::new(common::UNSPIN);
    command
        .args(["lab", "run", "scenarios/demo/2x4-ticket.toml"])
        .args(["--set", "duration=600ms", "--record"])
        .arg(&to)
        .current_dir(repository());
    let ended = ended(&mut command);
    assert_eq!(ended.status, 0, "{ended:#?}");
    to
}

/// `unspin serve --recording`, until it is dropped.
pub struct Serve {
    child: Child,
    pub address: String,
}

impl Serve {
    pub fn start(recording: &Path, socket: &Path) -> Serve {
        let mut child = Command::new(common::UNSPIN)
            .args(["serve", "--listen", "127.0.0.1:0", "--recording"])
            .arg(recording)
            .arg("--socket")
            .arg(socket)
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        let address = first
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address = address.expect("an address").to_owned();
        // Its second line says that the socket is there.
        lines.next().expect("a line").expect("text");
        Serve { child, address }
    }

    pub fn get(&self, path: &str, accept: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }

    /// SIGTERM; its exit status.
    pub fn terminate(mut self) -> Option<i32> {
        let id = i32::try_from(self.child.id()).expect("a process id");
        // SAFETY: no pointers; our own child, which has not been waited for.
        unsafe { libc::kill(id, libc::SIGTERM) };
        self.child.wait().expect("it ends").code()
    }
}
