// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `lab.host_noise` says: what a host does besides running vCPUs (OS noise). A word names a profile, whose figures the lab
//! has; a table gives them.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer},
};

use crate::{
    forms::{Time, inline_schema},
    limits::{NOISE_EVERY_MAX_NS, NOISE_EVERY_MIN_NS},
    quantity::WorkUnit,
    work::Distribution,
};

/// What the host does besides running vCPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostNoise {
    /// Nothing but ticks: all pCPUs begin, tick and end slices at the same instants.
    Off,
    /// Housekeeping, as of a host that runs vCPUs and little else.
    #[default]
    Idle,
    /// As of a host that also compiles, writes files and uses its network.
    Busy,
    /// These rates.
    Rates(Box<NoiseRates>),
}

/// How often and how long other things than vCPUs run. What is absent does not happen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NoiseRates {
    /// Interrupts of devices and softirqs of each pCPU, besides its tick: they delay whatever runs there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupts: Option<NoiseSource>,
    /// Runs of the kernel thread that each pCPU has, such as its kworker: the scheduler chooses when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_threads: Option<NoiseSource>,
    /// Runs of threads that may run on any pCPU, such as `rcu_preempt` or a VMM's; there are as many of these as pCPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unbound_threads: Option<NoiseSource>,
    /// Time from the start of one vCPU thread to that of the next, in random order; 0: all start at once, VM after VM.
    #[serde(with = "NoiseTime")]
    pub vcpu_start: Distribution,
}

impl Default for NoiseRates {
    /// Nothing happens, and all start at once.
    fn default() -> NoiseRates {
        NoiseRates {
            interrupts: None,
            bound_threads: None,
            unbound_threads: None,
            vcpu_start: Distribution::constant(WorkUnit::Nanoseconds, 0),
        }
    }
}

/// Something that happens on each pCPU, or to each thread, at random: the times between are exponential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoiseSource {
    /// The mean time from one to the next.
    #[serde(
        rename = "every",
        with = "Time::<NOISE_EVERY_MIN_NS, NOISE_EVERY_MAX_NS>"
    )]
    pub every_ns: u64,
    /// How much CPU time it takes.
    #[serde(with = "NoiseTime")]
    pub lasts: Distribution,
}

const OFF: &str = "off";
const IDLE: &str = "idle";
const BUSY: &str = "busy";
const WORDS: &str = "`off`, `idle`, `busy`, or a table with interrupts, bound_threads, unbound_threads or vcpu_start";

impl<'de> Deserialize<'de> for HostNoise {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Noise;

        impl<'de> Visitor<'de> for Noise {
            type Value = HostNoise;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(WORDS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<HostNoise, E> {
                match text {
                    OFF => Ok(HostNoise::Off),
                    IDLE => Ok(HostNoise::Idle),
                    BUSY => Ok(HostNoise::Busy),
                    _ => Err(E::unknown_variant(text, &[OFF, IDLE, BUSY])),
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<HostNoise, A::Error> {
                let rates = NoiseRates::deserialize(MapAccessDeserializer::new(table))?;
                Ok(HostNoise::Rates(Box::new(rates)))
            }
        }

        from.deserialize_any(Noise)
    }
}

impl Serialize for HostNoise {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            HostNoise::Off => to.serialize_str(OFF),
            HostNoise::Idle => to.serialize_str(IDLE),
            HostNoise::Busy => to.serialize_str(BUSY),
            HostNoise::Rates(rates) => rates.serialize(to),
        }
    }
}

inline_schema!(HostNoise, "HostNoise", |generator| json_schema!({
    "title": WORDS,
    "anyOf": [{"enum": [OFF, IDLE, BUSY]}, generator.subschema_for::<NoiseRates>()],
}));

/// A distribution of times: what the host does is no loop of a guest.
struct NoiseTime;

const TIME_WORDS: &str =
    "a time such as \"5us\", { exponential = \"5us\" } or { uniform = [\"1us\", \"9us\"] }";

impl NoiseTime {
    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Distribution, D::Error> {
        let given = Distribution::deserialize(from)?;
        match given.unit {
            WorkUnit::Nanoseconds => Ok(given),
            WorkUnit::Loops => Err(D::Error::invalid_value(
                Unexpected::Other("work in loops"),
                &TIME_WORDS,
            )),
        }
    }

    fn serialize<S: Serializer>(given: &Distribution, to: S) -> Result<S::Ok, S::Error> {
        given.serialize(to)
    }
}

inline_schema!(NoiseTime, "NoiseTime", |generator| {
    let mut schema = generator.subschema_for::<Distribution>();
    schema.insert("title".to_owned(), TIME_WORDS.into());
    schema
});
