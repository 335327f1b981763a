// SPDX-License-Identifier: MIT OR Apache-2.0
//! What goes into the initramfs, and what is refused.

use super::*;
use crate::boot::qemu::QemuFiles;
use crate::image::cache::{EmulatorFiles, ModuleFile};
use crate::image::executable::tests::elf;
use crate::inputs::Input;

struct Fixture {
    folder: tempfile::TempDir,
    machine: Machine,
    options: Options,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name);
    std::fs::write(file("kvm.ko"), b"module").expect("file");
    std::fs::write(file("S.toml"), b"seed = 1\n").expect("file");
    std::fs::write(file("static"), elf(&[1, 2])).expect("file");
    std::fs::write(file("dynamic"), elf(&[1, 3])).expect("file");
    let machine = Machine {
        emulator: EmulatorFiles::Qemu(QemuFiles {
            program: "/qemu".into(),
            firmware: "/share".into(),
        }),
        vmlinuz: "/vmlinuz".into(),
        kernel_version: "7.2.12".into(),
        modules: vec![ModuleFile {
            name: "kvm".into(),
            path: file("kvm.ko"),
        }],
    };
    let mut options = Options::new("/cache".into());
    options.init_binary = Some(file("static"));
    Fixture {
        folder,
        machine,
        options,
    }
}

impl Fixture {
    fn input(&mut self, guest: &str) {
        let host = self.folder.path().join("S.toml");
        self.options.inputs.push(Input {
            host,
            guest: guest.into(),
            executable: false,
        });
    }

    fn build(&self) -> Result<Vec<u8>, Error> {
        build(
            &self.machine,
            &self.options,
            &["unspin".into(), "doctor".into()],
        )
    }
}

fn names(archive: &[u8]) -> Vec<String> {
    let starts = archive
        .windows(6)
        .enumerate()
        .filter(|(at, window)| at % 4 == 0 && *window == b"070701");
    let name = |at: usize| {
        archive[at + 110..]
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default()
    };
    starts
        .map(|(at, _)| String::from_utf8_lossy(name(at)).into_owned())
        .collect()
}

#[test]
fn everything_is_there_once_and_in_the_same_order() {
    let mut fixture = fixture();
    fixture.input("a/b/S.toml");
    fixture.input("../c/S.toml");
    let archive = fixture.build().expect("complete");
    let expected = [
        "bin",
        "dev",
        "etc",
        "job",
        "modules",
        "out",
        "proc",
        "root",
        "run",
        "sys",
        "tmp",
        "dev/console",
        "bin/unspin",
        "init",
        "modules/kvm.ko",
        "job.json",
        "job/a",
        "job/a/b",
        "job/a/b/S.toml",
        "c",
        "c/S.toml",
        "TRAILER!!!",
    ];
    assert_eq!(names(&archive), expected);
    assert_eq!(
        archive,
        fixture.build().expect("complete"),
        "the same bytes for the same inputs"
    );
}

#[test]
fn the_job_says_what_to_run_and_nothing_of_the_host() {
    let mut fixture = fixture();
    fixture.input("S.toml");
    fixture
        .options
        .module_parameters
        .insert("kvm".into(), "halt_poll_ns=0".into());
    let archive = String::from_utf8_lossy(&fixture.build().expect("complete")).into_owned();
    assert!(archive.contains(r#"{"command":["unspin","doctor"],"working_directory":"/job""#));
    assert!(archive.contains(r#"{"path":"/modules/kvm.ko","parameters":"halt_poll_ns=0"}"#));
    assert!(
        !archive.contains(&*fixture.folder.path().to_string_lossy()),
        "a path of the host leaked"
    );
}

#[test]
fn a_dynamic_binary_is_refused() {
    let mut fixture = fixture();
    fixture.options.init_binary = Some(fixture.folder.path().join("dynamic"));
    let message = fixture.build().expect_err("dynamic").to_string();
    assert!(
        message.contains("dynamic is not static") && message.contains("crt-static"),
        "{message}"
    );
}

#[test]
fn inputs_in_each_others_way_are_refused() {
    for guests in [
        &["S.toml", "./S.toml"][..],
        &["/init"],
        &["../init"],
        &["/bin/unspin"],
        &["/job.json"],
        &["/proc"],
        &["/"],
        &["a", "a/b"],
        &["a/b", "a"],
        &["/init/x"],
    ] {
        let mut fixture = fixture();
        guests.iter().for_each(|guest| fixture.input(guest));
        let message = fixture.build().expect_err("in the way").to_string();
        assert!(
            message.contains("two files would lie at"),
            "{guests:?}: {message}"
        );
    }
}

#[test]
fn more_than_half_of_its_memory_is_refused() {
    let mut fixture = fixture();
    fixture.input("file");
    fixture.options.memory_mib = 1;
    let message = fixture.build().expect_err("too much").to_string();
    assert!(message.contains("raise --memory-mib"), "{message}");
}

#[test]
fn a_missing_input_and_an_unknown_module_are_named() {
    let mut missing = fixture();
    missing.options.inputs.push(Input {
        host: "/nonexistent/S.toml".into(),
        guest: "x".into(),
        executable: false,
    });
    assert!(
        missing
            .build()
            .expect_err("missing")
            .to_string()
            .contains("reading /nonexistent/S.toml")
    );
    let mut unknown = fixture();
    unknown
        .options
        .module_parameters
        .insert("kvm_intel".into(), String::new());
    assert!(
        unknown
            .build()
            .expect_err("unknown")
            .to_string()
            .contains("no module kvm_intel")
    );
}

#[test]
fn an_argument_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let fixture = fixture();
    for bytes in [vec![0xff], b"a\0b".to_vec()] {
        let command = ["unspin".into(), OsString::from_vec(bytes)];
        assert!(matches!(
            build(&fixture.machine, &fixture.options, &command),
            Err(Error::Option(_))
        ));
    }
}
