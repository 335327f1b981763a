// SPDX-License-Identifier: MIT OR Apache-2.0
//! What worlds measure and rows are made of.

use std::collections::{BTreeMap, BTreeSet};

use crate::steps::Column;

/// What rows are made of.
pub trait Sample {
    /// Work done per second by all VMs together.
    fn per_second(&self) -> f64;
}

/// All samples of one cell.
#[derive(Clone, Debug)]
pub struct Samples<S> {
    /// By column and pair.
    pub taken: BTreeMap<(Column, usize), S>,
    /// Columns under which the work stood still in some pair.
    pub stood_still: BTreeSet<Column>,
}

impl<S> Default for Samples<S> {
    fn default() -> Samples<S> {
        Samples {
            taken: BTreeMap::new(),
            stood_still: BTreeSet::new(),
        }
    }
}

impl<S> Samples<S> {
    /// Those of a column, in order of pairs.
    pub fn of(&self, column: Column) -> Vec<&S> {
        let taken = self.taken.iter();
        let of_column = taken.filter(|((of, _), _)| *of == column);
        of_column.map(|(_, sample)| sample).collect()
    }
}

impl<S: Sample> Samples<S> {
    /// The rates of a column, in order of pairs.
    pub fn rates(&self, column: Column) -> Vec<f64> {
        let samples = self.of(column).into_iter();
        samples.map(Sample::per_second).collect()
    }
}
