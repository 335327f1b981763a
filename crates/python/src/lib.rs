// SPDX-License-Identifier: MIT OR Apache-2.0
//! `unspin_lab._native`: what the Python package `unspin_lab` (`python/`) calls. Here are threads, signals and tables; what an
//! argument may be is decided there.

use pyo3::prelude::*;

mod columns;
mod error;
mod names;
mod session;
mod simulate;
mod source;
mod table;

/// The module, which `unspin_lab` imports.
#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::{
        names::{cost_file, costs, locks, schema, testbed_costs, words},
        simulate::{axis_values, compare, run, sweep, sweep_part, sweep_plan},
        source::{Source, change_of, toml_word},
        table::Table,
    };

    /// The commit that was built.
    #[pymodule_export]
    const COMMIT: &str = unspin_report::COMMIT;
}
