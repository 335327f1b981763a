// SPDX-License-Identifier: MIT OR Apache-2.0
//! How values of `[lab]` are written: a topology, a value for each `[[vm]]`, costs.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, SeqAccess, Visitor},
};

use super::{Refused, Whole, inline_schema, read_text, whole_words};
use crate::limits::{COST_MAX, CPUS_MAX, WEIGHT_MAX, WORD_MAX};

/// Digits only, from `low` to `high`.
fn digits(text: &str, low: u32, high: u32) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse::<u32>().ok()).flatten();
    number.filter(|number| (low..=high).contains(number))
}

/// Sockets, last-level caches of each, cores of each, hardware threads of each; all 1 or more, and their product at most
/// [`crate::limits::CPUS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabTopology {
    /// Sockets.
    pub sockets: u32,
    /// Last-level caches of a socket.
    pub caches: u32,
    /// Cores below a last-level cache.
    pub cores: u32,
    /// Hardware threads of a core.
    pub threads: u32,
}

impl LabTopology {
    /// How many pCPUs.
    pub const fn cpus(&self) -> u32 {
        self.sockets * self.caches * self.cores * self.threads
    }
}

fn topology_words() -> String {
    format!(
        "sockets x caches of each x cores of each x threads of each, as in \"2x4x8x2\", of at most {CPUS_MAX} pCPUs"
    )
}

impl<'de> Deserialize<'de> for LabTopology {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_text(from, &topology_words(), |text| {
            let parts = text.split('x').map(|part| digits(part, 1, CPUS_MAX));
            let parts: Option<Vec<u32>> = parts.collect();
            let product =
                |parts: &[u32]| parts.iter().map(|part| u64::from(*part)).product::<u64>();
            match parts.as_deref() {
                Some(parts @ &[sockets, caches, cores, threads])
                    if product(parts) <= CPUS_MAX.into() =>
                {
                    Ok(LabTopology {
                        sockets,
                        caches,
                        cores,
                        threads,
                    })
                }
                _ => Err(Refused::Wrong),
            }
        })
    }
}

impl Serialize for LabTopology {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let LabTopology {
            sockets,
            caches,
            cores,
            threads,
        } = self;
        to.collect_str(&format_args!("{sockets}x{caches}x{cores}x{threads}"))
    }
}

inline_schema!(LabTopology, "LabTopology", |_| json_schema!({
    "type": "string",
    "title": topology_words(),
    "pattern": "^[0-9]+(x[0-9]+){3}$",
}));

/// The values of an array, which `words` calls so.
pub(crate) fn read_array<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    words: &str,
) -> Result<Vec<T>, D::Error> {
    struct Array<'w, T>(&'w str, std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Array<'_, T> {
        type Value = Vec<T>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str(self.0)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Vec<T>, A::Error> {
            let mut values = Vec::new();
            while let Some(value) = elements.next_element()? {
                values.push(value);
            }
            Ok(values)
        }
    }

    from.deserialize_seq(Array(words, std::marker::PhantomData))
}

/// What an array of `[lab]` has to have.
pub(crate) const EACH_VM: &str = "an array with one value for each [[vm]]";

/// `cpu.weight` for each `[[vm]]`.
pub(crate) struct Weights;

type Weight = Whole<1, WEIGHT_MAX>;

impl Weights {
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u32>, D::Error> {
        let weights: Vec<Weight> = read_array(from, EACH_VM)?;
        Ok(weights.into_iter().map(|Whole(weight)| weight).collect())
    }

    pub fn serialize<S: Serializer>(weights: &[u32], to: S) -> Result<S::Ok, S::Error> {
        weights.serialize(to)
    }
}

inline_schema!(Weights, "Weights", |generator| json_schema!({
    "type": "array",
    "title": format!("{EACH_VM}: {}", whole_words(1, WEIGHT_MAX.into())),
    "items": generator.subschema_for::<Weight>(),
}));

/// pCPUs for each `[[vm]]`.
pub(crate) struct Pins;

/// Some pCPUs, ascending: "0-3,6".
struct CpuList(Vec<u32>);

fn cpu_list_words() -> String {
    format!("pCPUs below {CPUS_MAX}, ascending, as in \"0-3,6\"")
}

impl Pins {
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<u32>>, D::Error> {
        let pins: Vec<CpuList> = read_array(from, EACH_VM)?;
        Ok(pins.into_iter().map(|CpuList(cpus)| cpus).collect())
    }

    pub fn serialize<S: Serializer>(pins: &[Vec<u32>], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(pins.iter().map(|cpus| print_cpu_list(cpus)))
    }
}

inline_schema!(Pins, "Pins", |_| json_schema!({
    "type": "array",
    "title": format!("{EACH_VM}: {}", cpu_list_words()),
    "items": {"type": "string", "pattern": "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"},
}));

impl<'de> Deserialize<'de> for CpuList {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_text(from, &cpu_list_words(), |text| {
            let mut cpus: Vec<u32> = Vec::new();
            for part in text.split(',') {
                let (low, high) = part.split_once('-').unwrap_or((part, part));
                match [low, high].map(|text| digits(text, 0, CPUS_MAX - 1)) {
                    [Some(low), Some(high)]
                        if low <= high && cpus.last().is_none_or(|last| *last < low) =>
                    {
                        cpus.extend(low..=high);
                    }
                    _ => return Err(Refused::Wrong),
                }
            }
            Ok(CpuList(cpus))
        })
    }
}

fn print_cpu_list(cpus: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = cpus;
    while let Some(first) = rest.first() {
        let run = rest
            .iter()
            .zip(*first..)
            .take_while(|(cpu, next)| **cpu == *next)
            .count();
        let comma = if text.is_empty() { "" } else { "," };
        // Writing to a String cannot fail.
        let _ = match run {
            1 => write!(text, "{comma}{first}"),
            _ => write!(text, "{comma}{first}-{}", rest[run - 1]),
        };
        rest = &rest[run..];
    }
    text
}

/// `{ switch_ns = 1200 }`: names as they come, in order of the alphabet. Which there are, the lab says.
pub(crate) struct Costs;

type Cost = Whole<0, COST_MAX>;

/// The name of a cost.
struct CostName(String);

const COSTS_WORDS: &str = "a table of names and numbers, as in { switch_ns = 1200 }";

impl Costs {
    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<String, u32>, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = BTreeMap<String, u32>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(COSTS_WORDS)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Self::Value, A::Error> {
                let mut costs = BTreeMap::new();
                while let Some((CostName(name), Whole(cost))) =
                    table.next_entry::<CostName, Cost>()?
                {
                    costs.insert(name, cost);
                }
                Ok(costs)
            }
        }

        from.deserialize_map(Table)
    }

    pub fn serialize<S: Serializer>(
        costs: &BTreeMap<String, u32>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        costs.serialize(to)
    }
}

inline_schema!(Costs, "Costs", |generator| json_schema!({
    "type": "object",
    "title": COSTS_WORDS,
    "propertyNames": {"pattern": format!("^[a-z0-9_]{{1,{WORD_MAX}}}$")},
    "additionalProperties": generator.subschema_for::<Cost>(),
}));

impl<'de> Deserialize<'de> for CostName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_text(from, "a name such as `switch_ns`", |text| {
            let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            match (1..=WORD_MAX).contains(&text.len()) && text.chars().all(fits) {
                true => Ok(CostName(text.to_owned())),
                false => Err(Refused::Because(format!(
                    "there is no cost `{}`",
                    text.escape_debug()
                ))),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_printed_in_runs() {
        for (cpus, text) in [
            (vec![0, 1, 2, 3, 6], "0-3,6"),
            (vec![5], "5"),
            (vec![0, 2, 3], "0,2-3"),
        ] {
            assert_eq!(print_cpu_list(&cpus), text);
        }
    }
}
