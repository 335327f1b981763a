// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a comparison says: one row for each policy, the same in every world, with what only one world has beside it. Written
//! out, each estimate is up to four keys: the figure, `_low`, `_high`, and a verdict.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use unspin_report::{Comparison, GapClosed, Harm};
use unspin_scenario::{LockSharing, Scenario};

use crate::{
    estimate::{Estimate, ratio},
    sample::{Sample, Samples},
    steps::Column,
};

/// A cell under a policy, compared. Rates are of all VMs together. `W`: what its world says beside it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct Row<W> {
    /// VMs x vCPUs, as in `2x4`.
    pub shape: String,
    /// vCPUs per CPU; none of a cell that was not measured.
    pub overcommit: Option<f64>,
    /// The policy that steered, or the rival that scheduled; none when nobody did.
    pub policy: Option<String>,
    /// Stock beside the ideal.
    #[serde(
        flatten,
        serialize_with = "to_ideal::write",
        deserialize_with = "to_ideal::read"
    )]
    #[schemars(with = "to_ideal::Keys")]
    pub to_ideal: Option<Estimate>,
    /// Stock beside stock: the null.
    #[serde(
        flatten,
        serialize_with = "null::write",
        deserialize_with = "null::read"
    )]
    #[schemars(with = "null::Keys")]
    pub null: Option<Estimate>,
    /// Our scheduler without a policy beside stock.
    #[serde(
        flatten,
        serialize_with = "refuse_yields::write",
        deserialize_with = "refuse_yields::read"
    )]
    #[schemars(with = "refuse_yields::Keys")]
    pub refuse_yields: Option<Estimate>,
    /// The policy beside stock; none without a policy.
    #[serde(
        flatten,
        serialize_with = "to_stock::write",
        deserialize_with = "to_stock::read"
    )]
    #[schemars(with = "to_stock::Keys")]
    pub to_stock: Option<Estimate>,
    /// What the policy closes of the gap between stock and ideal.
    #[serde(
        flatten,
        serialize_with = "gap_closed::write",
        deserialize_with = "gap_closed::read"
    )]
    #[schemars(with = "gap_closed::Keys")]
    pub gap_closed: Option<Estimate>,
    /// `no harm` (the lower bound of policy / stock is above 0.90), `harm` or `not resolved`.
    pub harm: Option<String>,
    /// Pairs measured.
    pub pairs: u64,
    /// Pairs in which policy or stock did nothing: left out of the ratio to stock. None where there is no such ratio.
    pub unusable_pairs: Option<u64>,
    /// What only its world has.
    #[serde(flatten)]
    pub world: W,
}

/// The keys of an estimate: how it is written and read. `no_effect` is the value that shows none; `verdict` writes it, where
/// it has a key.
macro_rules! keys {
    (
        $(#[$doc:meta])* $name:ident, $no_effect:literal,
        [$value:tt $low:tt $high:tt], $figure:literal
        $(, $verdict:tt $shows:literal $say:expr)?
    ) => {
        $(#[$doc])*
        pub mod $name {
            use super::*;
            use serde::{Deserializer, Serializer};

            /// As they stand in a row.
            #[derive(Default, Deserialize, Serialize, JsonSchema)]
            pub struct Keys {
                #[doc = $figure]
                #[serde(rename = $value)]
                value: Option<f64>,
                /// Its 95 % interval; none for a single pair.
                #[serde(rename = $low)]
                low: Option<f64>,
                /// Its 95 % interval.
                #[serde(rename = $high)]
                high: Option<f64>,
                $(
                    #[doc = $shows]
                    #[serde(rename = $verdict)]
                    verdict: Option<String>,
                )?
            }

            pub fn write<S: Serializer>(of: &Option<Estimate>, out: S) -> Result<S::Ok, S::Error> {
                let keys = of.map_or(Keys::default(), |of| Keys {
                    value: of.known(),
                    low: of.low,
                    high: of.high,
                    $(verdict: ($say)(&of),)?
                });
                keys.serialize(out)
            }

            pub fn read<'a, D: Deserializer<'a>>(from: D) -> Result<Option<Estimate>, D::Error> {
                let keys = Keys::deserialize(from)?;
                let bounds = keys.low.zip(keys.high);
                let read = keys.value.map(|value| Estimate::new(value, bounds, $no_effect));
                $(
                    let _: &str = $verdict;
                    let read = match keys.verdict.and_then(|text| text.parse().ok()) {
                        None => read,
                        Some(verdict) => Some(Estimate {
                            verdict,
                            ..read.unwrap_or(Estimate::NOTHING_DONE)
                        }),
                    };
                )?
                Ok(read)
            }
        }
    };
}

/// The verdict in words.
fn say(of: &Estimate) -> Option<String> {
    Some(of.verdict.to_string())
}

/// `includes 1` or `excludes 1`; none without an interval.
pub(crate) fn say_null(of: &Estimate) -> Option<String> {
    let includes = of.includes(1.0)?;
    Some(if includes { "includes 1" } else { "excludes 1" }.to_owned())
}

keys!(
    /// [`Row::to_ideal`]
    to_ideal, 1.0,
    ["stock_ratio_to_ideal" "stock_ratio_to_ideal_low" "stock_ratio_to_ideal_high"],
    "Geometric mean of stock / ideal, pair by pair.",
    "stock_verdict" "`lower`, `higher` or `not resolved`." say
);
keys!(
    /// [`Row::null`]
    null, 1.0,
    ["stock_ratio_to_stock" "stock_ratio_to_stock_low" "stock_ratio_to_stock_high"],
    "Stock against stock, both of the same pair: the null.",
    "null_verdict" "`includes 1` or `excludes 1`; in the long run one of 20 excludes it by chance." say_null
);
keys!(
    /// [`Row::refuse_yields`]
    refuse_yields, 1.0,
    ["refuse_yields_ratio_to_stock" "refuse_yields_ratio_to_stock_low" "refuse_yields_ratio_to_stock_high"],
    "Geometric mean of refuse-yields / stock, pair by pair; none where our scheduler is not wanted or work stood still."
);
keys!(
    /// [`Row::to_stock`]
    to_stock, 1.0,
    ["throughput_ratio_to_stock" "throughput_ratio_to_stock_low" "throughput_ratio_to_stock_high"],
    "Geometric mean of policy / stock, pair by pair; none when nothing was done under the policy.",
    "verdict" "`lower`, `higher` or `not resolved`." say
);
keys!(
    /// [`Row::gap_closed`]
    gap_closed, 0.0,
    ["gap_closed" "gap_closed_low" "gap_closed_high"],
    "(policy - stock) / (ideal - stock), of the means; none where ideal is not 2 % above stock."
);

/// VMs x vCPUs of all groups.
pub fn shape(scenario: &Scenario) -> String {
    let shapes = scenario.vms.iter();
    let shapes: Vec<String> = shapes
        .map(|vm| format!("{}x{}", vm.count, vm.vcpus))
        .collect();
    shapes.join("+")
}

/// The first group's lock.
pub fn lock(scenario: &Scenario) -> String {
    match (scenario.vms[0].locks, scenario.vms[0].lock.name()) {
        (LockSharing::Private, name) => format!("{name}, private"),
        (LockSharing::Shared(_), name) => name.to_owned(),
    }
}

/// A row for each column that is judged, with its name, or one without any; `world` says of that column (`None`: of none) what
/// only its world has. `None` when no pair of stock and ideal, or of stock and stock, can be compared.
pub fn rows<S: Sample, W>(
    shape: &str,
    overcommit: f64,
    samples: &Samples<S>,
    judged: &[(Column, String)],
    world: impl Fn(Option<Column>) -> W,
) -> Option<Vec<Row<W>>> {
    let rates = |column| samples.rates(column);
    let stock = rates(Column::Stock);
    let to_ideal = ratio(&stock, &rates(Column::Ideal))?;
    let null = ratio(&rates(Column::StockAgain), &stock)?;
    let refused = ratio(&rates(Column::RefuseYields), &stock)
        .filter(|_| !samples.stood_still.contains(&Column::RefuseYields));
    let row = |of: Option<&(Column, String)>| Row {
        shape: shape.to_owned(),
        overcommit: Some(overcommit),
        policy: of.map(|(_, name)| name.clone()),
        to_ideal: Some(Estimate::of_ratio(&to_ideal)),
        null: Some(Estimate::of_ratio(&null)),
        refuse_yields: refused.as_ref().map(Estimate::of_ratio),
        to_stock: None,
        gap_closed: None,
        harm: None,
        pairs: stock.len() as u64,
        unusable_pairs: Some(0),
        world: world(of.map(|(column, _)| *column)),
    };
    if judged.is_empty() {
        return Some(vec![row(None)]);
    }
    let each = judged.iter();
    Some(
        each.map(|of| row(Some(of)).steered(samples, of.0))
            .collect(),
    )
}

impl<W> Row<W> {
    /// With what that column did.
    fn steered<S: Sample>(self, samples: &Samples<S>, column: Column) -> Row<W> {
        let rates = samples.rates(column);
        // A mean of what did end would flatter it.
        let stood_still = samples.stood_still.contains(&column);
        let stock = samples.rates(Column::Stock);
        let to_stock = ratio(&rates, &stock).filter(|_| !stood_still);
        let gap =
            GapClosed::of(&samples.rates(Column::Ideal), &stock, &rates).filter(|_| !stood_still);
        let unusable = to_stock.map_or(rates.len(), |ratio| ratio.unusable_pairs);
        Row {
            to_stock: Some(
                to_stock
                    .as_ref()
                    .map_or(Estimate::NOTHING_DONE, Estimate::of_ratio),
            ),
            gap_closed: gap.as_ref().map(Estimate::of_gap),
            harm: Some(harm(to_stock.as_ref()).name().to_owned()),
            unusable_pairs: Some(unusable as u64),
            ..self
        }
    }
}

/// Whether a policy does harm in a cell; one under which nothing is ever done does.
fn harm(to_stock: Option<&Comparison>) -> Harm {
    to_stock.map_or(Harm::Harm, |ratio| Harm::of(ratio, Harm::CELL))
}
