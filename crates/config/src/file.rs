// SPDX-License-Identifier: MIT OR Apache-2.0
//! The configuration file: where it is, how it is read.

use std::{
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use serde_json::Value;
use unspin_strict_toml::{Error, Vocabulary};

use crate::{model::Config, rules, schema};

/// Where it is unless `--config` says otherwise (Filesystem Hierarchy Standard 3.0, 3.7: configuration of this host).
pub const PATH: &str = "/etc/unspin/unspin.toml";
/// No configuration is that long: 1 MiB, as of scenarios.
const MAX_BYTES: u64 = 1 << 20;

const VOCABULARY: Vocabulary = Vocabulary {
    words_of: schema::words_of,
    instead_of: |_, _| None,
};

/// What is in force, and where it comes from.
pub struct Configuration {
    /// All values, those that the file leaves out too.
    pub config: Config,
    /// The file; `None`: there is none at the usual place.
    pub file: Option<PathBuf>,
    /// Keys that the file has, as `serve.listen`, and the line of each.
    pub lines: Vec<(String, usize)>,
}

impl Configuration {
    /// That of this file; of the usual one where none is named, which need not be there.
    ///
    /// # Errors
    /// A file that cannot be read, or anything in it that is not known or cannot be.
    pub fn load(named: Option<&Path>) -> Result<Configuration, Error> {
        let path = named.unwrap_or(Path::new(PATH));
        if named.is_none() && is_missing(path) {
            return Ok(Configuration {
                config: Config::default(),
                file: None,
                lines: Vec::new(),
            });
        }
        let name = path.display().to_string();
        let text = unspin_strict_toml::read_text(path, MAX_BYTES).map_err(|reason| {
            Error::whole_file(
                &name,
                format!("the configuration cannot be read: {reason}"),
                "`unspin config default` prints one in which nothing is set",
            )
        })?;
        Ok(Configuration {
            config: parse(&text, &name)?,
            file: Some(path.to_owned()),
            lines: unspin_strict_toml::lines(&text),
        })
    }

    /// Every key with its value as the file would have it, and where that comes from.
    pub fn values(&self) -> Vec<(String, String, String)> {
        let all = serde_json::to_value(&self.config).unwrap_or_default();
        let tables = all.as_object().into_iter().flatten();
        let keys = tables.flat_map(|(table, keys)| {
            let keys = keys.as_object().into_iter().flatten();
            keys.map(move |(key, value)| (format!("{table}.{key}"), value))
        });
        keys.map(|(key, value)| {
            let from = self.origin(&key);
            let value = match value {
                Value::Null => "(not set)".to_owned(),
                value => value.to_string(),
            };
            (key, value, from)
        })
        .collect()
    }

    fn origin(&self, key: &str) -> String {
        let line = self.lines.iter().find(|(named, _)| named == key);
        match (line, &self.file) {
            (Some((_, line)), Some(file)) => format!("{}:{line}", file.display()),
            _ => "default".to_owned(),
        }
    }
}

fn is_missing(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// The configuration in `text`.
///
/// # Errors
/// As [`Configuration::load`].
fn parse(text: &str, name: &str) -> Result<Config, Error> {
    unspin_strict_toml::read(text, name, VOCABULARY, rules::file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match parse(text, "u.toml") {
            Ok(config) => panic!("{text} is {config:?}"),
            Err(error) => error.plain(),
        }
    }

    #[test]
    fn an_empty_file_sets_nothing() {
        assert_eq!(parse("", "u.toml").expect("valid"), Config::default());
        assert_eq!(
            parse("[serve]\n[steer]\n", "u.toml").expect("valid"),
            Config::default()
        );
    }

    #[test]
    fn what_is_set_is_in_force() {
        let text = "[serve]\ninterval = '5s'\nvms_max = 7\n[steer]\nvm = ['a', 'b=loan']\ndry_run = true\npolicy = 'loan'\n";
        let config = parse(text, "u.toml").expect("valid");
        assert_eq!(config.serve.interval.value.0.as_secs(), 5);
        assert_eq!(config.serve.vms_max, 7);
        assert_eq!(config.steer.vm.len(), 2);
        assert!(config.steer.dry_run && !config.steer.only_vms);
        assert_eq!(config.serve.listen, Config::default().serve.listen);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_place() {
        for (text, says) in [
            (
                "[server]\n",
                "u.toml:1:2: unknown key `server`; did you mean `serve`?",
            ),
            (
                "[serve]\nlisen = ''\n",
                "u.toml:2:1: unknown key `lisen` in [serve]; did you mean `listen`?",
            ),
            (
                "listen = ''\n",
                "u.toml:1:1: unknown key `listen`; there are `serve`, `steer`",
            ),
            (
                "[serve]\nlisten = 9752\n",
                "u.toml:2:10: `listen` cannot be 9752; expected an address",
            ),
            (
                "[serve]\nlisten = 'host:9752'\n",
                "u.toml:2:10: `listen`: `host:9752` is no address",
            ),
            (
                "[serve]\ninterval = '2'\n",
                "u.toml:2:12: `interval`: `2` has no unit; expected a time",
            ),
            (
                "[serve]\ninterval = '0s'\n",
                "u.toml:2:12: `interval`: a limit of 0",
            ),
            (
                "[serve]\nvms_max = -1\n",
                "u.toml:2:11: `vms_max` cannot be -1",
            ),
            (
                "[steer]\nonly_vms = 'yes'\n",
                "u.toml:2:12: `only_vms` cannot be the text \"yes\"; expected true or false",
            ),
            (
                "[steer]\npolicy = 'lone'\n",
                "u.toml:2:10: `policy`: there is no policy `lone`",
            ),
            ("[steer]\nvm = 'a'\n", "u.toml:2:6: `vm` cannot be the text"),
            (
                "[steer]\nvm = ['a',\n '=']\n",
                "u.toml:3:2: `vm`: a VM's name",
            ),
            (
                "[steer]\ncgroup = ['a']\n",
                "u.toml:2:11: `cgroup`: `a` does not begin with /",
            ),
            (
                "[steer]\ncgroup = ['/a']\n",
                "u.toml:2:10: the policy auto chooses for all VMs",
            ),
            (
                "[steer]\nonly_vms = true\ndry_run = true\npolicy = 'loan'\n",
                "u.toml:2:12: `only_vms` and `dry_run`",
            ),
            (
                "steer = 1\n",
                "u.toml:1:9: `steer` cannot be 1; expected a table: [steer]",
            ),
            ("[serve\n", "u.toml:1:"),
        ] {
            let said = refused(text);
            assert!(said.starts_with(says), "{text}: {said}");
        }
    }

    #[test]
    fn values_say_where_they_come_from() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("u.toml");
        fs::write(&path, "# mine\n[serve]\nlisten = '127.0.0.1:1'\n").expect("written");
        let configuration = Configuration::load(Some(&path)).expect("valid");
        let values = configuration.values();
        let of = |key: &str| {
            let found = values.iter().find(|(named, ..)| named == key);
            let (_, value, from) = found.expect("a key");
            (value.as_str(), from.clone())
        };
        let place = format!("{}:3", path.display());
        assert_eq!(of("serve.listen"), ("\"127.0.0.1:1\"", place));
        assert_eq!(of("steer.policy"), ("\"auto\"", "default".to_owned()));
        assert_eq!(of("steer.sections").0, "(not set)");
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let missing = Configuration::load(Some(Path::new("/nonexistent/u.toml")));
        let says = missing.err().expect("refused").plain();
        assert!(says.contains("the configuration cannot be read"), "{says}");
        assert!(Configuration::load(Some(Path::new("/dev/null"))).is_ok());
    }
}
