// SPDX-License-Identifier: MIT OR Apache-2.0
//! Values of the configuration file that are one text, read as the command line reads the same option.

use std::{borrow::Cow, fmt, net::SocketAddr, path::PathBuf, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use unspin_agent::{DisclosureChoice, PolicyChoice, steer::vm_choice::VmChoice};

use crate::time::{parse_limit, parse_time};

/// What a text can be.
pub trait Value: Sized {
    /// What it may be, in words.
    const WORDS: &'static str;
    /// Reads it; the error says what is wrong.
    fn read(text: &str) -> Result<Self, String>;
}

/// A value beside the text that it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<T> {
    written: String,
    /// What it says.
    pub value: T,
}

impl<T: Value> Text<T> {
    /// Of a text that is known to be right: a default.
    ///
    /// # Panics
    /// When it is not; a test reads every default.
    pub fn known(written: &str) -> Text<T> {
        Text {
            value: T::read(written).expect("defaults can be read"),
            written: written.to_owned(),
        }
    }
}

impl<T> fmt::Display for Text<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.written)
    }
}

impl<'de, T: Value> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Text<T>, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);
        impl<T: Value> de::Visitor<'_> for Visitor<T> {
            type Value = Text<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(T::WORDS)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<T>, E> {
                match T::read(text) {
                    Ok(value) => Ok(Text {
                        written: text.to_owned(),
                        value,
                    }),
                    Err(says) => Err(E::custom(format!("{says}\nexpected {}", T::WORDS))),
                }
            }
        }
        from.deserialize_str(Visitor(std::marker::PhantomData))
    }
}

impl<T> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        into.serialize_str(&self.written)
    }
}

impl<T: Value> JsonSchema for Text<T> {
    fn schema_name() -> Cow<'static, str> {
        T::WORDS.into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "title": T::WORDS })
    }
}

/// A time above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub Duration);

/// A time that may be 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time(pub Duration);

/// A path that does not depend on where a service happens to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FromRoot(pub PathBuf);

/// The same, or `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketPath(pub PathBuf);

/// The same, or `none`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModulePath(pub PathBuf);

impl Value for Limit {
    const WORDS: &'static str = "a time above 0 with its unit (ns, us, ms, s), as in \"2s\"";

    fn read(text: &str) -> Result<Limit, String> {
        parse_limit(text).map(Limit)
    }
}

impl Value for Time {
    const WORDS: &'static str = "a time with its unit (ns, us, ms, s), as in \"60s\"";

    fn read(text: &str) -> Result<Time, String> {
        parse_time(text).map(Time)
    }
}

impl Value for SocketAddr {
    const WORDS: &'static str = "an address and a port, as in \"127.0.0.1:9752\" or \"[::1]:9752\"";

    fn read(text: &str) -> Result<SocketAddr, String> {
        text.parse()
            .map_err(|_| format!("`{text}` is no address with a port"))
    }
}

/// A path from the root.
fn from_root(text: &str) -> Result<PathBuf, String> {
    match text.starts_with('/') {
        true => Ok(text.into()),
        false => Err(format!("`{text}` does not begin with /")),
    }
}

impl Value for FromRoot {
    const WORDS: &'static str = "a path from /";

    fn read(text: &str) -> Result<FromRoot, String> {
        from_root(text).map(FromRoot)
    }
}

impl Value for SocketPath {
    const WORDS: &'static str = "a path from /, or \"-\" for nowhere";

    fn read(text: &str) -> Result<SocketPath, String> {
        match text {
            "-" => Ok(SocketPath(text.into())),
            text => from_root(text).map(SocketPath),
        }
    }
}

impl Value for ModulePath {
    const WORDS: &'static str = "a path from /, or \"none\"";

    fn read(text: &str) -> Result<ModulePath, String> {
        match text {
            "none" => Ok(ModulePath(text.into())),
            text => from_root(text).map(ModulePath),
        }
    }
}

impl Value for PolicyChoice {
    const WORDS: &'static str =
        "auto, or policies of `unspin policy list` with commas between, as in \"loan,kernel-exit\"";

    fn read(text: &str) -> Result<PolicyChoice, String> {
        let choice: PolicyChoice = text.parse()?;
        match choice.file() {
            Some(file) if !file.is_absolute() => Err(format!(
                "the file of a user policy, `{}`, does not begin with /",
                file.display()
            )),
            _ => Ok(choice),
        }
    }
}

impl Value for VmChoice {
    const WORDS: &'static str = "a VM, as in \"web-3\", or \"web-3=loan-cpl\"";

    fn read(text: &str) -> Result<VmChoice, String> {
        text.parse()
    }
}

impl Value for DisclosureChoice {
    const WORDS: &'static str =
        "nothing, own or all, or one of these for somebody, as in \"all=web-3\"";

    fn read(text: &str) -> Result<DisclosureChoice, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_root() {
        assert!(FromRoot::read("/a").is_ok() && FromRoot::read("a").is_err());
        assert!(SocketPath::read("-").is_ok() && SocketPath::read("none").is_err());
        assert!(ModulePath::read("none").is_ok() && ModulePath::read("-").is_err());
        assert!(PolicyChoice::read("./mine.c").is_err_and(|says| says.contains("begin with /")));
        assert!(PolicyChoice::read("/etc/unspin/mine.c,loan").is_ok());
    }
}
