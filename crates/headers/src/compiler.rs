// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one C compiler, for this machine, for the micro guest and for BPF.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, OnceLock},
    thread,
};

use crate::{
    dependencies::{Made, watch},
    out_folder, workspace_folder,
};

/// What compiles C, unless UNSPIN_CLANG names another clang.
const CLANG: &str = "clang-19";
/// The C that is spoken: GNU's statement expressions and `asm` beside C11.
pub(crate) const STANDARD: &str = "-std=gnu11";
const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// The micro guest: no vector registers (nobody saves them), no red zone (interrupts use the stack), no calls into a C library,
/// no position independence (it is linked at the addresses of abi/guest/memory.h); nothing in it says when it was made.
const FREESTANDING: [&str; 13] = [
    "--target=x86_64-unknown-none-elf",
    "-O2",
    "-ffreestanding",
    "-nostdlibinc",
    "-fno-pic",
    "-fno-pie",
    "-mcmodel=small",
    "-mno-red-zone",
    "-mgeneral-regs-only",
    "-fno-stack-protector",
    "-fno-asynchronous-unwind-tables",
    "-fno-ident",
    "-fcf-protection=none",
];

/// -mcpu=v3: 32-bit registers and atomics that return values, Linux 5.12. -g: clang writes BTF only with it. -fno-addrsig: no
/// table for a linker that there is not.
const BPF: [&str; 8] = [
    "--target=bpf",
    "-O2",
    "-g",
    "-mcpu=v3",
    "-fno-addrsig",
    "-fno-stack-protector",
    "-Wno-unused-parameter",
    "-D__TARGET_ARCH_x86",
];

/// The compiler and its flags.
#[derive(Clone, Debug)]
pub struct Compiler {
    arguments: Vec<OsString>,
    strips_debug_sections: bool,
}

/// One source to be compiled; [`Object::make_all`] does it.
#[derive(Clone, Debug)]
pub struct Object {
    compiler: Compiler,
    source: PathBuf,
    object: PathBuf,
}

impl Compiler {
    /// For this machine, optimised in every profile: a build for development simulates and measures the same code. Warnings are
    /// errors.
    pub fn host() -> Compiler {
        let mut build = cc::Build::new();
        // What cargo's profile and the environment (CFLAGS) ask for.
        let tool = build
            .compiler(clang())
            .opt_level(2)
            .warnings(true)
            .get_compiler();
        Compiler::with(tool.args().iter().cloned())
    }

    /// For the micro guest: it runs without an operating system.
    pub fn freestanding() -> Compiler {
        Compiler::with(FREESTANDING).mapped()
    }

    /// For the kernel's BPF; `libbpf` is the folder in which libbpf's own folder of headers lies. Objects have BTF, and
    /// nothing else for debuggers.
    pub fn bpf(libbpf: &Path) -> Compiler {
        let mut compiler = Compiler::with(BPF).mapped().include(libbpf);
        compiler.strips_debug_sections = true;
        compiler
    }

    fn with(flags: impl IntoIterator<Item = impl Into<OsString>>) -> Compiler {
        let mut arguments = vec![STANDARD.into()];
        arguments.extend(WARNINGS.map(OsString::from));
        arguments.extend(flags.into_iter().map(Into::into));
        Compiler {
            arguments,
            strips_debug_sections: false,
        }
    }

    /// No object contains the workspace's path.
    fn mapped(self) -> Compiler {
        let workspace = workspace_folder();
        self.argument(format!("-ffile-prefix-map={}=.", workspace.display()))
    }

    /// The same with one more argument; of two that contradict each other the later one counts.
    pub fn argument(mut self, argument: impl Into<OsString>) -> Compiler {
        self.arguments.push(argument.into());
        self
    }

    /// `#include` looks there, too.
    pub fn include(self, folder: &Path) -> Compiler {
        self.argument("-I").argument(folder)
    }

    /// A macro; `value` is its text.
    pub fn define(self, name: &str, value: &str) -> Compiler {
        self.argument(format!("-D{name}={value}"))
    }

    /// The source's object, to be made in OUT_DIR under that name (`a/b.o`), which no other object of this script has.
    pub fn object(&self, source: &Path, name: &str) -> Object {
        Object {
            compiler: self.clone(),
            source: source.to_owned(),
            object: out_folder().join(name),
        }
    }

    /// The object of a source that this script has written: of its text this script alone decides.
    #[cfg(feature = "bindings")]
    pub(crate) fn generated(&self, source: &Path) -> Object {
        let name = source.with_extension("o");
        self.object(source, &name.to_string_lossy())
    }
}

impl Object {
    /// Compiles those that are not there yet, or that a change touches, several at once; has cargo run the script again when
    /// anything that they were made of changes. Returns where they are, in order.
    ///
    /// # Panics
    /// When the compiler is missing or refuses: the build stops there.
    pub fn make_all(objects: &[Object]) -> Vec<PathBuf> {
        println!("cargo:rerun-if-env-changed=UNSPIN_CLANG");
        let next = Mutex::new(objects.iter());
        let jobs = env::var("NUM_JOBS").ok().and_then(|jobs| jobs.parse().ok());
        thread::scope(|scope| {
            for _ in 0..jobs.unwrap_or(1).min(objects.len()) {
                scope.spawn(|| {
                    loop {
                        // Not held while it compiles.
                        let object = next.lock().expect("no panic holds it").next();
                        let Some(object) = object else { break };
                        object.make();
                    }
                });
            }
        });
        let mut sources: Vec<PathBuf> = objects.iter().flat_map(Object::sources).collect();
        sources.sort();
        sources.dedup();
        let out = fs::canonicalize(out_folder()).expect("cargo has made it");
        let others = sources.iter().filter(|source| !source.starts_with(&out));
        others.for_each(|source| watch(source));
        objects.iter().map(|object| object.object.clone()).collect()
    }

    /// What it was made of, from the root, without links and `..`.
    fn sources(&self) -> Vec<PathBuf> {
        let made = Made::new(&self.object);
        let sources = made.sources(&workspace_folder());
        let sources = sources.expect("the compiler has written what it read");
        let whole = |source: PathBuf| fs::canonicalize(&source).unwrap_or(source);
        sources.into_iter().map(whole).collect()
    }

    fn make(&self) {
        let made = Made::new(&self.object);
        let workspace = workspace_folder();
        let mut command = Command::new(clang());
        command
            .current_dir(&workspace)
            .args(&self.compiler.arguments)
            .arg("-c")
            .arg(&self.source)
            .arg("-o")
            .arg(&self.object)
            .arg("-MD")
            .arg("-MF")
            .arg(made.rule());
        let written = format!("{}{command:?}\n", version());
        if made.is_current(&written, &workspace) {
            return;
        }
        made.begin(&written).expect("OUT_DIR can be written");
        run(&mut command);
        if self.compiler.strips_debug_sections {
            strip_debug_sections(&self.object);
        }
    }
}

/// Compiles what is not current, joins all in a static library, and has it linked.
///
/// # Panics
/// When the compiler is missing or refuses: the build stops there.
pub fn library(name: &str, objects: &[Object]) {
    cc::Build::new()
        .objects(Object::make_all(objects))
        .compile(name);
}

/// The compiler's name.
fn clang() -> String {
    env::var("UNSPIN_CLANG").unwrap_or_else(|_| CLANG.to_owned())
}

/// What the compiler says that it is.
fn version() -> &'static str {
    static VERSION: OnceLock<String> = OnceLock::new();
    VERSION.get_or_init(|| {
        let output = Command::new(clang()).arg("--version").output();
        let output = output.unwrap_or_else(|error| {
            panic!(
                "{} cannot be started: {error}; `apt-get install clang-19`, or UNSPIN_CLANG names another clang",
                clang()
            )
        });
        String::from_utf8_lossy(&output.stdout).into_owned()
    })
}

/// Runs a command; its failure ends the build with what it said.
fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed:\n{said}");
    for line in said.lines().filter(|line| line.contains("warning:")) {
        println!("cargo:warning={line}");
    }
}

/// Takes out what clang writes for debuggers (DWARF), nine tenths of an object that no kernel reads. BTF stays.
fn strip_debug_sections(object: &Path) {
    let bytes = fs::read(object).expect("clang has written it");
    let mut builder = object::build::elf::Builder::read(&*bytes).expect("clang writes ELF");
    for section in &mut builder.sections {
        let name = section.name.to_vec();
        section.delete = [&b".debug_"[..], b".rel.debug_"]
            .iter()
            .any(|debug| name.starts_with(debug));
    }
    builder.delete_orphans();
    // clang has one table for names of sections and of symbols.
    let names = builder.sections.add();
    names.name = b".shstrtab"[..].into();
    names.sh_type = object::elf::SHT_STRTAB;
    names.sh_addralign = 1;
    names.data = object::build::elf::SectionData::SectionString;
    let mut stripped = Vec::new();
    builder.write(&mut stripped).expect("ELF again");
    fs::write(object, stripped).expect("OUT_DIR can be written");
}
