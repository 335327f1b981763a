// SPDX-License-Identifier: MIT OR Apache-2.0
//! Policies of a user's own on the way into the testbed, where there is no compiler: what a command names as a C file is
//! compiled outside, and the command names the object instead.

use std::{ffi::OsString, fs, path::Path};

use unspin_agent::{UserPolicy, is_policy_file};
use unspin_testbed::Input;

use crate::Error;

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
pub fn prepare(command: &[OsString]) -> Result<Prepared, Error> {
    let mut prepared = Prepared {
        command: command.to_vec(),
        inputs: Vec::new(),
        _folder: None,
    };
    if !lists(command).any(|(_, _, list)| list.split(',').any(is_policy_file)) {
        return Ok(prepared);
    }
    let folder = tempfile::tempdir()?;
    let dry_run = command.iter().any(|word| word == "--dry-run");
    let inputs = &mut prepared.inputs;
    prepared.command = replace_files(command, &mut |word| {
        bring(word, dry_run, folder.path(), inputs)
    })?;
    prepared._folder = Some(folder);
    Ok(prepared)
}

/// The command with what `bring` makes of each file of a list of policies in its place.
fn replace_files(
    command: &[OsString],
    bring: &mut dyn FnMut(&str) -> Result<String, Error>,
) -> Result<Vec<OsString>, Error> {
    let mut replaced = command.to_vec();
    for (at, option, list) in lists(command) {
        let words = list.split(',').map(|word| match is_policy_file(word) {
            true => bring(word),
            false => Ok(word.to_owned()),
        });
        let words: Vec<String> = words.collect::<Result<_, Error>>()?;
        replaced[at] = format!("{option}{}", words.join(",")).into();
    }
    Ok(replaced)
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
) -> Result<String, Error> {
    let own = UserPolicy::load(Path::new(word), dry_run)?;
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

    fn args(line: &str) -> Vec<OsString> {
        line.split(' ').map(Into::into).collect()
    }

    // No test here starts a program: other tests of this binary hold locks on files, which a child would hold, too.
    #[test]
    fn a_policy_goes_in_as_an_object() {
        for (line, other) in [
            (
                "unspin steer --policy ./mine.c,loan -- x",
                "unspin steer --policy /policy/mine.c.o,loan -- x",
            ),
            (
                "unspin record /out/r -- unspin steer --policy=loan,a/mine.c mine.c",
                "unspin record /out/r -- unspin steer --policy=loan,/policy/mine.c.o mine.c",
            ),
        ] {
            let mut bring = |word: &str| {
                let file = Path::new(word).file_name().expect("a file");
                Ok(format!("/policy/{}.o", file.to_string_lossy()))
            };
            let replaced = replace_files(&args(line), &mut bring).expect("nothing fails");
            assert_eq!(replaced, args(other));
        }
    }

    #[test]
    fn other_commands_stay_as_they_are() {
        for line in [
            "unspin steer --policy loan,none",
            "cat mine.c",
            "unspin vm run s.toml",
        ] {
            let prepared = prepare(&args(line)).expect("nothing to do");
            assert_eq!(
                (prepared.command, prepared.inputs),
                (args(line), Vec::new())
            );
        }
        assert!(prepare(&args("unspin steer --policy /no/mine.c")).is_err());
    }
}
