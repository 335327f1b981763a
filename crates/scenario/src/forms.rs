// SPDX-License-Identifier: MIT OR Apache-2.0
//! How single values are written: what reads them, prints them and is their schema. A field names its form with
//! `#[serde(with = "...")]`, which schemars follows, too.
//!
//! A form's `title` in the schema is what its refusals call allowed. Everything is checked inside of a visitor, where the
//! deserialiser knows the value's place.

mod lab;

use std::{fmt, sync::LazyLock};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Unexpected, Visitor},
};
use unspin_abi::LockKind;

pub use self::lab::LabTopology;
pub(crate) use self::lab::{Costs, EACH_VM, Pins, Weights, read_array};
use crate::{
    limits::{LOCKS_MAX, NAME_MAX, SEED_MAX, WORD_MAX},
    quantity::{duration, format_duration},
};

/// The schema of a form stands where it is used, not among the definitions.
macro_rules! inline_schema {
    (for [$($generics:tt)*] $form:ty, $name:literal, $schema:expr) => {
        impl<$($generics)*> JsonSchema for $form {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let schema: fn(&mut SchemaGenerator) -> Schema = $schema;
                schema(generator)
            }
        }
    };
    ($form:ty, $name:literal, $schema:expr) => {
        inline_schema!(for [] $form, $name, $schema);
    };
}
pub(crate) use inline_schema;

// Numbers.

/// What the number of a key is kept in; `None` is an absent key.
pub(crate) trait Number: Copy {
    /// The number; a form has checked that it fits.
    fn of(value: u64) -> Self;
    /// The number again.
    fn get(self) -> Option<u64>;
}

macro_rules! numbers {
    ($($kind:ty)*) => {$(
        impl Number for $kind {
            fn of(value: u64) -> Self {
                Self::try_from(value).unwrap_or(Self::MAX)
            }

            fn get(self) -> Option<u64> {
                Some(self.into())
            }
        }

        impl Number for Option<$kind> {
            fn of(value: u64) -> Self {
                Some(Number::of(value))
            }

            fn get(self) -> Option<u64> {
                self.map(u64::from)
            }
        }
    )*};
}
numbers!(u32 u64);

/// A whole number from `LOW` to `HIGH`.
pub(crate) struct Whole<const LOW: u32, const HIGH: u32>(u32);

/// Any number of times.
pub(crate) type Count = Whole<0, { u32::MAX }>;

impl<const LOW: u32, const HIGH: u32> Whole<LOW, HIGH> {
    pub fn deserialize<'de, D: Deserializer<'de>, N: Number>(from: D) -> Result<N, D::Error> {
        read_whole(from, LOW.into(), HIGH.into()).map(N::of)
    }

    pub fn serialize<N: Number, S: Serializer>(number: &N, to: S) -> Result<S::Ok, S::Error> {
        number.get().serialize(to)
    }
}

impl<'de, const LOW: u32, const HIGH: u32> Deserialize<'de> for Whole<LOW, HIGH> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_whole(from, LOW.into(), HIGH.into()).map(|value| Whole(Number::of(value)))
    }
}

inline_schema!(for [const LOW: u32, const HIGH: u32] Whole<LOW, HIGH>, "Whole", |_| whole_schema(LOW.into(), HIGH.into()));

/// The seed of a scenario.
pub(crate) struct Seed;

impl Seed {
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        read_whole(from, 0, SEED_MAX)
    }

    pub fn serialize<S: Serializer>(seed: &u64, to: S) -> Result<S::Ok, S::Error> {
        seed.serialize(to)
    }
}

inline_schema!(Seed, "Seed", |_| whole_schema(0, SEED_MAX));

fn whole_words(low: u64, high: u64) -> String {
    format!("a whole number from {low} to {high}")
}

fn whole_schema(low: u64, high: u64) -> Schema {
    json_schema!({"type": "integer", "title": whole_words(low, high), "minimum": low, "maximum": high})
}

fn read_whole<'de, D: Deserializer<'de>>(from: D, low: u64, high: u64) -> Result<u64, D::Error> {
    let number = |value| match (low..=high).contains(&value) {
        true => Ok(value),
        false => Err(Refused::Wrong),
    };
    read_value(from, &whole_words(low, high), number, |_| {
        Err(Refused::Wrong)
    })
}

// Text.

/// Why a number or a text is no value of a form.
pub(crate) enum Refused {
    /// It is not what is expected.
    Wrong,
    /// It means this, and something else is expected.
    Means(String, String),
    /// For this reason.
    Because(String),
    /// It is none of these words.
    NoneOf(&'static [&'static str]),
}

/// Text in the grammar of `read`, of which `words` says what it is.
pub(crate) fn read_text<'de, D: Deserializer<'de>, T>(
    from: D,
    words: &str,
    read: impl Fn(&str) -> Result<T, Refused>,
) -> Result<T, D::Error> {
    read_value(from, words, |_| Err(Refused::Wrong), read)
}

/// A number or a text, whatever `number` and `text` make of it. `words` says what it is.
fn read_value<'de, D: Deserializer<'de>, T>(
    from: D,
    words: &str,
    number: impl Fn(u64) -> Result<T, Refused>,
    text: impl Fn(&str) -> Result<T, Refused>,
) -> Result<T, D::Error> {
    struct Value<'w, N, S> {
        words: &'w str,
        number: N,
        text: S,
    }

    impl<T, N, S> Visitor<'_> for Value<'_, N, S>
    where
        N: Fn(u64) -> Result<T, Refused>,
        S: Fn(&str) -> Result<T, Refused>,
    {
        type Value = T;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str(self.words)
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<T, E> {
            (self.number)(number)
                .map_err(|refused| refused.error(Unexpected::Unsigned(number), self.words))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
            (self.text)(text).map_err(|refused| match refused {
                Refused::NoneOf(words) => E::unknown_variant(text, words),
                refused => refused.error(Unexpected::Str(text), self.words),
            })
        }
    }

    from.deserialize_any(Value {
        words,
        number,
        text,
    })
}

impl Refused {
    fn error<E: Error>(self, value: Unexpected<'_>, words: &str) -> E {
        match self {
            Refused::Means(value, expected) => {
                E::invalid_value(Unexpected::Other(&value), &expected.as_str())
            }
            Refused::Because(reason) => E::custom(format_args!("{reason}\nexpected {words}")),
            Refused::Wrong | Refused::NoneOf(_) => E::invalid_value(value, &words),
        }
    }
}

/// A time from `LOW` to `HIGH` nanoseconds.
pub(crate) struct Time<const LOW: u64, const HIGH: u64>;

const TIME_WORDS: &str = "a time such as \"2s\", \"250ms\", \"1.5us\" or \"10ns\"";

impl<const LOW: u64, const HIGH: u64> Time<LOW, HIGH> {
    pub fn deserialize<'de, D: Deserializer<'de>, N: Number>(from: D) -> Result<N, D::Error> {
        read_text(from, TIME_WORDS, |text| {
            let ns = duration(text).map_err(|fault| Refused::Because(fault.0))?;
            match (LOW..=HIGH).contains(&ns) {
                true => Ok(N::of(ns)),
                false => Err(Refused::Means(format_duration(ns), Self::words())),
            }
        })
    }

    pub fn serialize<N: Number, S: Serializer>(ns: &N, to: S) -> Result<S::Ok, S::Error> {
        ns.get().map(format_duration).serialize(to)
    }

    fn words() -> String {
        let [low, high] = [LOW, HIGH].map(format_duration);
        format!("a time from {low} to {high}")
    }
}

inline_schema!(for [const LOW: u64, const HIGH: u64] Time<LOW, HIGH>, "Time", |_| json_schema!({
    "type": "string",
    "title": Self::words(),
    "pattern": r"^[0-9]+(\.[0-9]+)? ?(ns|us|ms|s)$",
}));

/// A scenario's name: 1 to `NAME_MAX` characters that need no quotes in a file's name.
pub(crate) struct ScenarioName;

/// A name that the lab knows, with its numbers. Which there are, the lab says.
pub(crate) struct LabName;

/// Whether a scenario's name may have it.
pub(crate) fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

macro_rules! name_form {
    ($form:ident, $name:literal, $most:ident, $fits:expr, $characters:literal, $class:literal) => {
        impl $form {
            pub fn deserialize<'de, D: Deserializer<'de>>(
                from: D,
            ) -> Result<Option<String>, D::Error> {
                let fits: fn(char) -> bool = $fits;
                read_text(from, &Self::words(), |text| {
                    match (1..=$most).contains(&text.len()) && text.chars().all(fits) {
                        true => Ok(Some(text.to_owned())),
                        false => Err(Refused::Wrong),
                    }
                })
            }

            pub fn serialize<S: Serializer>(
                name: &Option<String>,
                to: S,
            ) -> Result<S::Ok, S::Error> {
                name.serialize(to)
            }

            fn words() -> String {
                format!("text of 1 to {} of the characters {}", $most, $characters)
            }
        }

        inline_schema!($form, $name, |_| json_schema!({
            "type": "string",
            "title": Self::words(),
            "pattern": format!("^[{}]{{1,{}}}$", $class, $most),
        }));
    };
}

name_form!(
    ScenarioName,
    "ScenarioName",
    NAME_MAX,
    is_name_character,
    "A-Z a-z 0-9 . _ -",
    "A-Za-z0-9._-"
);
name_form!(
    LabName,
    "LabName",
    WORD_MAX,
    |c| is_name_character(c) || "+=,/".contains(c),
    "A-Z a-z 0-9 . _ - + = , /",
    "A-Za-z0-9._+=,/-"
);

/// The name of a lock.
pub(crate) struct LockName;

static LOCK_NAMES: LazyLock<Vec<&str>> =
    LazyLock::new(|| LockKind::all().map(LockKind::name).collect());

impl LockName {
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<LockKind, D::Error> {
        let words = format!("one of `{}`", LOCK_NAMES.join("`, `"));
        read_text(from, &words, |text| {
            LockKind::from_name(text).ok_or(Refused::NoneOf(&LOCK_NAMES))
        })
    }

    pub fn serialize<S: Serializer>(lock: &LockKind, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(lock.name())
    }
}

inline_schema!(
    LockName,
    "LockName",
    |_| json_schema!({"type": "string", "enum": *LOCK_NAMES})
);

/// Who shares locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockSharing {
    /// So many locks (1 to 64) for all vCPUs of a VM; each iteration draws one.
    Shared(u32),
    /// One lock for each vCPU: no vCPU ever waits.
    Private,
}

impl Default for LockSharing {
    fn default() -> LockSharing {
        LockSharing::Shared(1)
    }
}

const PRIVATE: &str = "private";

fn sharing_words() -> String {
    format!("{}, or \"{PRIVATE}\"", whole_words(1, LOCKS_MAX.into()))
}

impl<'de> Deserialize<'de> for LockSharing {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = |count| match u32::try_from(count) {
            Ok(count @ 1..=LOCKS_MAX) => Ok(LockSharing::Shared(count)),
            _ => Err(Refused::Wrong),
        };
        read_value(from, &sharing_words(), number, |text| match text {
            PRIVATE => Ok(LockSharing::Private),
            _ => Err(Refused::Wrong),
        })
    }
}

impl Serialize for LockSharing {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            LockSharing::Shared(count) => to.serialize_u32(*count),
            LockSharing::Private => to.serialize_str(PRIVATE),
        }
    }
}

inline_schema!(LockSharing, "LockSharing", |_| json_schema!({
    "title": sharing_words(),
    "anyOf": [{"type": "integer", "minimum": 1, "maximum": LOCKS_MAX}, {"const": PRIVATE}],
}));
