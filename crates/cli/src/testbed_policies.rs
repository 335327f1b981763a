// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of a user's own on the way into the testbed, where there is no compiler: what a command names as a C file is
//! compiled outside, and the command names the object instead.

use std::{ffi::OsString, fs, path::Path};

use unspin_testbed::Input;

use crate::{failure::Failure, policy_choice};

/// Where objects lie in the testbed.
const FOLDER: &str = "/policy";

/// A command for the testbed and the objects that it names.
pub struct Prepared {
    /// The command, with objects in the place of C files.
    pub command: Vec<OsString>,
    /// The objects.
    pub inputs: Vec<Input>,
    /// Where they lie on this machine, until it is dropped.
    _folder: Option<tempfile::TempDir>,
}

/// Compiles every file that `--policy` of the command names.
///
/// # Errors
/// When one is not there, does not compile or was built by another version.
pub fn prepare(command: &[OsString]) -> Result<Prepared, Failure> {
    let mut prepared = Prepared {
        command: command.to_vec(),
        inputs: Vec::new(),
        _folder: None,
    };
    if !lists(command).any(|(_, _, list)| list.split(',').any(policy_choice::is_file)) {
        return Ok(prepared);
    }
    let folder = tempfile::tempdir()?;
    let dry_run = command.iter().any(|word| word == "--dry-run");
    for (at, option, list) in lists(command) {
        let words = list
            .split(',')
            .map(|word| match policy_choice::is_file(word) {
                true => bring(word, dry_run, folder.path(), &mut prepared.inputs),
                false => Ok(word.to_owned()),
            });
        let words: Vec<String> = words.collect::<Result<_, Failure>>()?;
        prepared.command[at] = format!("{option}{}", words.join(",")).into();
    }
    prepared._folder = Some(folder);
    Ok(prepared)
}

/// Each list of policies: which word of the command it stands in, after what, and itself.
fn lists(command: &[OsString]) -> impl Iterator<Item = (usize, &'static str, &str)> {
    const OPTION: &str = "--policy";
    const TOGETHER: &str = "--policy=";
    command.iter().enumerate().filter_map(|(at, word)| {
        let word = word.to_str()?;
        match word.strip_prefix(TOGETHER) {
            Some(list) => Some((at, TOGETHER, list)),
            None if at > 0 && command[at - 1] == OPTION => Some((at, "", word)),
            None => None,
        }
    })
}

/// The name in the testbed of a policy's object.
fn bring(
    word: &str,
    dry_run: bool,
    folder: &Path,
    inputs: &mut Vec<Input>,
) -> Result<String, Failure> {
    let own = policy_choice::load(Path::new(word), dry_run)?;
    // By number: two files in different folders may have one name.
    let number = inputs.len();
    let host = folder.join(number.to_string());
    fs::write(&host, own.object())?;
    let guest = format!("{FOLDER}/{number}/{}.bpf.o", own.name());
    inputs.push(Input {
        host,
        guest: guest.clone().into(),
        executable: false,
    });
    Ok(guest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    #[test]
    fn a_policy_goes_in_as_an_object() {
        let folder = tempfile::tempdir().expect("a folder");
        let [path, _] = unspin_steering::write_new_policy(folder.path(), "mine").expect("new");
        let path = path.display();
        for (line, list) in [
            (
                format!("unspin steer --policy {path},loan -- x"),
                "/policy/0/mine.bpf.o,loan",
            ),
            (
                format!("unspin record /out/r -- unspin steer --policy=loan,{path}"),
                "--policy=loan,/policy/0/mine.bpf.o",
            ),
        ] {
            let prepared = prepare(&words(&line)).expect("it compiles");
            assert!(
                prepared.command.contains(&list.into()),
                "{:?}",
                prepared.command
            );
            assert_eq!(prepared.command.len(), words(&line).len());
            let [input] = &prepared.inputs[..] else {
                panic!("{:?}", prepared.inputs)
            };
            assert_eq!(input.guest, Path::new("/policy/0/mine.bpf.o"));
            let object = fs::read(&input.host).expect("it is there");
            assert!(object.starts_with(b"\x7fELF"));
        }
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        for line in [
            "unspin steer --policy loan,none",
            "cat mine.c",
            "unspin vm run s.toml",
        ] {
            let prepared = prepare(&words(line)).expect("nothing to do");
            assert_eq!(
                (prepared.command, prepared.inputs),
                (words(line), Vec::new())
            );
        }
        assert!(prepare(&words("unspin steer --policy /no/mine.c")).is_err());
    }
}
