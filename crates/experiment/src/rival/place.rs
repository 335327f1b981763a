// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where rivals lie: in the cache, as `make rivals` has built them, or copied from there into the testbed with the shared
//! libraries that they need.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use unspin_testbed::{Input, Options};

use super::Rival;
use crate::Error;

/// The folder in the testbed.
const IN_TESTBED: &str = "/rivals";
/// In the cache; a link to the newest build.
const IN_CACHE: &str = "rivals/current";
/// Shared libraries, below either.
const LIBRARIES: &str = "lib";
/// Of these, the one that the kernel starts: where programs for this architecture name it (System V ABI, AMD64).
const LOADER: &str = "/lib64/ld-linux-x86-64.so.2";
/// NAME, VERSION and LICENCE of each, apart by tabs.
const LIST: &str = "rivals.tsv";

/// A rival that can be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Who it is.
    pub rival: Rival,
    /// Its version, as in `1.1.4`.
    pub version: String,
    /// Its licence, as its crate says it.
    pub licence: String,
    folder: PathBuf,
    in_testbed: bool,
}

impl Place {
    /// Where these lie, wherever this runs.
    ///
    /// # Errors
    /// As [`Place::find`].
    pub fn all(rivals: &[Rival]) -> Result<Vec<Place>, Error> {
        // The testbed's init sets it (crates/testbed).
        let in_testbed = std::env::var_os("UNSPIN_TESTBED").is_some();
        let cache = unspin_testbed::cache_from_environment().unwrap_or_default();
        let places = rivals.iter();
        places
            .map(|&rival| Place::find(rival, in_testbed, &cache))
            .collect()
    }

    /// In the testbed that this runs in, or in this machine's cache.
    ///
    /// # Errors
    /// [`Error::Usage`]: it is not built; `make rivals` builds it.
    pub fn find(rival: Rival, in_testbed: bool, cache: &Path) -> Result<Place, Error> {
        let folder = match in_testbed {
            true => PathBuf::from(IN_TESTBED),
            false => cache.join(IN_CACHE),
        };
        Place::below(rival, folder, in_testbed)
    }

    /// In that folder, laid out as `setup/rivals` does it.
    ///
    /// # Errors
    /// As [`Place::find`].
    pub fn below(rival: Rival, folder: PathBuf, in_testbed: bool) -> Result<Place, Error> {
        let list = fs::read_to_string(folder.join(LIST)).unwrap_or_default();
        let program = folder.join(rival.name());
        let of_list = list.lines().find_map(|line| {
            let words: Vec<&str> = line.split('\t').collect();
            match words[..] {
                [name, version, licence] if name == rival.name() => Some((version, licence)),
                _ => None,
            }
        });
        let Some((version, licence)) = of_list.filter(|_| program.is_file()) else {
            return Err(Error::Usage(format!(
                "the rival {rival} is not built: {} is missing; run `make rivals`",
                program.display()
            )));
        };
        Ok(Place {
            rival,
            version: version.to_owned(),
            licence: licence.to_owned(),
            folder,
            in_testbed,
        })
    }

    /// Its program, to be started: in the testbed with the libraries that came with it.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(self.folder.join(self.rival.name()));
        if self.in_testbed {
            command.env("LD_LIBRARY_PATH", self.folder.join(LIBRARIES));
        }
        command
    }
}

/// One sentence that says which builds these are; `None` for none.
///
/// # Errors
/// As [`Place::find`].
pub fn note(rivals: &[Rival]) -> Result<Option<String>, Error> {
    let places = Place::all(rivals)?;
    let said = places.iter().map(|place| {
        let (rival, version, licence) = (place.rival, &place.version, &place.licence);
        format!("{rival} {version} ({licence})")
    });
    let said: Vec<String> = said.collect();
    Ok((!said.is_empty()).then(|| {
        format!(
            "rivals, from crates.io, each with its default options: {}",
            said.join(", ")
        )
    }))
}

/// What has to be copied into the testbed so that these rivals run there; nothing for none.
///
/// # Errors
/// [`Error::Usage`] when one is not built, or what is built lacks its libraries.
pub fn inputs(rivals: &[Rival], options: &Options) -> Result<Vec<Input>, Error> {
    let cache = &options.cache;
    let mut inputs = Vec::new();
    for &rival in rivals {
        let place = Place::find(rival, false, cache)?;
        inputs.push(input(&place.folder, rival.name(), IN_TESTBED, true));
    }
    if inputs.is_empty() {
        return Ok(inputs);
    }
    let folder = cache.join(IN_CACHE);
    inputs.push(input(&folder, LIST, IN_TESTBED, false));
    inputs.extend(kernel_configuration(options));
    let libraries = folder.join(LIBRARIES);
    let incomplete = || {
        Error::Usage(format!(
            "{} lacks the rivals' shared libraries; remove {} and run `make rivals`",
            libraries.display(),
            folder.display()
        ))
    };
    let mut files: Vec<String> = fs::read_dir(&libraries)
        .map_err(|_| incomplete())?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    files.sort_unstable();
    let (loader_folder, loader) = LOADER.rsplit_once('/').expect("it is a path");
    if !files.iter().any(|file| file == loader) {
        return Err(incomplete());
    }
    for file in &files {
        let guest = match file == loader {
            true => loader_folder.to_owned(),
            false => format!("{IN_TESTBED}/{LIBRARIES}"),
        };
        inputs.push(input(&libraries, file, &guest, true));
    }
    Ok(inputs)
}

/// The testbed's kernel configuration where a distribution has it: the rivals' programs use options of it, which libbpf reads
/// there (`bpf_object__read_kconfig_file()`, libbpf 1.7). `None`: this kernel came without.
fn kernel_configuration(options: &Options) -> Option<Input> {
    let current = options.cache.join("kernel/current");
    let kernel = options.kernel.as_ref().unwrap_or(&current);
    let kernel = kernel.canonicalize().ok()?;
    let host = kernel.join("config");
    let release = kernel.file_name()?.to_str()?;
    host.is_file().then(|| Input {
        guest: format!("/boot/config-{release}").into(),
        host,
        executable: false,
    })
}

fn input(folder: &Path, file: &str, guest: &str, executable: bool) -> Input {
    Input {
        host: folder.join(file),
        guest: Path::new(guest).join(file),
        executable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(files: &[(&str, &str)]) -> tempfile::TempDir {
        let cache = tempfile::tempdir().expect("a folder");
        for (file, text) in files {
            let path = cache.path().join(IN_CACHE).join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            fs::write(path, text).expect("written");
        }
        cache
    }

    fn options(cache: &Path) -> Options {
        Options::new(cache.to_owned())
    }

    const BUILT: [(&str, &str); 5] = [
        ("scx_lavd", "program"),
        ("scx_rusty", "program"),
        (
            LIST,
            "scx_lavd\t1.1.4\tGPL-2.0-only\nscx_bpfland\t1.1.4\tGPL-2.0-only\n",
        ),
        ("lib/libelf.so.1", "library"),
        ("lib/ld-linux-x86-64.so.2", "loader"),
    ];

    #[test]
    fn what_is_built_is_found_with_its_version() {
        let cache = cache(&BUILT);
        let lavd = Place::find(Rival::Lavd, false, cache.path()).expect("built");
        assert_eq!((&*lavd.version, &*lavd.licence), ("1.1.4", "GPL-2.0-only"));
        let command = lavd.command();
        assert!(
            Path::new(command.get_program()).ends_with("rivals/current/scx_lavd"),
            "{command:?}"
        );
        assert_eq!(command.get_envs().count(), 0);
    }

    #[test]
    fn what_is_not_built_says_what_builds_it() {
        let empty = tempfile::tempdir().expect("a folder");
        let some = cache(&BUILT);
        // Nothing; a line without a program; a program without a line.
        for (cache, rival) in [
            (empty.path(), Rival::Lavd),
            (some.path(), Rival::Bpfland),
            (some.path(), Rival::Rusty),
        ] {
            for refused in [
                Place::find(rival, false, cache).map(drop),
                inputs(&[rival], &options(cache)).map(drop),
            ] {
                let Err(Error::Usage(said)) = refused else {
                    panic!("{rival}: {refused:?}")
                };
                assert!(
                    said.contains(&format!("the rival {rival} is not built"))
                        && said.contains("`make rivals`"),
                    "{said}"
                );
            }
        }
    }

    #[test]
    fn libraries_and_their_loader_go_into_the_testbed() {
        let cache = cache(&BUILT);
        let kernel = cache.path().join("kernel/7.2.1");
        fs::create_dir_all(&kernel).expect("made");
        fs::write(kernel.join("config"), "CONFIG_X=y").expect("written");
        let mut options = options(cache.path());
        // Without the link to the newest one there is no configuration, unless a kernel is named.
        assert_eq!(kernel_configuration(&options), None);
        options.kernel = Some(kernel);
        let inputs = inputs(&[Rival::Lavd], &options).expect("built");
        let places: Vec<_> = inputs
            .iter()
            .map(|input| input.guest.to_string_lossy())
            .collect();
        assert_eq!(
            places,
            [
                "/rivals/scx_lavd",
                "/rivals/rivals.tsv",
                "/boot/config-7.2.1",
                "/lib64/ld-linux-x86-64.so.2",
                "/rivals/lib/libelf.so.1"
            ]
        );
        assert!(inputs[0].executable && inputs[3].executable);
    }

    #[test]
    fn nothing_is_brought_for_none_and_a_build_without_a_loader_is_refused() {
        let empty = tempfile::tempdir().expect("a folder");
        let none = inputs(&[], &options(empty.path()));
        assert_eq!(none.expect("nothing"), Vec::new());
        for without in [&BUILT[..4], &BUILT[..3]] {
            let cache = cache(without);
            let refused = inputs(&[Rival::Lavd], &options(cache.path())).expect_err("no loader");
            assert!(refused.to_string().contains("run `make rivals`"));
        }
    }
}
