// SPDX-License-Identifier: MIT OR Apache-2.0
//! Puts together what the kernel unpacks: the static binary, the kernel modules, the inputs and the job.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;
use crate::image::cache::{Machine, ModuleFile};
use crate::image::cpio::{Archive, MAXIMUM_FILE_BYTES};
use crate::job::{JOB_PATH, Job, Module};
use crate::{
    image::{executable, unpacked},
    options::Options,
};

const DIRECTORIES: [&str; 11] = [
    "bin", "dev", "etc", "job", "modules", "out", "proc", "root", "run", "sys", "tmp",
];

/// Bochs 3.0 asks that a posted-interrupt descriptor begins a page (cpu/vmx.cc), where the manual asks for 64 bytes (SDM vol. 3C,
/// 26.2.1.1): with KVM's no vCPU could be entered. What a caller gives comes later, and holds.
const KVM_INTEL: &str = "enable_apicv=0";

/// Builds the initramfs for `command`: the same bytes for the same binary, modules, inputs and job.
///
/// # Errors
/// [`Error::NotStatic`], [`Error::File`], [`Error::Option`] for a command or path that cannot be carried over.
pub fn build(machine: &Machine, options: &Options, command: &[OsString]) -> Result<Vec<u8>, Error> {
    let binary_path = options
        .init_binary
        .clone()
        .map_or_else(running_binary, Ok)?;
    let Some(binary) = executable::loaded_part(read(&binary_path)?) else {
        return Err(Error::NotStatic(binary_path));
    };
    let (modules, module_files) = modules(machine, options)?;
    let job = Job {
        command: command.iter().map(text).collect::<Result<_, _>>()?,
        working_directory: Options::WORKING_DIRECTORY.into(),
        environment: environment(options),
        modules,
        bring_back: options.bring_back.is_some(),
    };
    let mut archive = Archive::new();
    for directory in DIRECTORIES {
        archive.directory(directory);
    }
    archive.character_device("dev/console", 5, 1);
    archive.file("bin/unspin", &binary, true);
    archive.symbolic_link("init", "bin/unspin");
    for (module, contents) in job.modules.iter().zip(&module_files) {
        archive.file(&module.path[1..], contents, false);
    }
    archive.file(
        &JOB_PATH[1..],
        &serde_json::to_vec(&job).expect("a job is plain data"),
        false,
    );
    add_inputs(&mut archive, options)?;
    Ok(archive.finish())
}

fn running_binary() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|source| Error::System {
        doing: "finding the running binary",
        source,
    })
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let file = |source| Error::File {
        doing: "reading",
        path: path.into(),
        source,
    };
    let contents = std::fs::read(path).map_err(file)?;
    if contents.len() > MAXIMUM_FILE_BYTES {
        return Err(file(std::io::ErrorKind::FileTooLarge.into()));
    }
    Ok(contents)
}

fn text(argument: &OsString) -> Result<String, Error> {
    let refused = || {
        Error::Option(format!(
            "the testbed's command can only hold UTF-8 without zero bytes: {argument:?}"
        ))
    };
    argument
        .to_str()
        .filter(|text| !text.contains('\0'))
        .map(str::to_string)
        .ok_or_else(refused)
}

fn modules(machine: &Machine, options: &Options) -> Result<(Vec<Module>, Vec<Vec<u8>>), Error> {
    let known: BTreeSet<_> = machine
        .modules
        .iter()
        .map(|module| module.name.as_str())
        .collect();
    if let Some(name) = options
        .module_parameters
        .keys()
        .find(|name| !known.contains(name.as_str()))
    {
        return Err(Error::Option(format!(
            "the testbed loads no module {name}; it loads {known:?}"
        )));
    }
    let parameters = |module: &ModuleFile| {
        let own = match module.name.as_str() {
            "kvm_intel" => Some(KVM_INTEL),
            _ => None,
        };
        let given = options.module_parameters.get(&module.name);
        let words: Vec<&str> = own.into_iter().chain(given.map(String::as_str)).collect();
        words.join(" ")
    };
    let mut jobs = Vec::new();
    let mut contents = Vec::new();
    for module in &machine.modules {
        jobs.push(Module {
            path: format!("/modules/{}.ko", module.name),
            parameters: parameters(module),
        });
        contents.push(read(&unpacked::module(&module.path)?)?);
    }
    Ok((jobs, contents))
}

fn environment(options: &Options) -> BTreeMap<String, String> {
    let fixed = [
        ("PATH", "/bin"),
        ("HOME", "/root"),
        ("LANG", "C.UTF-8"),
        ("UNSPIN_TESTBED", options.vendor.word()),
    ];
    let mut environment: BTreeMap<_, _> =
        fixed.map(|(key, value)| (key.into(), value.into())).into();
    environment.extend(options.environment.clone());
    environment
}

fn add_inputs(archive: &mut Archive, options: &Options) -> Result<(), Error> {
    let mut taken: BTreeSet<PathBuf> = DIRECTORIES.iter().map(PathBuf::from).collect();
    taken.extend(["init", "job.json", "bin/unspin"].map(PathBuf::from));
    let mut directories: BTreeSet<PathBuf> = DIRECTORIES.iter().map(PathBuf::from).collect();
    let half_mib = u64::from(options.memory_mib / 2);
    let mut bytes = 0;
    for input in &options.inputs {
        let guest = guest_path(&input.guest);
        let in_the_way =
            guest.as_os_str().is_empty() || taken.contains(&guest) || directories.contains(&guest);
        let blocked = guest
            .ancestors()
            .skip(1)
            .any(|parent| taken.contains(parent) && !directories.contains(parent));
        if in_the_way || blocked || guest.as_os_str().as_bytes().contains(&0) {
            return Err(Error::Option(format!(
                "two files would lie at /{} in the testbed",
                guest.display()
            )));
        }
        let mut parents: Vec<_> = guest
            .ancestors()
            .skip(1)
            .filter(|path| !path.as_os_str().is_empty())
            .collect();
        parents.reverse();
        for parent in parents {
            if directories.insert(parent.into()) {
                archive.directory(&text(&parent.into())?);
            }
        }
        let content = read(&input.host)?;
        bytes += content.len() as u64;
        // They lie in its memory, beside all else.
        if bytes > half_mib << 20 {
            return Err(Error::Option(format!(
                "the files to be brought take more than {half_mib} MiB, half of the testbed's memory: raise --memory-mib, or bring fewer"
            )));
        }
        archive.file(&text(&guest.clone().into())?, &content, input.executable);
        taken.insert(guest);
    }
    Ok(())
}

/// The path from the root, without `.` and `..`; as in every file system, `..` above the root stays at the root.
fn guest_path(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in Path::new(Options::WORKING_DIRECTORY)
        .join(path)
        .components()
    {
        match component {
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir => drop(resolved.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    resolved
}

#[cfg(test)]
mod tests;
