// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where QEMU, the guests' programs and their kernel lie: in the cache that set-up fills, or copied from there into the
//! testbed.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use unspin_testbed::{Input, Machine};

use crate::Error;

/// The folder in the testbed.
const IN_TESTBED: &str = "/linux-guest";
/// The distribution's emulator.
pub const QEMU: &str = "qemu-system-x86_64";
/// The guest's shell and tools, one static file.
pub const SHELL: &str = "busybox";
/// GNU make and a small C compiler with something to compile, of `make linux-guest`.
pub const MAKE: &str = "make";
/// The memory-mapping load, of `make linux-guest`.
pub const MMAPS: &str = "mmaps";
/// Linux's lock torture, the modules of our kernel.
pub const TORTURE: &str = "torture";
/// The module that tells the host of the kernel's own counts (abi/guest/counts.h), of `make linux-module`.
pub const COUNTS: &str = "counts";
const BUILT: [&str; 3] = [MAKE, MMAPS, TORTURE];
/// What `make linux-loads` takes out of Debian's packages.
const LOADS: [&str; 7] = [
    "stress-ng",
    "sysbench",
    "sweeps",
    "dbench",
    "pgbench",
    "kernbench",
    "collect",
];
/// The name of the kernel with the papers' locks, where `guest-linux/build` puts it and in the testbed.
const OUR_KERNEL: &str = "vmlinuz-unspin";
const LOADER: &str = "usr/lib64/ld-linux-x86-64.so.2";
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

/// Folders as `setup/unpack-linux-guest` and `guest-linux/build` make them, and the kernel of the guests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    folder: PathBuf,
    /// What `make linux-guest` has built; it need not be there.
    built: PathBuf,
    /// What `make linux-module` has built; nor need this.
    module: PathBuf,
    /// What `make linux-loads` has built; nor need this.
    loads: PathBuf,
    kernel: PathBuf,
}

impl Programs {
    /// Those of the testbed that this runs in, or those of the cache of this machine. The kernel is the distribution's
    /// compressed image as its package has it, the one that the testbed boots too.
    ///
    /// # Errors
    /// [`Error::NotSetUp`] naming the first thing missing.
    pub fn find(in_testbed: bool, cache: &Path) -> Result<Programs, Error> {
        let [folder, built, module, loads] = match in_testbed {
            true => [IN_TESTBED; 4].map(PathBuf::from),
            false => ["linux-guest", "guest-linux", "guest-module", "guest-loads"]
                .map(|name| cache.join(name).join("current")),
        };
        let kernel = match in_testbed {
            true => folder.join("vmlinuz"),
            false => cache.join("kernel/current/vmlinuz"),
        };
        for path in [&folder, &kernel] {
            if !path.exists() {
                return Err(Error::NotSetUp { path: path.clone() });
            }
        }
        Ok(Programs {
            folder,
            built,
            module,
            loads,
            kernel,
        })
    }

    /// The same with the kernel that has the papers' locks.
    ///
    /// # Errors
    /// [`Error::NotBuilt`]: `make linux-guest` builds it.
    pub fn with_our_kernel(&self) -> Result<Programs, Error> {
        let kernel = self.built.join(OUR_KERNEL);
        if !kernel.exists() {
            return Err(Error::NotBuilt { path: kernel });
        }
        Ok(Programs {
            kernel,
            ..self.clone()
        })
    }

    /// What has to be copied into the testbed so that guests with these programs run there, and our kernel, too, when
    /// `our_kernel` says so.
    ///
    /// # Errors
    /// As [`Programs::files`] and [`Programs::with_our_kernel`].
    pub fn inputs(
        &self,
        machine: &Machine,
        programs: &[&str],
        our_kernel: bool,
    ) -> Result<Vec<Input>, Error> {
        let input = |host: PathBuf, guest: PathBuf| Input {
            host,
            guest: Path::new(IN_TESTBED).join(guest),
            executable: true,
        };
        let mut inputs = vec![input(machine.vmlinuz.clone(), "vmlinuz".into())];
        if our_kernel {
            inputs.push(input(self.with_our_kernel()?.kernel, OUR_KERNEL.into()));
        }
        for program in programs {
            inputs.push(input(
                self.list(program)?,
                format!("{program}.files").into(),
            ));
        }
        for file in self.files(programs)? {
            inputs.push(input(self.path(&file), Path::new("tree").join(&file)));
        }
        Ok(inputs)
    }

    /// What the programs need, each once, as paths below the root of a file system.
    ///
    /// # Errors
    /// [`Error::NotSetUp`], [`Error::File`], [`Error::BadList`].
    pub fn files(&self, programs: &[&str]) -> Result<BTreeSet<String>, Error> {
        let mut files = BTreeSet::new();
        for program in programs {
            let list = self.list(program)?;
            let text = std::fs::read_to_string(&list).map_err(Error::file("reading", &list))?;
            for file in text.lines() {
                let inside = |part| matches!(part, Component::Normal(_));
                if file.is_empty() || !Path::new(file).components().all(inside) {
                    let file = file.to_owned();
                    return Err(Error::BadList { list, file });
                }
                files.insert(file.to_owned());
            }
        }
        Ok(files)
    }

    /// Where the list of a program's files lies.
    fn list(&self, program: &str) -> Result<PathBuf, Error> {
        let name = format!("{program}.files");
        let mut places = self.places().map(|folder| folder.join(&name));
        if let Some(path) = places.find(|path| path.exists()) {
            return Ok(path);
        }
        let path = |folder: &Path| folder.join(&name);
        Err(match program {
            COUNTS => Error::NoModule {
                path: path(&self.module),
            },
            _ if BUILT.contains(&program) => Error::NotBuilt {
                path: path(&self.built),
            },
            _ if LOADS.contains(&program) => Error::NoLoads {
                path: path(&self.loads),
            },
            _ => Error::NotSetUp {
                path: path(&self.folder),
            },
        })
    }

    /// The folders that programs lie in; a library that several have comes from the first.
    fn places(&self) -> impl Iterator<Item = &Path> {
        [&self.folder, &self.built, &self.module, &self.loads]
            .into_iter()
            .map(PathBuf::as_path)
    }

    /// Where a file of a list lies here.
    pub fn path(&self, file: &str) -> PathBuf {
        let mut places = self.places().map(|folder| folder.join("tree").join(file));
        places
            .find(|path| path.exists())
            .unwrap_or_else(|| self.folder.join("tree").join(file))
    }

    /// The guests' kernel.
    pub fn kernel(&self) -> &Path {
        &self.kernel
    }

    /// QEMU's own file.
    pub fn qemu_program(&self) -> PathBuf {
        self.path(&format!("usr/bin/{QEMU}"))
    }

    /// QEMU as it has to be started: by the loader of its own suite, with that suite's libraries, so that neither this
    /// machine's C library nor where the folder lies matters; and where its firmware is.
    pub fn qemu(&self) -> Vec<std::ffi::OsString> {
        vec![
            self.path(LOADER).into(),
            "--library-path".into(),
            self.path(LIBRARIES).into(),
            self.qemu_program().into(),
            "-L".into(),
            self.path("usr/share/qemu").into(),
            "-L".into(),
            self.path("usr/share/seabios").into(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use unspin_testbed::{EmulatorFiles, QemuFiles};

    use super::*;

    fn cache() -> tempfile::TempDir {
        let cache = tempfile::tempdir().expect("a folder");
        for (file, text) in [
            ("kernel/current/vmlinuz", "kernel"),
            ("linux-guest/current/busybox.files", "usr/bin/busybox\n"),
            (
                "linux-guest/current/hackbench.files",
                "usr/bin/hackbench\nusr/lib64/ld\n",
            ),
            (
                "linux-guest/current/perf.files",
                "usr/bin/perf\nusr/lib64/ld\n",
            ),
        ] {
            let path = cache.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        cache
    }

    fn machine() -> Machine {
        Machine {
            emulator: EmulatorFiles::Qemu(QemuFiles {
                program: "/q".into(),
                firmware: "/f".into(),
            }),
            vmlinuz: "/cache/vmlinuz".into(),
            kernel_version: "7.2".into(),
            modules: Vec::new(),
        }
    }

    #[test]
    fn programs_share_their_libraries() {
        let cache = cache();
        let programs = Programs::find(false, cache.path()).expect("there");
        let files = programs.files(&["hackbench", "perf"]).expect("listed");
        let files: Vec<_> = files.iter().map(String::as_str).collect();
        assert_eq!(files, ["usr/bin/hackbench", "usr/bin/perf", "usr/lib64/ld"]);
    }

    #[test]
    fn what_goes_into_the_testbed_lies_there_as_here() {
        let cache = cache();
        let programs = Programs::find(false, cache.path()).expect("there");
        let inputs = programs
            .inputs(&machine(), &["busybox"], false)
            .expect("listed");
        let places: Vec<_> = inputs
            .iter()
            .map(|input| input.guest.to_string_lossy())
            .collect();
        assert_eq!(
            places,
            [
                "/linux-guest/vmlinuz",
                "/linux-guest/busybox.files",
                "/linux-guest/tree/usr/bin/busybox"
            ]
        );
        assert_eq!(inputs[0].host, Path::new("/cache/vmlinuz"));
        assert_eq!(inputs[2].host, programs.path("usr/bin/busybox"));
    }

    #[test]
    fn our_kernel_and_loads_come_from_their_own_folder() {
        let cache = cache();
        let programs = Programs::find(false, cache.path()).expect("there");
        for missing in [
            programs.with_our_kernel().map(drop),
            programs.files(&[MMAPS]).map(drop),
            programs.inputs(&machine(), &[], true).map(drop),
        ] {
            let said = missing.expect_err("not built").to_string();
            assert!(said.contains("`make linux-guest`"), "{said}");
        }
        for load in LOADS {
            let said = programs.files(&[load]).expect_err(load).to_string();
            assert!(said.contains("`make linux-loads`"), "{said}");
        }
        let built = cache.path().join("guest-linux/current");
        std::fs::create_dir_all(built.join("tree/usr/bin")).expect("made");
        for (file, text) in [
            ("vmlinuz-unspin", "kernel"),
            ("mmaps.files", "usr/bin/mmaps\n"),
            ("tree/usr/bin/mmaps", "load"),
        ] {
            std::fs::write(built.join(file), text).expect("written");
        }
        let ours = programs.with_our_kernel().expect("built");
        assert_eq!(ours.kernel(), built.join("vmlinuz-unspin"));
        assert_eq!(ours.path("usr/bin/mmaps"), built.join("tree/usr/bin/mmaps"));
        let inputs = ours.inputs(&machine(), &[MMAPS], true).expect("listed");
        let places: Vec<_> = inputs
            .iter()
            .map(|input| input.guest.to_string_lossy())
            .collect();
        assert_eq!(
            places,
            [
                "/linux-guest/vmlinuz",
                "/linux-guest/vmlinuz-unspin",
                "/linux-guest/mmaps.files",
                "/linux-guest/tree/usr/bin/mmaps"
            ]
        );
    }

    #[test]
    fn what_is_missing_or_leads_outside_is_named() {
        let cache = cache();
        let programs = Programs::find(false, cache.path()).expect("there");
        let missing = programs.files(&["other"]).expect_err("no list").to_string();
        assert!(
            missing.contains("other.files") && missing.contains("`make setup`"),
            "{missing}"
        );
        for bad in ["/etc/passwd", "../x", "a/../../b", ""] {
            let list = cache.path().join("linux-guest/current/bad.files");
            std::fs::write(list, format!("{bad}\n")).expect("written");
            let refused = programs.files(&["bad"]).expect_err(bad).to_string();
            assert!(refused.contains(&format!("{bad:?}")), "{refused}");
        }
        let empty = tempfile::tempdir().expect("a folder");
        let nothing = Programs::find(false, empty.path()).expect_err("empty");
        assert!(nothing.to_string().contains("linux-guest"), "{nothing}");
    }
}
