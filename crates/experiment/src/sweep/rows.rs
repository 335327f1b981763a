// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a sweep keeps of a cell: one row for each VM, whole numbers and words only, so that the same cell gives the same
//! bytes wherever it runs.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use unspin_lab::{Counts, Lab, Outcome};

use super::grid::{Grid, GridCell};
use crate::Error;

/// A number of a VM in the whole run: the sum over its vCPUs.
type Sum = fn(&Counts) -> u64;

/// Sums over the whole run, by column.
const SUMS: [(&str, Sum); 30] = [
    ("acquisitions", |counts| counts.statistics.acquisitions),
    ("lock_wait_ns", |counts| counts.statistics.lock_wait_ns),
    ("hold_ns", |counts| counts.statistics.hold_ns),
    ("spin_ns", |counts| counts.statistics.spin_ns),
    ("pauses", |counts| counts.statistics.pauses),
    ("pause_exits", |counts| counts.statistics.pause_exits),
    ("yields", |counts| counts.statistics.yields),
    ("yields_refused", |counts| counts.statistics.yields_refused),
    ("preemptions", |counts| counts.statistics.preemptions),
    ("preemptions_holding", |counts| {
        counts.statistics.preemptions_holding
    }),
    ("preemptions_waiting", |counts| {
        counts.statistics.preemptions_waiting
    }),
    ("shootdowns", |counts| counts.statistics.shootdowns),
    ("wakeups", |counts| counts.statistics.wakeups),
    ("halts", |counts| counts.statistics.halts),
    ("ticks", |counts| counts.statistics.ticks),
    ("loans", |counts| counts.statistics.loans),
    ("grants", |counts| counts.statistics.grants),
    ("given_back", |counts| counts.statistics.given_back),
    ("helped", |counts| counts.statistics.helped),
    ("boundaries_critical", |counts| {
        counts.statistics.boundaries_critical
    }),
    ("page_faults", |counts| counts.statistics.page_faults),
    ("guest_switches", |counts| counts.statistics.guest_switches),
    ("host_ns", |counts| counts.statistics.host_ns),
    ("spin_host_ns", |counts| counts.statistics.spin_host_ns),
    ("waits_ended", |counts| counts.statistics.waits_ended),
    ("waited_spins", |counts| counts.statistics.waited_spins),
    ("wait_host_ns", |counts| counts.statistics.wait_host_ns),
    ("running_ns", |counts| counts.times.running_ns),
    ("runnable_ns", |counts| counts.times.runnable_ns),
    ("halted_ns", |counts| counts.times.halted_ns),
];

/// The columns: `Int64` and `Utf8`, without holes.
pub fn columns(grid: &Grid) -> SchemaRef {
    let column = |name: &str, integers: bool| {
        let kind = match integers {
            true => DataType::Int64,
            false => DataType::Utf8,
        };
        Field::new(name, kind, false)
    };
    let mut all = vec![
        column("cell", true),
        column("seed", true),
        column("scenario_sha256", false),
    ];
    for axis in &grid.axes {
        // Letters, digits and underscores alone: a point would be a nested column.
        let name = axis.key.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let integers = axis.values.iter().all(|value| value.parse::<i64>().is_ok());
        all.push(column(&format!("set_{name}"), integers));
    }
    all.push(column("scheduler", false));
    all.push(column("lock", false));
    for name in [
        "vm",
        "group",
        "vcpus",
        "cpus",
        "simulated_ns",
        "window_ns",
        "events",
        "operations",
        "longest_wait_ns",
        "longest_runnable_ns",
    ] {
        all.push(column(name, true));
    }
    all.extend(SUMS.iter().map(|(name, _)| column(name, true)));
    Arc::new(Schema::new(all))
}

/// The rows of a cell; `schema`: of [`columns`], which looks at each value of each axis.
///
/// # Errors
/// A number that does not fit into 63 bits.
pub fn rows(
    schema: &SchemaRef,
    number: usize,
    cell: &GridCell,
    outcome: &Outcome,
) -> Result<RecordBatch, Error> {
    let mut all: Vec<Values> = schema.fields().iter().map(|of| Values::of(of)).collect();
    let scenario = &cell.scenario;
    let lab = Lab::new(scenario).map_err(|error| Error::Lab {
        of: scenario.name.clone(),
        error,
    })?;
    let (hash, cpus) = (scenario.hash(), lab.host().topology.cpus());
    let groups = scenario.vms.iter().enumerate();
    let instances = groups.flat_map(|(group, of)| (0..of.count).map(move |_| (group, of)));
    for (vm, (group, of)) in instances.enumerate() {
        let mut row = Row(all.iter_mut());
        row.integer(number as u64)?;
        row.integer(scenario.seed)?;
        row.word(&hash);
        for value in &cell.values {
            row.word(value);
        }
        row.word(lab.scheduler());
        row.word(of.lock.name());
        let ours = outcome.vcpus.iter();
        let ours: Vec<_> = ours.filter(|vcpu| vcpu.vm as usize == vm).collect();
        let most = |what: Sum| ours.iter().map(|vcpu| what(&vcpu.after)).max().unwrap_or(0);
        for value in [
            vm as u64,
            group as u64,
            of.vcpus.into(),
            cpus.into(),
            outcome.end_ns,
            outcome.window_ns,
            outcome.trace_events,
            outcome.operations(Some(vm as u32)),
            most(|counts| counts.statistics.longest_wait_ns),
            most(|counts| counts.times.longest_wait_ns),
        ] {
            row.integer(value)?;
        }
        for (_, what) in SUMS {
            row.integer(ours.iter().map(|vcpu| what(&vcpu.after)).sum())?;
        }
    }
    let columns = all.into_iter().map(Values::into_array).collect();
    Ok(RecordBatch::try_new(SchemaRef::clone(schema), columns).map_err(anyhow::Error::from)?)
}

/// The values of a column so far.
#[derive(Debug)]
enum Values {
    Integers(Vec<i64>),
    Words(Vec<String>),
}

impl Values {
    fn of(column: &Field) -> Values {
        match column.data_type() {
            DataType::Int64 => Values::Integers(Vec::new()),
            _ => Values::Words(Vec::new()),
        }
    }

    fn into_array(self) -> ArrayRef {
        match self {
            Values::Integers(values) => Arc::new(Int64Array::from(values)),
            Values::Words(words) => Arc::new(StringArray::from(words)),
        }
    }
}

/// A row that is being added, column by column.
struct Row<'a>(std::slice::IterMut<'a, Values>);

impl Row<'_> {
    fn integer(&mut self, value: u64) -> Result<(), Error> {
        let value = i64::try_from(value).map_err(anyhow::Error::from)?;
        match self.0.next() {
            Some(Values::Integers(values)) => values.push(value),
            other => unreachable!("a column of numbers, not {other:?}"),
        }
        Ok(())
    }

    /// A word, or the number that it is in a column of numbers.
    fn word(&mut self, word: &str) {
        match self.0.next() {
            Some(Values::Words(values)) => values.push(word.to_owned()),
            // All values of such an axis are numbers (`columns`).
            Some(Values::Integers(values)) => values.push(word.parse().unwrap_or_default()),
            None => unreachable!("one column for each value"),
        }
    }
}
