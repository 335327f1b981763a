// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work: an amount in loops or CPU time, always the same or drawn from a distribution, and how it is written.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{
        DeserializeSeed, Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};

use crate::{
    forms::{Refused, inline_schema, read_text},
    limits::{WORK_MAX_LOOPS, WORK_MAX_NS},
    quantity::{WorkUnit, format_work, work},
};

/// A distribution of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// What the numbers count.
    pub unit: WorkUnit,
    /// Its shape.
    pub shape: Shape,
}

/// The shape of a distribution, in its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Always this.
    Constant(u64),
    /// Equally likely between both, included; `low <= high`.
    Uniform {
        /// Least value.
        low: u64,
        /// Largest value.
        high: u64,
    },
    /// Exponential of that mean; above 0.
    Exponential {
        /// Its mean.
        mean: u64,
    },
}

const WORDS: &str = "work such as \"300 loops\" or \"6us\" (units: loops, ns, us, ms, s), \
                     { exponential = \"300 loops\" } or { uniform = [\"100 loops\", \"500 loops\"] }";
const BOUNDS_WORDS: &str = "two bounds, as in [\"100 loops\", \"500 loops\"]";

/// A distribution that is drawn from: one of the two.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline, extend("minProperties" = 1, "maxProperties" = 1))]
struct Drawn {
    /// Exponential of that mean, above 0.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "mean")]
    #[schemars(with = "Amount")]
    exponential: Option<Amount>,
    /// Equally likely between both, included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Bounds")]
    uniform: Option<Bounds>,
}

/// One amount of work, within its limit.
#[derive(Clone, Copy)]
struct Amount {
    unit: WorkUnit,
    value: u64,
}

/// Two amounts in one unit, the lower one first.
#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Bounds([Amount; 2]);

impl Distribution {
    /// Always `value`.
    pub fn constant(unit: WorkUnit, value: u64) -> Self {
        Distribution {
            unit,
            shape: Shape::Constant(value),
        }
    }
}

impl Default for Distribution {
    /// No work.
    fn default() -> Self {
        Distribution::constant(WorkUnit::Loops, 0)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Work;

        impl<'de> Visitor<'de> for Work {
            type Value = Distribution;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(WORDS)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Distribution, E> {
                let amount = Amount::deserialize(text.into_deserializer())?;
                Ok(Distribution::constant(amount.unit, amount.value))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Distribution, A::Error> {
                let drawn = Drawn::deserialize(MapAccessDeserializer::new(table))?;
                match (drawn.exponential, drawn.uniform) {
                    (Some(mean), None) => Ok(Distribution {
                        unit: mean.unit,
                        shape: Shape::Exponential { mean: mean.value },
                    }),
                    (None, Some(Bounds([low, high]))) => Ok(Distribution {
                        unit: low.unit,
                        shape: Shape::Uniform {
                            low: low.value,
                            high: high.value,
                        },
                    }),
                    _ => Err(A::Error::custom(format_args!(
                        "a distribution needs one shape\nexpected {WORDS}"
                    ))),
                }
            }
        }

        from.deserialize_any(Work)
    }
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let amount = |value| Amount {
            unit: self.unit,
            value,
        };
        match self.shape {
            Shape::Constant(value) => amount(value).serialize(to),
            Shape::Uniform { low, high } => Drawn {
                uniform: Some(Bounds([amount(low), amount(high)])),
                ..Drawn::default()
            }
            .serialize(to),
            Shape::Exponential { mean } => Drawn {
                exponential: Some(amount(mean)),
                ..Drawn::default()
            }
            .serialize(to),
        }
    }
}

inline_schema!(Distribution, "Distribution", |generator| json_schema!({
    "title": WORDS,
    "anyOf": [generator.subschema_for::<Amount>(), generator.subschema_for::<Drawn>()],
}));

/// The amount that `text` says.
fn amount(text: &str) -> Result<Amount, Refused> {
    let (unit, value) = work(text).map_err(|fault| Refused::Because(fault.0))?;
    let most = match unit {
        WorkUnit::Loops => WORK_MAX_LOOPS,
        WorkUnit::Nanoseconds => WORK_MAX_NS,
    };
    if value > most {
        let expected = format!("work of at most {}", format_work(unit, most));
        return Err(Refused::Means(format_work(unit, value), expected));
    }
    Ok(Amount { unit, value })
}

/// The mean of an exponential distribution.
fn mean<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Amount>, D::Error> {
    read_text(from, WORDS, |text| {
        let mean = amount(text)?;
        if mean.value == 0 {
            let expected = "a mean above 0, or the constant \"0 loops\"".to_owned();
            return Err(Refused::Means(format_work(mean.unit, 0), expected));
        }
        Ok(Some(mean))
    })
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_text(from, WORDS, amount)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&format_work(self.unit, self.value))
    }
}

inline_schema!(Amount, "Amount", |_| json_schema!({
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)? ?(loops?|ns|us|ms|s)$",
}));

/// The upper bound of a uniform distribution, whose lower one is known.
struct NotBelow(Amount);

impl<'de> DeserializeSeed<'de> for NotBelow {
    type Value = Amount;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Amount, D::Error> {
        let NotBelow(low) = self;
        read_text(from, WORDS, |text| {
            let high = amount(text)?;
            let means = |expected| Refused::Means(format_work(high.unit, high.value), expected);
            if high.unit != low.unit {
                let low = format_work(low.unit, low.value);
                return Err(means(format!(
                    "a bound in the unit of the other one, {low}"
                )));
            }
            if high.value < low.value {
                let low = format_work(low.unit, low.value);
                return Err(means(format!(
                    "an upper bound not below the lower one, {low}"
                )));
            }
            Ok(high)
        })
    }
}

impl<'de> Deserialize<'de> for Bounds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Two;

        impl<'de> Visitor<'de> for Two {
            type Value = Bounds;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(BOUNDS_WORDS)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut bounds: A) -> Result<Bounds, A::Error> {
                let Some(low) = bounds.next_element()? else {
                    return Err(A::Error::invalid_length(0, &self));
                };
                let Some(high) = bounds.next_element_seed(NotBelow(low))? else {
                    return Err(A::Error::invalid_length(1, &self));
                };
                match bounds.next_element::<IgnoredAny>()? {
                    None => Ok(Bounds([low, high])),
                    Some(_) => Err(A::Error::invalid_length(3, &self)),
                }
            }
        }

        from.deserialize_seq(Two)
    }
}
